"""Calls of the same collective on several ranks, by their order in each process group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.communication.collectives import Arrivals, described
from profharness.trace.collectives import UNTOLD
from profharness.trace.model import I64

# Captures of one job begin this many collectives apart at most, besides what one has more than the
# other.
_REACH = 64
_CLOCKS_NS = 1_000_000  # clocks of several nodes agree within about this
_UNEVEN = frozenset({"all_to_all", "send_recv", "gather", "scatter", "collective"})
MEET = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Collectives that end on all ranks at about one time."""
CAUSAL = MEET - {"all_to_all"}
"""Collectives whose every result depends on every rank; of an exchange with uneven parts, a part
may be empty.
"""


@dataclass(frozen=True, eq=False)
class Matched:
    """Calls that several ranks have: `start` and `dur` are (calls, ranks) ns, `what` positions in
    the texts (of the first rank; `each` of all, (calls, ranks)), `ranks` positions in the list
    given.
    """

    ranks: tuple[int, ...]
    start: I64
    dur: I64
    what: I64
    each: I64


def meeting(group: Matched, ranks: Sequence[Arrivals]) -> npt.NDArray[np.bool_]:
    """Which calls of a group end on all of its ranks at about one time; `ranks` are those that were
    matched.
    """
    return _of_kinds(group, ranks, MEET)


def causal(group: Matched, ranks: Sequence[Arrivals]) -> npt.NDArray[np.bool_]:
    """Which of them end on no rank before the last one has come to them."""
    return _of_kinds(group, ranks, CAUSAL)


def _of_kinds(
    group: Matched, ranks: Sequence[Arrivals], wanted: frozenset[str]
) -> npt.NDArray[np.bool_]:
    texts = ranks[group.ranks[0]].texts
    distinct, place = np.unique(group.what, return_inverse=True)
    kinds = [described(texts[what]).kind in wanted for what in distinct.tolist()]
    fits: npt.NDArray[np.bool_] = np.array(kinds, np.bool_)[place.reshape(-1)]
    return fits


def matched(ranks: Sequence[Arrivals]) -> tuple[list[Matched], int]:
    """The calls of each process group by their order, and how many calls have no partner.

    The sequences of two ranks must agree in kind (and size, where all ranks move as much). Captures
    that begin at different calls are shifted where only one shift fits, or the clocks tell. Calls
    of groups that cannot be told apart stay without a partner.
    """
    matches: list[Matched] = []
    left = 0
    numbers: dict[str, int] = {}
    known = {id(rank.texts): _Kinds.of(rank.texts, numbers) for rank in _pools(ranks)}
    signs = [known[id(rank.texts)].sign[rank.what] for rank in ranks]
    rows_of = [by_value(known[id(rank.texts)].group[rank.what]) for rank in ranks]
    for group, number in numbers.items():
        chosen = [
            (position, rows[number]) for position, rows in enumerate(rows_of) if number in rows
        ]
        joined = (
            _join([(position, ranks[position], rows) for position, rows in chosen], signs)
            if len(chosen) > 1 and not group.endswith(UNTOLD)
            else None
        )
        calls = sum(len(rows) for _, rows in chosen)
        if joined is not None:
            matches.append(joined)
            calls -= joined.start.size
        left += calls
    return matches, left


def by_value(values: I64) -> dict[int, I64]:
    """The rows of each value, in order: all at once, as there may be as many values as rows."""
    order = np.argsort(values, kind="stable")
    found, begins = np.unique(values[order], return_index=True)
    edges = [*begins.tolist(), len(order)]
    return {
        value: order[low:high]
        for value, low, high in zip(found.tolist(), edges[:-1], edges[1:], strict=True)
    }


def _pools(ranks: Sequence[Arrivals]) -> Iterable[Arrivals]:
    """One rank for each pool of texts, in order."""
    return {id(rank.texts): rank for rank in reversed(ranks)}.values()


@dataclass(frozen=True, eq=False)
class _Kinds:
    """What each text of a pool says: the process group as a number, and a number that is equal
    where kind (and size, where all ranks move as much) are.
    """

    group: I64
    sign: I64

    @classmethod
    def of(cls, texts: Sequence[str], numbers: dict[str, int]) -> _Kinds:
        """Of a pool; `numbers` are those of groups, to which further ones are added."""
        collectives = [described(text) for text in texts]
        signs = [
            (one.kind, None if one.kind in _UNEVEN else one.in_elements) for one in collectives
        ]
        number = {sign: place for place, sign in enumerate(dict.fromkeys(signs))}
        groups = [numbers.setdefault(one.group, len(numbers)) for one in collectives]
        return cls(np.array(groups, np.int64), np.array([number[one] for one in signs], np.int64))


def _join(members: Sequence[tuple[int, Arrivals, I64]], signs: Sequence[I64]) -> Matched | None:
    """All ranks against the first; None where one does not fit it, or nothing is common to all.
    `signs` are those of the calls of each rank, by its position.
    """
    place, first, rows = members[0]
    base = signs[place][rows]
    shifts = [0]
    for position, other, own_rows in members[1:]:
        shift = _shift((first, rows, base), (other, own_rows, signs[position][own_rows]))
        if shift is None:
            return None
        shifts.append(shift)
    # call i of the first is call i + shift of another
    low = max(-shift for shift in shifts)
    high = min(
        len(own_rows) - shift for (_, _, own_rows), shift in zip(members, shifts, strict=True)
    )
    if high <= low:
        return None
    picked = [
        own_rows[low + shift : high + shift]
        for (_, _, own_rows), shift in zip(members, shifts, strict=True)
    ]
    return Matched(
        tuple(position for position, _, _ in members),
        np.stack(
            [rank.start[chosen] for (_, rank, _), chosen in zip(members, picked, strict=True)],
            axis=1,
        ),
        np.stack(
            [rank.dur[chosen] for (_, rank, _), chosen in zip(members, picked, strict=True)], axis=1
        ),
        first.what[picked[0]],
        np.stack(
            [rank.what[chosen] for (_, rank, _), chosen in zip(members, picked, strict=True)],
            axis=1,
        ),
    )


_Side = tuple[Arrivals, I64, I64]


def _shift(first: _Side, other: _Side) -> int | None:
    """By how many calls the other rank's sequence is shifted; None where no shift fits, or several
    do and nothing tells which.

    On one clock the shift with the nearest ends is taken; else none where the sequences are equally
    long.
    """
    (first_rank, first_rows, base), (other_rank, other_rows, sign) = first, other
    clocked = first_rank.common_clock and other_rank.common_clock
    if not clocked and len(base) == len(sign) and np.array_equal(base, sign):
        return 0
    shorter = min(len(base), len(sign))
    reach = abs(len(base) - len(sign)) + _REACH
    fits = []
    for shift in range(-reach, reach + 1):
        low, high = max(0, -shift), min(len(base), len(sign) - shift)
        if high - low >= (shorter + 1) // 2 and np.array_equal(
            base[low:high], sign[low + shift : high + shift]
        ):
            ends = (first_rank.start + first_rank.dur)[first_rows[low:high]] - (
                other_rank.start + other_rank.dur
            )[other_rows[low + shift : high + shift]]
            fits.append((float(np.median(np.abs(ends))), shift))
    if clocked and fits:
        apart, nearest = min(fits)
        return nearest if apart <= _furthest(first, other) else None
    return fits[0][1] if len(fits) == 1 else None


def _furthest(first: _Side, other: _Side) -> float:
    """How far apart the ends of one call may lie on a common clock, ns: a collective ends on its
    ranks at about one time, so that what is further apart than calls usually are belongs to
    captures of different times.
    """
    spans = [
        int(np.ptp(rank.start[rows])) / max(1, len(rows) - 1) for rank, rows, _ in (first, other)
    ]
    return max(_CLOCKS_NS, *spans)
