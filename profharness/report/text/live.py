"""Telemetry while it is sampled: a table that is redrawn once a second on a terminal, one line per
second elsewhere.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from profharness.errors import InputError
from profharness.report.text.figures import quantity_text, singular
from profharness.report.text.names import meaning_of, title_of
from profharness.rundir import telemetry
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import place_of, unit_of
from profharness.units import format_number, format_share

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

EVERY_S = 1.0
SECONDS = 3.0  # of samples that a value is the mean of
_LINE = (
    "gpu_percent",
    "wave_fill",
    "sm_activity",
    "memory_activity",
    "power_w",
    "cpu_tree",
    "cpu_node",
)


def latest(trace: Trace) -> dict[tuple[str, str], float]:
    """Mean of the last values of each metric (by device number, empty for the host), in the order
    of the metric table.
    """
    found: dict[tuple[str, str], float] = {}
    samples = trace.samples
    for metric, device in sorted(
        {(int(m), int(d)) for m, d in zip(samples.metric, samples.device, strict=True)}
    ):
        values = samples.value[(samples.metric == metric) & (samples.device == device)]
        name = "" if device == NULL else trace.devices[device].index
        found[trace.strings[metric], name] = float(values.mean())
    return dict(sorted(found.items(), key=lambda item: (place_of(item[0][0]), item[0])))


def value_text(metric: str, value: float) -> str:
    """`97 %`, `0.36` of a share as `36.0 %`, `324 W`, `62.4 GiB`, `12.3 MB/s`."""
    unit = unit_of(metric)
    if unit in ("B", "B/s"):
        return quantity_text(value, unit)
    if unit == "share":
        return format_share(value)
    shown = format_number(value, 1 if unit == "cores" else 0)
    return f"{shown} {singular(unit) if shown == '1' else unit}".rstrip()


class LiveView:
    """A context around the sampling; `look` may be called as often as one likes."""

    def __init__(self, stream: TextIO, hz: float) -> None:
        self._stream = stream
        self._rows = max(round(SECONDS * hz), 2)
        self._next = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=self._stream), auto_refresh=False, transient=True
            )
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
            self._live.update(table(trace, values), refresh=True)
        else:
            self._stream.write(line(values) + "\n")
            self._stream.flush()


def line(values: dict[tuple[str, str], float]) -> str:
    """The few figures that matter, in one line."""
    wanted = [
        (metric, device, value) for (metric, device), value in values.items() if metric in _LINE
    ]
    return "   ".join(
        f"{title_of(metric)}{f' {device}' if device else ''} {value_text(metric, value)}"
        for metric, device, value in wanted
    )


def table(trace: Trace, values: dict[tuple[str, str], float]) -> Table:
    """One column per device, the host last; rows in the order of the metric table."""
    from rich.table import Table

    devices = [device.index for device in trace.devices]
    shown = Table(title=f"{trace.sources[0].host}, mean of the last {SECONDS:g} s", expand=False)
    shown.add_column("metric")
    for device in trace.devices:
        shown.add_column(f"{device.index}: {device.name}", justify="right")
    shown.add_column("host", justify="right")
    shown.add_column("")
    for metric in dict.fromkeys(name for name, _ in values):
        cells = [
            value_text(metric, values[metric, device]) if (metric, device) in values else ""
            for device in (*devices, "")
        ]
        shown.add_row(title_of(metric), *cells, meaning_of(metric))
    return shown
