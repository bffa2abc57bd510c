"""Ranks against each other: who arrives late at the same collective, and who waits.

A collective's kernel starts when its rank arrives and ends, on all ranks that meet there, when the
last one has come and the data are through; who gives without getting leaves before (`awaited`).
Calls are matched by their order in each process group. Ranks on one clock (a run's) are compared as
they are; others are put together by the common end of their collectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profharness.analysis.communication.clocks import CommonClock, common_clock, words
from profharness.analysis.communication.collectives import Arrivals
from profharness.analysis.communication.lateness import FEWEST, Lateness, lateness, margins
from profharness.analysis.communication.matching import Matched, by_value, meeting
from profharness.analysis.communication.records import RankRow, Skew
from profharness.analysis.communication.waits import NOTICEABLE_NS, Waits, awaited
from profharness.trace.model import F64, I64

_LATE = 0.5
COSTS = 0.02
"""Of all ranks' time that they wait: below it nothing is to be gained."""
_MOST = 0.8  # of all waiting: on hosts whose ranks share cores, every call has some


def _arrival_times(calls: Matched, ranks: Sequence[Arrivals], clock: CommonClock) -> I64:
    """Starts on one clock. Where no call of the ranks ends on all of them at once, the common end
    of these calls must do.
    """
    if all(ranks[position].common_clock for position in calls.ranks):
        return calls.start
    if clock.knows(calls.ranks):
        columns = [
            clock.of(position).conversion(calls.start[:, column])
            for column, position in enumerate(calls.ranks)
        ]
        return np.stack(columns, axis=1)
    ends = calls.start + calls.dur
    shift = np.median(ends - ends[:, :1], axis=0).astype(np.int64)
    return np.asarray(calls.start - shift, np.int64)


def skew(ranks: Sequence[Arrivals], groups: Sequence[Matched], unmatched: int) -> Skew | None:
    """Differences of arrival over all matched calls; None without any."""
    return _compared(ranks, groups, unmatched) if groups else None


def _compared(ranks: Sequence[Arrivals], groups: Sequence[Matched], unmatched: int) -> Skew:
    last, behind, calls = (np.zeros(len(ranks)) for _ in range(3))
    waits = Waits(len(ranks))
    differences, longest, latest = [], [], []
    behind_others: list[tuple[I64, I64, I64]] = []
    clock = common_clock(ranks, groups)
    for group in groups:
        start = _arrival_times(group, ranks, clock)
        difference = start.max(axis=1) - start.min(axis=1)
        differences.append(difference)
        counts = difference > NOTICEABLE_NS
        members = np.array(group.ranks)
        latest.append(members[start.argmax(axis=1)])
        np.add.at(last, latest[-1][counts], 1)
        behind[members] += (start - start.min(axis=1, keepdims=True)).sum(axis=0)
        calls[members] += len(start)
        end = start + group.dur
        waited = waits.add(members, start, end, awaited(start, end, meeting(group, ranks)))
        longest.append(waited.max(axis=1))
        behind_others.append((members, start.max(axis=1), margins(start)))
    every = np.concatenate(differences)
    costly, wait = _costly(np.concatenate(longest)), waits.waited_ns()
    paid = np.bincount(np.concatenate(latest)[costly], minlength=len(ranks))
    rows = tuple(
        RankRow(
            rank=rank.rank,
            calls=int(calls[place]),
            last=int(last[place]),
            wait_ns=wait[place],
            mean_behind_ns=float(behind[place] / calls[place]),
            last_costly=int(paid[place]),
            late_ns=None if of_rank is None else of_rank.mean_ns,
            late_low_ns=None if of_rank is None else of_rank.low_ns,
            late_in_quarters=of_rank is not None and of_rank.steady,
            clock_calls=0 if own is None else own.calls,
            clock_scatter_ns=0 if own is None else own.scatter_ns,
            clock_bound_ns=0 if own is None else own.bound_ns,
        )
        for place, rank in enumerate(ranks)
        if calls[place]
        for of_rank in (_lateness(place, behind_others),)
        for own in (clock.units.get(place),)
    )
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
        aligned="on the run's clock" if clock.shared else words(clock),
        clock_scatter_ns=0 if clock.shared else clock.scatter_ns,
        clock_bound_ns=0 if clock.shared else clock.bound_ns,
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


def _costly(longest: I64) -> I64:
    """The calls with the longest waits that make up most of their sum."""
    order = np.argsort(-longest, kind="stable")
    reached = np.cumsum(longest[order])
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
