"""Figures of two runs of which only ends are known, as a run did not record all work: no change is
told, and the ranges are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from profharness.analysis.compare.records import RangeDelta
from profharness.analysis.records import Estimate, Figure


def range_deltas(a: Mapping[str, Figure], b: Mapping[str, Figure]) -> tuple[RangeDelta, ...]:
    """The figures of both runs of which one at least is known by its ends alone."""
    return tuple(_range_deltas(a, b))


def _range_deltas(a: Mapping[str, Figure], b: Mapping[str, Figure]) -> Iterator[RangeDelta]:
    for name, first in a.items():
        second = b.get(name)
        if second is None or first.unit != second.unit:
            continue
        if not (first.is_known and second.is_known and (first.is_range or second.is_range)):
            continue
        sides = [Estimate(value=one.value, low=one.low, high=one.high) for one in (first, second)]
        yield RangeDelta(
            name=name,
            unit=first.unit,
            a=sides[0],
            b=sides[1],
            apart=_above(first, second) or _above(second, first),
        )


def _above(one: Figure, other: Figure) -> bool:
    """Whether the lower end of the one lies above the upper end of the other."""
    low = one.value if one.low is None else one.low
    high = other.value if other.high is None else other.high
    return low is not None and high is not None and low > high
