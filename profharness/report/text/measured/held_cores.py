"""What a scan on a node with other work can stand for: its rates are what the CPU gave beside that
work, so they say at most how fast it is at least, and not which level is best.
"""

from __future__ import annotations

from collections.abc import Iterable

from profharness.analysis.records import PointSummary
from profharness.analysis.verdict.cpu import QUIET_NODE


def held(points: Iterable[PointSummary]) -> tuple[PointSummary, ...]:
    """The points on which no verdict was made because other work held the cores."""
    return tuple(
        point
        for point in points
        if point.verdict is None and point.verdict_needs.startswith(QUIET_NODE)
    )


def not_told_apart(highest: str, device: str) -> str:
    """In place of a best level; `highest` is the highest rate and where, such as `201 jets/s at
    2 processes`.
    """
    return (
        "Other work held the cores, so this scan does not tell the levels apart: it measured at "
        f"most {highest}. Without that work the {device} does at least as much."
    )


def may_do_better(levels: Iterable[str]) -> str:
    """Beside a best level that was measured undisturbed, where others were not."""
    return f"Other work held the cores at {', '.join(levels)}, which may do better without it."
