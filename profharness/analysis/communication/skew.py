"""Ranks against each other: who arrives late at the same collective, and who waits.

A collective's kernel starts when its rank arrives and ends, on all ranks, when the last one has
come and the data are through. Calls are matched by their order in each process group. Ranks on one
clock (a run's) are compared as they are; others are put together by the common end of their
collectives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.communication.collectives import Arrivals, described
from profharness.analysis.communication.lateness import FEWEST, Lateness, lateness, margins
from profharness.analysis.communication.records import RankRow, Skew
from profharness.analysis.communication.waits import Waits
from profharness.trace.collectives import UNTOLD
from profharness.trace.model import F64, I64
from profharness.units import format_ns

NOTICEABLE_NS = 20_000
"""A smaller difference of arrival is within what launches and clocks scatter by."""
_LATE = 0.5
# Captures of one job begin this many collectives apart at most, besides what one has more than the
# other.
_REACH = 64
_CLOCKS_NS = 1_000_000  # clocks of several nodes agree within about this
COSTS = 0.02
"""Of all ranks' time that they wait: below it nothing is to be gained."""
_MOST = 0.8  # of all waiting: on hosts whose ranks share cores, every call has some
_UNEVEN = frozenset({"all_to_all", "send_recv", "gather", "scatter", "collective"})
MEET = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})


@dataclass(frozen=True, eq=False)
class Matched:
    """Calls that several ranks have: `start` and `dur` are (calls, ranks) ns, `what` positions in
    the texts, `ranks` positions in the list given.
    """

    ranks: tuple[int, ...]
    start: I64
    dur: I64
    what: I64


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


def _meeting(ranks: Sequence[Arrivals]) -> dict[int, npt.NDArray[np.bool_]]:
    """Of each pool of texts, by its identity: which collectives end on all ranks at once. Empty
    where all ranks share a clock, as nothing asks for it then.
    """
    if all(rank.common_clock for rank in ranks):
        return {}
    return {
        id(rank.texts): np.array([described(text).kind in MEET for text in rank.texts], np.bool_)
        for rank in _pools(ranks)
    }


def _arrival_times(
    calls: Matched, ranks: Sequence[Arrivals], meeting: Mapping[int, npt.NDArray[np.bool_]]
) -> tuple[I64, int]:
    """Starts on one clock, and the largest shift that it took; 0 for ranks that share a clock."""
    if all(ranks[position].common_clock for position in calls.ranks):
        return calls.start, 0
    meet = meeting[id(ranks[calls.ranks[0]].texts)][calls.what]
    ends = (calls.start + calls.dur)[meet if meet.any() else slice(None)]
    shift = np.median(ends - ends[:, :1], axis=0).astype(np.int64)
    return calls.start - shift, int(np.abs(shift).max())


def skew(ranks: Sequence[Arrivals], groups: Sequence[Matched], unmatched: int) -> Skew | None:
    """Differences of arrival over all matched calls; None without any."""
    if not groups:
        return None
    last, wait, behind, calls = (np.zeros(len(ranks)) for _ in range(4))
    waits = Waits(len(ranks))
    differences, latest, shifted = [], [], 0
    behind_others: list[tuple[I64, I64, I64]] = []
    meeting = _meeting(ranks)
    for group in groups:
        start, shift = _arrival_times(group, ranks, meeting)
        shifted = max(shifted, shift)
        difference = start.max(axis=1) - start.min(axis=1)
        differences.append(difference)
        counts = difference > NOTICEABLE_NS
        members = np.array(group.ranks)
        latest.append(members[start.argmax(axis=1)])
        np.add.at(last, latest[-1][counts], 1)
        wait[members] += (start.max(axis=1, keepdims=True) - start).sum(axis=0)
        behind[members] += (start - start.min(axis=1, keepdims=True)).sum(axis=0)
        calls[members] += len(start)
        waits.add(members, start, start + group.dur)
        behind_others.append((members, start.max(axis=1), margins(start)))
    every = np.concatenate(differences)
    costly = _costly(every)
    paid = np.bincount(np.concatenate(latest)[costly], minlength=len(ranks))
    rows = tuple(
        RankRow(
            rank=rank.rank,
            calls=int(calls[place]),
            last=int(last[place]),
            wait_ns=int(wait[place]),
            mean_behind_ns=float(behind[place] / calls[place]),
            last_costly=int(paid[place]),
            late_ns=None if of_rank is None else of_rank.mean_ns,
            late_low_ns=None if of_rank is None else of_rank.low_ns,
            late_in_quarters=of_rank is not None and of_rank.steady,
        )
        for place, rank in enumerate(ranks)
        if calls[place]
        for of_rank in (_lateness(place, behind_others),)
    )
    together = any(not ranks[position].common_clock for group in groups for position in group.ranks)
    return Skew(
        ranks=len(rows),
        matched=len(every),
        unmatched=unmatched,
        noticeable=int((every > NOTICEABLE_NS).sum()),
        costly=len(costly),
        median_ns=float(np.median(every)),
        p95_ns=float(np.percentile(every, 95)),
        max_ns=int(every.max()),
        mean_ns=float(every.mean()),
        wait_share=waits.share(),
        aligned=f"by the common end of collectives (clocks up to {format_ns(shifted)} apart)"
        if together
        else "on the run's clock",
        rows=rows,
    )


def _lateness(place: int, groups: Sequence[tuple[I64, I64, I64]]) -> Lateness | None:
    """Of the rank at a place: of each group the members, the moments and how late each came."""
    own = [(at, late_by[:, members == place]) for members, at, late_by in groups]
    kept = [(at, late_by[:, 0]) for at, late_by in own if late_by.shape[1]]
    return lateness([at for at, _ in kept], [late_by for _, late_by in kept])


def late(differences: Skew) -> tuple[RankRow, str] | None:
    """The rank that comes last in at least half of the noticeable calls, or of the costly ones,
    and throughout (`lateness`) so late that it costs, and how often in words.
    """
    last = max(differences.rows, key=lambda row: row.last)
    dear = max(differences.rows, key=lambda row: row.last_costly)
    costly = f"the {differences.costly} collectives that cost {100 * _MOST:.0f} % of the waiting"
    ways = (
        (
            last,
            last.last,
            differences.noticeable,
            f"{differences.noticeable} collectives with a difference",
        ),
        (dear, dear.last_costly, differences.costly, costly),
    )
    often = [
        (count / calls, row, f"{count} of {which}")
        for row, count, calls, which in ways
        if _often(count, calls) and _persists(row, differences)
    ]
    return max(often, key=lambda one: one[0])[1:] if often else None


def _often(last: int, calls: int) -> bool:
    return calls >= FEWEST and last >= _LATE * calls


def _persists(row: RankRow, differences: Skew) -> bool:
    """Whether the rank is late in each quarter, and what the others wait for it at least, beyond
    chance, is a part of their time that counts.
    """
    if row.late_low_ns is None or not row.late_in_quarters or row.late_low_ns <= 0:
        return False
    certain = row.late_low_ns / differences.mean_ns
    of_others = differences.wait_share * differences.ranks / (differences.ranks - 1)
    return of_others * certain >= COSTS


def _costly(differences: I64) -> I64:
    """The calls with the largest differences of arrival that make up most of their sum."""
    order = np.argsort(-differences, kind="stable")
    reached = np.cumsum(differences[order])
    chosen: I64 = (
        order[: int(np.searchsorted(reached, _MOST * reached[-1])) + 1]
        if reached[-1] > 0
        else order[:0]
    )
    return chosen


def transfer_ns(groups: Sequence[Matched], ranks: Sequence[Arrivals]) -> dict[int, F64]:
    """Per kind of call (position in the texts) the shortest kernel of each call among the ranks
    that are matched, and each kernel of those that are not.
    """
    shortest: dict[int, list[F64]] = {}
    joined: set[int] = set()
    for group in groups:
        best = group.dur.min(axis=1).astype(np.float64)
        rows_of = by_value(group.what)
        joined |= set(rows_of)
        for call, rows in rows_of.items():
            shortest.setdefault(call, []).append(best[rows])
    for rank in ranks:
        rows_of = by_value(rank.what)
        for call in set(rows_of) - joined:
            shortest.setdefault(call, []).append(rank.dur[rows_of[call]].astype(np.float64))
    return {call: np.concatenate(parts) for call, parts in shortest.items()}
