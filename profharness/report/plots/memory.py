"""The curve of what allocators held."""

from __future__ import annotations

from profharness.analysis.memory.records import Memory, MemoryUse
from profharness.report.plots.base import SERIES_COLORS, Plot
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.tables.memory.holders import place, told_with_owners
from profharness.units import format_bytes

MOST = 8
"""Places that are drawn."""
_MIB = 1 << 20


def memory_plots(memory: Memory | None) -> tuple[Plot, ...]:
    """One plot per process and place whose owners are listed: bytes allocated, and reserved where
    the allocator does so. A value holds until the next one.
    """
    uses = [] if memory is None else told_with_owners(memory.uses)
    shown = [use for use in uses if len(use.at_ns) > 1]
    return tuple(_plot(use, number) for number, use in enumerate(shown[:MOST]))


def _plot(use: MemoryUse, number: int) -> Plot:
    first = use.at_ns[0] if use.point else 0  # the window of a run begins with its first point
    at = [round((ns - first) / 1e6, 6) for ns in use.at_ns]
    curves = [
        Curve(
            name,
            SERIES_COLORS[index],
            [x for x in at for _ in range(2)][1:],
            [y for value in values for y in [round(value / _MIB, 3)] * 2][:-1],
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
            Scale(
                f"time since the start of the {'point' if use.point else 'window'} (ms)", zero=True
            ),
            Scale("MiB", zero=True),
            legend=len(curves) > 1,
            along="MiB",
        ),
        220,
        f"Memory of {place(use)}",
        f"Bytes that the allocator of {place(use)} held over the window, "
        f"{format_bytes(use.peak_bytes)} at the peak.",
    )
