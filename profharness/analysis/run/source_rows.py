"""The sources of a run with their alignment, as rows of the report."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import SourceRow
from profharness.analysis.summarise import source_row
from profharness.trace.clocks.causality import causal_intervals
from profharness.trace.model import Trace


def source_rows(trace: Trace) -> tuple[SourceRow, ...]:
    """Every source with its alignment, and the tightest causal interval over its devices."""
    intervals: dict[int, list[tuple[int | None, int | None]]] = {}
    for (position, _), interval in causal_intervals(trace).items():
        intervals.setdefault(position, []).append((interval.low_ns, interval.high_ns))
    rows = []
    for position, source in enumerate(trace.sources):
        ends = intervals.get(position, [])
        lows, highs = (
            [low for low, _ in ends if low is not None],
            [high for _, high in ends if high is not None],
        )
        rows.append(
            msgspec.structs.replace(
                source_row(source),
                causal_low_ns=max(lows, default=None),
                causal_high_ns=min(highs, default=None),
            )
        )
    return tuple(rows)
