"""Figures that cannot be, whatever was recorded: of records that break what holds of every trace,
times of a window that do not sum to it, and numbers below zero or without bound
(docs/findings.md#impossible-figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from profharness.analysis.records import Figure, Partition, PointSummary
from profharness.analysis.time.device_work import Work
from profharness.findings import Finding, finding
from profharness.trace.invariants import broken
from profharness.trace.model import Trace

_AT_MOST_ONE = frozenset({"gpu_util", "busy"})
_ROUNDING = 1e-6


def impossible_records(trace: Trace, work: Work) -> list[Finding]:  # noqa: ARG001  a check's form
    """One finding on all records that cannot be."""
    found = broken(trace)
    if not found:
        return []
    named = "; ".join(f"{one.rows} {one.what}" for one in found)
    return [
        finding(
            "impossible-figures",
            f"the trace holds records that cannot be: {named}",
            records=sum(one.rows for one in found),
        )
    ]


def impossible_figures(
    figures: Mapping[str, Figure], split: Partition | None, point: str | None = None
) -> Iterator[Finding]:
    """One finding on a window's figures and parts that cannot be."""
    wrong = [*_numbers(figures), *(_parts(split) if split else ())]
    if wrong:
        yield finding(
            "impossible-figures",
            f"figures that cannot be: {'; '.join(wrong)}",
            point=point,
            count=len(wrong),
        )


def impossible_in(
    figures: Mapping[str, Figure], split: Partition | None, points: Sequence[PointSummary]
) -> Iterator[Finding]:
    """As `impossible_figures`, of a whole trace and then of each of its points."""
    yield from impossible_figures(figures, split)
    for point in points:
        yield from impossible_figures(point.metrics, point.partition, point.point)


def _numbers(figures: Mapping[str, Figure]) -> Iterator[str]:
    for name, figure in figures.items():
        value = figure.least
        if value is None:
            continue
        if not math.isfinite(value) or value < 0:
            yield f"{name} is {value:.3g}"
        elif name in _AT_MOST_ONE and value > 1 + _ROUNDING:
            yield f"{name} is {value:.6g} of a possible 1"


def _parts(split: Partition) -> Iterator[str]:
    """Times in ns; the parts of a window are disjoint and sum to it exactly."""
    parts = {
        "compute": split.compute_ns,
        "exposed communication": split.exposed_communication_ns,
        "exposed copies": split.exposed_copy_ns,
        "idle": split.idle_ns,
        "idle or not recorded": split.idle_or_not_recorded_ns,
    }
    for name, value in parts.items():
        if not 0 <= value <= split.window_ns:
            yield f"{name} is {value} ns of {split.window_ns} ns"
    if sum(parts.values()) != split.window_ns:
        yield f"the parts of the window are {sum(parts.values())} ns of {split.window_ns} ns"
