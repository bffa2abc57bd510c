"""Collectives at which several processes meet: which of them came last to each, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profharness.analysis.communication.clocks import CommonClock, common_clock
from profharness.analysis.communication.collectives import Arrivals, arrivals, relabelled
from profharness.analysis.communication.matching import Matched, matched, meeting
from profharness.analysis.communication.waits import awaited
from profharness.analysis.critical.classes import COLLECTIVE
from profharness.analysis.critical.graph import Graph
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.records import Meetings
from profharness.analysis.critical.segments import work_classes

I64 = npt.NDArray[np.int64]
Place = tuple[int, int]
"""A process (by its place in a list of graphs) and a node of its graph."""


@dataclass(frozen=True)
class Latest:
    """Where the process that came last to a collective came to it, and when, in ns of its clock."""

    place: Place
    start_ns: int
    call: int
    """The number of the call."""


@dataclass(frozen=True)
class Met:
    """What several processes have in common. `waited_for` has, for each end of a collective whose
    process came earlier than another, the latest one; `shift_ns` is what to take off each process's
    clock.
    """

    waited_for: dict[Place, Latest] = field(default_factory=dict)
    shift_ns: dict[int, int] = field(default_factory=dict)
    told: Meetings | None = None

    def arrivals_of(self, place: int) -> dict[int, int]:
        """When the last process came to the collectives that a process waited in, by the node of
        their end, in ns of its own clock.
        """
        ahead = {
            other: self.shift_ns.get(place, 0) - shift for other, shift in self.shift_ns.items()
        }
        return {
            node: latest.start_ns + ahead.get(latest.place[0], 0)
            for (owner, node), latest in self.waited_for.items()
            if owner == place
        }


def meetings(graphs: Sequence[Graph]) -> Met:
    """The meetings of several processes of one pass and point; empty for one alone."""
    if len(graphs) < 2:
        return Met()
    parts: list[tuple[str, Sequence[Arrivals]]] = []
    owner: list[int] = []
    for place, graph in enumerate(graphs):
        of_process = arrivals(graph.scope.trace)
        parts.append((str(place), of_process))
        owner += [place] * len(of_process)
    ranks = relabelled(parts)
    groups, _ = matched(ranks)
    if not groups:
        return Met()
    clock = common_clock(ranks, groups)
    made: dict[Place, Latest] = {}
    ends = [_Ends(graph) for graph in graphs]
    calls = 0
    for group in groups:
        if clock.knows(group.ranks):
            _add(made, group, (owner, ends), ranks, clock, calls)
            calls += len(group.start)
    told = Meetings(calls=calls, shared_clock=clock.shared, bound_ns=clock.constant_ns)
    shift = {owner[position]: ns for position, ns in clock.shift_ns.items()}
    return Met(made, shift, told)


Key = tuple[int, int]
"""Start and length of a collective as recorded."""


class _Ends:
    """The nodes at which collectives inside of a process's window begin and end: a device's work,
    or where the main thread handed one over on the CPU, and where it had waited for its end.
    """

    def __init__(self, graph: Graph) -> None:
        scope, works = graph.scope, graph.works
        start, end = scope.records.start[scope.work], scope.records.end[scope.work]
        inside = (start >= scope.start) & (end <= scope.end)
        found = np.flatnonzero((work_classes(scope) == COLLECTIVE) & inside)
        keys = _keys(start[found], end[found])
        self.first: dict[Key, int] = dict(zip(keys, found.tolist(), strict=True))
        self.last: dict[Key, int] = dict(zip(keys, (works + found).tolist(), strict=True))
        self.since: dict[Key, int] = dict(zip(keys, start[found].tolist(), strict=True))
        """When the process began to wait, in ns of its own clock."""
        points, marks = graph.points, scope.trace.marks
        for role, into in ((Role.ARRIVE, self.first), (Role.MET, self.last)):
            nodes = np.flatnonzero(points.role == role)
            begun = marks.start_ns[points.mark[nodes]]
            of_marks = _keys(begun, begun + marks.dur_ns[points.mark[nodes]])
            into.update(zip(of_marks, (2 * works + nodes).tolist(), strict=True))
            if role == Role.MET:
                waits_from = points.waits_from[nodes].tolist()
                self.since.update(zip(of_marks, waits_from, strict=True))


def _keys(start: I64, end: I64) -> list[Key]:
    return list(zip(start.tolist(), (end - start).tolist(), strict=True))


def _add(
    made: dict[Place, Latest],
    group: Matched,
    of_ranks: tuple[list[int], list[_Ends]],
    ranks: Sequence[Arrivals],
    clock: CommonClock,
    first: int,
) -> None:
    """Add the calls of a group in which one process waited for another that came later by more than
    the clock can be wrong.
    """
    owner, ends = of_ranks
    shifts = clock.shift_ns
    common = group.start - np.array([shifts[position] for position in group.ranks])
    waited_for = awaited(common, common + group.dur, meeting(group, ranks))
    calls, columns = np.nonzero(waited_for != np.arange(len(group.ranks))[None, :])
    lasts = waited_for[calls, columns]
    for call, column, last in zip(calls.tolist(), columns.tolist(), lasts.tolist(), strict=True):
        came, position = common[call, last], group.ranks[column]
        late, of_own = owner[group.ranks[last]], ends[owner[position]]
        their = ends[late].first.get((int(group.start[call, last]), int(group.dur[call, last])))
        key = int(group.start[call, column]), int(group.dur[call, column])
        own = of_own.last.get(key)
        if their is None or own is None:
            continue
        since = of_own.since[key] - shifts[position] + clock.constant_ns
        if since < came <= common[call, column] + key[1]:
            start = int(group.start[call, last])
            made[owner[position], own] = Latest((late, their), start, first + call)
