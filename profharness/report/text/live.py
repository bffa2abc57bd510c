"""Telemetry while it is sampled: a table that is redrawn once a second on a terminal, one line per
second elsewhere.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from profharness.errors import InputError
from profharness.report.tables.telemetry import latest_table
from profharness.report.text.listing import framed_table
from profharness.report.text.names import title_of
from profharness.report.text.sampled import sample_value_text
from profharness.rundir import telemetry
from profharness.rundir.shown.screen import console
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import place_of

if TYPE_CHECKING:
    from rich.live import Live

EVERY_S = 1.0
SECONDS = 3.0  # of samples that a value is the mean of
_LINE = (
    "gpu_percent",
    "wave_fill",
    "cu_active",
    "cu_occupancy",
    "matrix_busy",
    "sm_activity",
    "sm_occupancy",
    "tensor_activity",
    "memory_activity",
    "power_w",
    "cpu_tree",
    "cpu_node",
)


def latest(trace: Trace) -> dict[tuple[str, str], float]:
    """Mean of the last values of each metric (by device number, empty for the host), in the order
    of the metric table.
    """
    values_by_metric: dict[tuple[str, str], float] = {}
    samples = trace.samples
    for metric, device in sorted(
        {(int(m), int(d)) for m, d in zip(samples.metric, samples.device, strict=True)}
    ):
        values = samples.value[(samples.metric == metric) & (samples.device == device)]
        name = "" if device == NULL else trace.devices[device].index
        values_by_metric[trace.strings[metric], name] = float(values.mean())
    return dict(sorted(values_by_metric.items(), key=lambda item: (place_of(item[0][0]), item[0])))


class LiveView:
    """A context around the sampling; `look` may be called as often as one likes."""

    def __init__(self, stream: TextIO, hz: float) -> None:
        self._stream = stream
        self._rows = max(round(SECONDS * hz), 2)
        self._next = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty():
            from rich.live import Live

            self._live = Live(console=console(self._stream), auto_refresh=False, transient=True)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def look(self, samples: Path) -> None:
        """Redraw when a second has passed; a file that has not begun yet is waited for."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_S
        try:
            trace = telemetry.read_tail(samples, self._rows)
        except InputError:
            return
        values = latest(trace)
        if self._live is not None:
            self._live.update(framed_table(latest_table(trace, values, SECONDS)), refresh=True)
        else:
            self._stream.write(line(values) + "\n")
            self._stream.flush()


def line(values: dict[tuple[str, str], float]) -> str:
    """The few figures that matter, in one line."""
    wanted = [
        (metric, device, value) for (metric, device), value in values.items() if metric in _LINE
    ]
    return "   ".join(
        f"{title_of(metric)}{f' {device}' if device else ''} {sample_value_text(metric, value)}"
        for metric, device, value in wanted
    )
