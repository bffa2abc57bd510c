"""In words: groups of ranks, those that stand out first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profharness.analysis.communication.records import RankCell, RankDifference, RankGroup
from profharness.units import format_ns, format_share

MOST_GROUPS = 8
_TOLD = 3  # differences of one group
_USUAL = 5  # figures of the largest group
_RUN = re.compile(r"rank (\d+)$")


def lines(groups: Sequence[RankGroup]) -> Iterator[str]:
    """At most ten lines, however many ranks there are; none where no rank stands out."""
    if len(groups) < 2:
        return
    yield f"ranks in {len(groups)} groups, those that stand out most first:"
    *others, largest = groups
    for group in others[:MOST_GROUPS]:
        yield f"  {names(group.ranks)}: {differences(group)}"
    rest = others[MOST_GROUPS:]
    if rest:
        ranks = sum(len(group.ranks) for group in rest)
        yield f"  and {len(rest)} groups more, of {ranks} ranks"
    yield f"  {names(largest.ranks)}: {figures(largest)}"


def differences(group: RankGroup) -> str:
    """`compute 80.1 % (most ranks 54.6 %), ...`."""
    told = [
        f"{_name(one)} {_value(one, one.value)} (most ranks {_value(one, one.usual)})"
        for one in group.differs[:_TOLD]
    ]
    more = len(group.differs) - _TOLD
    if more > 0:
        told.append(f"and {more} more")
    return ", ".join(told) or "figures that others do not have"


def figures(group: RankGroup) -> str:
    """The first figures of a group."""
    return ", ".join(f"{_name(cell)} {_value(cell, cell.value)}" for cell in group.cells[:_USUAL])


def names(ranks: Sequence[str]) -> str:
    """`rank 77`, `8 ranks (24-31)`, `119 ranks (0-23, 32-76, 78-127)`: at most four ranges."""
    numbers = [int(found[1]) for rank in ranks if (found := _RUN.match(rank))]
    if len(ranks) == 1:
        return ranks[0]
    if len(numbers) < len(ranks):
        shown = ", ".join(ranks[:3])
        return f"{len(ranks)} ranks ({shown}{' and more' if len(ranks) > 3 else ''})"
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    told = [f"{low}" if low == high else f"{low}-{high}" for low, high in spans[:4]]
    more = [] if len(spans) <= 4 else ["..."]
    return f"{len(ranks)} ranks ({', '.join([*told, *more])})"


def _name(one: RankCell | RankDifference) -> str:
    return f"{one.name} (range)" if one.of == "range" else one.name


def _value(one: RankCell | RankDifference, value: float) -> str:
    return format_share(value) if one.is_share else format_ns(value)
