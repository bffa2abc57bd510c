"""Collectives at which several processes meet: which of them came last to each, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from profharness.analysis.communication.clocks import CommonClock, common_clock
from profharness.analysis.communication.collectives import Arrivals, arrivals, relabelled
from profharness.analysis.communication.skew import Matched, matched
from profharness.analysis.critical.classes import COLLECTIVE
from profharness.analysis.critical.graph import Graph
from profharness.analysis.critical.records import Meetings
from profharness.analysis.critical.segments import work_classes

Piece = tuple[int, int]
"""A process (by its place in a list of graphs) and a position in its `Scope.work`."""


@dataclass(frozen=True)
class Latest:
    """The piece of a collective that began last, and when, in ns of that process's clock."""

    piece: Piece
    start_ns: int
    call: int
    """The number of the call that both pieces are part of."""


@dataclass(frozen=True)
class Met:
    """What several processes have in common. `waited_for` has, for each piece that began earlier
    than another of its call, the latest one; `shift_ns` is what to take off each process's clock.
    """

    waited_for: dict[Piece, Latest] = field(default_factory=dict)
    shift_ns: dict[int, int] = field(default_factory=dict)
    told: Meetings | None = None


def meetings(graphs: Sequence[Graph]) -> Met:
    """The meetings of several processes of one pass and point; empty for one alone."""
    if len(graphs) < 2:
        return Met()
    parts: list[tuple[str, Sequence[Arrivals]]] = []
    owner: list[int] = []
    for place, graph in enumerate(graphs):
        on_devices = [
            rank for rank in arrivals(graph.scope.trace) if not rank.rank.endswith(" on the CPU")
        ]
        parts.append((str(place), on_devices))
        owner += [place] * len(on_devices)
    ranks = relabelled(parts)
    groups, _ = matched(ranks)
    if not groups:
        return Met()
    clock = common_clock(ranks, groups)
    made: dict[Piece, Latest] = {}
    pieces = [_pieces(graph) for graph in graphs]
    calls = 0
    for group in groups:
        if all(position in clock.shift_ns for position in group.ranks):
            _add(made, group, (owner, pieces), clock, calls)
            calls += len(group.start)
    told = Meetings(calls=calls, shared_clock=clock.shared, bound_ns=clock.bound_ns)
    shift = {owner[position]: ns for position, ns in clock.shift_ns.items()}
    return Met(made, shift, told)


def _pieces(graph: Graph) -> dict[tuple[int, int], int]:
    """The positions of the collectives inside of a process's window, by their start and length."""
    scope = graph.scope
    start, end = scope.records.start[scope.work], scope.records.end[scope.work]
    inside = (start >= scope.start) & (end <= scope.end)
    found = np.flatnonzero((work_classes(scope) == COLLECTIVE) & inside)
    start, lasting = start[found], (end - start)[found]
    keys = zip(start.tolist(), lasting.tolist(), strict=True)
    return dict(zip(keys, found.tolist(), strict=True))


def _add(
    made: dict[Piece, Latest],
    group: Matched,
    of_ranks: tuple[list[int], list[dict[tuple[int, int], int]]],
    clock: CommonClock,
    first: int,
) -> None:
    """Add the calls of a group in which one process came later than others by more than the clock
    can be wrong.
    """
    owner, pieces = of_ranks
    shift = np.array([clock.shift_ns[position] for position in group.ranks])
    common = group.start - shift
    latest = common.argmax(axis=1)
    for call, (start, lasting, last) in enumerate(
        zip(group.start.tolist(), group.dur.tolist(), latest.tolist(), strict=True)
    ):
        came = common[call, last]
        late = owner[group.ranks[last]]
        their = pieces[late].get((start[last], lasting[last]))
        if their is None:
            continue
        for column, position in enumerate(group.ranks):
            own = pieces[owner[position]].get((start[column], lasting[column]))
            waits = common[call, column] + clock.bound_ns < came
            if own is not None and waits and came <= common[call, column] + lasting[column]:
                made[owner[position], own] = Latest((late, their), start[last], first + call)
