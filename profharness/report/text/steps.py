"""Figures step by step as a table of text: how long, where the time went, how full the device
was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.power.run_telemetry import figure_name
from profharness.analysis.records import StepSummary
from profharness.report.table import Column, Table, row_of
from profharness.report.text import names
from profharness.report.text.figures import is_known, needs_text, quantity_text, range_text
from profharness.report.text.listing import listing
from profharness.units import format_ns, format_share

_SHARES = (
    ("compute", "compute"),
    ("exposed_communication", "comm. exposed"),
    ("exposed_copy", "copy exposed"),
    ("idle", "idle"),
    ("launch_bound", "launch-bound"),
)
_OF_DEVICE = (
    ("fill", "fill"),
    ("fill_busy", "fill busy"),
    ("occupancy", "occupancy"),
    ("mfu", "MFU"),
)

_TELEMETRY = ("power_w", "clock_gpu", "cores_used")
_ENERGY = (("energy", "energy"),)


def lines(steps: Sequence[StepSummary], samples: Sequence[str] = ()) -> Iterator[str]:
    """A line per step, with the columns that at least one step has; then what the others need.

    `samples` are telemetry metrics to show (none: power, clock and cores), each with what to know
    of it.
    """
    if not steps:
        yield "steps: none are marked in the trace"
        return
    telemetry = [
        (name, names.title_of(name))
        for name in (map(figure_name, samples) if samples else _TELEMETRY)
    ]
    shown = [
        (name, title)
        for name, title in (*_SHARES, *_OF_DEVICE, *telemetry, *_ENERGY)
        if any(_is_measured(step, name) for step in steps)
    ]
    yield from listing(step_table(steps, shown), heads=True)
    for name, title in telemetry:
        for note in dict.fromkeys(
            step.metrics[name].note
            for step in steps
            if _is_measured(step, name) and step.metrics[name].note
        ):
            yield f"{title}: {note}"
    missing: dict[str, list[str]] = {}
    for name, title in (*_SHARES, *_OF_DEVICE, *_ENERGY):
        if (name, title) not in shown and name in steps[0].metrics:
            missing.setdefault(needs_text(steps[0].metrics[name].needs), []).append(title)
    yield from (f"{', '.join(titles)}: {words}" for words, titles in missing.items())


def step_table(steps: Sequence[StepSummary], shown: Sequence[tuple[str, str]]) -> Table:
    """One row per step; `shown` are the figures' names and titles. A figure that a step lacks is
    `-`.
    """
    columns = (
        Column("step"),
        Column("time", "right", width=10),
        *(Column(title, "right", width=max(13, len(title))) for _, title in shown),
    )
    return Table(
        "Steps",
        columns,
        tuple(
            row_of(step.step, format_ns(step.dur_ns), *(_cell(step, name) for name, _ in shown))
            for step in steps
        ),
    )


def _is_measured(step: StepSummary, name: str) -> bool:
    return name in step.metrics and is_known(step.metrics[name])


def _cell(step: StepSummary, name: str) -> str:
    if not _is_measured(step, name):
        return "-"
    figure = step.metrics[name]
    if figure.is_range:
        return range_text(figure)
    value = float(figure.value or 0)
    return format_share(value) if name in dict(_SHARES) else quantity_text(value, figure.unit)
