"""The curve of what allocators held."""

from __future__ import annotations

from profharness.analysis.memory.records import Memory, MemoryUse
from profharness.report.plots.base import SERIES_COLORS, Plot
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.tables.memory import place
from profharness.units import format_bytes

MOST = 8
"""Places that are drawn."""
_MIB = 1 << 20
_LEAST = 1 << 20
"""Bytes of the peak of a place that is drawn."""


def memory_plots(memory: Memory | None) -> tuple[Plot, ...]:
    """One plot per process and place: bytes allocated, and reserved where the allocator does so."""
    uses = () if memory is None else memory.uses
    shown = [use for use in uses if use.peak_bytes >= _LEAST and len(use.at_ns) > 1]
    return tuple(_plot(use, number) for number, use in enumerate(shown[:MOST]))


def _plot(use: MemoryUse, number: int) -> Plot:
    at = [round(ns / 1e6, 6) for ns in use.at_ns]
    curves = [
        Curve(
            name,
            SERIES_COLORS[index],
            at,
            [round(value / _MIB, 3) for value in values],
            tip="{name} {y:4} MiB at {x:.3f} ms",
            width=1.4,
            size=0,
        )
        for index, (name, values) in enumerate(
            (("allocated", use.allocated), ("reserved", use.reserved))
        )
        if values
    ]
    return Plot(
        f"memory-{number}",
        chart_json(
            curves,
            Scale("time since the start of the window (ms)", zero=True),
            Scale("MiB", zero=True),
            legend=len(curves) > 1,
            along="MiB",
        ),
        220,
        f"Memory of {place(use)}",
        f"Bytes that the allocator of {place(use)} held over the window, "
        f"{format_bytes(use.peak_bytes)} at the peak.",
    )
