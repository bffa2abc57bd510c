"""The path of a process that goes on at other processes: where it leads through a collective that
waited for a rank, it continues with what that rank did until it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.graph import OWN, Graph
from profharness.analysis.critical.meetings import Latest, Met
from profharness.analysis.critical.segments import HOST, Segments, segments_of
from profharness.analysis.critical.walk import Edges
from profharness.analysis.host.kinds import Kind
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a path that lies on one process (its place in the list of graphs): segments on the
    clock of the process whose path it is. Their names are codes of `place`'s trace.
    """

    place: int
    segments: Segments


class Walks:
    """Paths over a list of processes that meet."""

    def __init__(self, graphs: Sequence[Graph], met: Met) -> None:
        self._graphs, self._met = graphs, met
        self._causes: dict[int, list[int]] = {}

    def path_of(self, first: int) -> list[Stretch]:
        """The path of a process, from its window's start to its end, in order of time."""
        graph, done = self._graphs[first], set[int]()
        begin = graph.scope.start
        stretches: list[Stretch] = []
        place, node = first, graph.last
        while True:
            line, latest = self._along(place, node, done)
            ahead = self._ahead(place, first)
            edges = self._edges(place, line, latest, begin - ahead)
            found = segments_of(self._graphs[place], edges)
            stretches.append(Stretch(place, _moved(found, ahead)))
            if latest is None:
                break
            done.add(latest.call)
            place, node = latest.place
            if latest.start_ns + self._ahead(place, first) <= begin:
                break
        stretches = [part for part in reversed(stretches) if len(part.segments)]
        came = int(stretches[0].segments.start[0]) if stretches else graph.scope.end
        if came > begin:
            stretches.insert(0, Stretch(place, _nothing(begin, came)))
        return stretches

    def _ahead(self, place: int, first: int) -> int:
        """What to add to times of a process to have them on the first one's clock."""
        shift = self._met.shift_ns
        return 0 if place == first else shift.get(first, 0) - shift.get(place, 0)

    def _along(self, place: int, node: int, done: set[int]) -> tuple[list[int], Latest | None]:
        """The nodes from one backwards, up to a collective that waited for another process (with
        the piece that it waited for), or to the beginning.
        """
        causes = self._bound(place)
        waited = self._met.waited_for
        line: list[int] = []
        while node != NULL:
            line.append(node)
            latest = waited.get((place, node))
            if latest is not None and latest.call not in done:
                return line, latest
            node = causes[node]
        return line, None

    def _bound(self, place: int) -> list[int]:
        if place not in self._causes:
            graph = self._graphs[place]
            binding = graph.binding[None, :].astype(np.int64)
            bound = np.take_along_axis(graph.cause, binding, axis=0)[0]
            self._causes[place] = bound.tolist()
        return self._causes[place]

    def _edges(self, place: int, line: list[int], latest: Latest | None, begin: int) -> Edges:
        """The edges between nodes, not before the window's start; at a collective that waited, the
        time from the other's arrival on.
        """
        graph = self._graphs[place]
        nodes = np.array(line[::-1], np.int64)
        later, earlier = nodes[1:], nodes[:-1]
        start, end = graph.time[earlier], graph.time[later]
        column = graph.binding[later].astype(np.int64)
        if latest is not None:
            other = latest.place[0]
            arrived = latest.start_ns + self._ahead(other, place)
            last = nodes[:1]
            later = np.concatenate((last, later))
            began = np.where(last < 2 * graph.works, last - graph.works, last)
            earlier = np.concatenate((began, earlier))
            start = np.concatenate(([arrived], start))
            end = np.concatenate((graph.time[last], end))
            column = np.concatenate(([OWN], column))
        start = np.maximum(start, begin)
        keep = end > start
        return Edges(later[keep], earlier[keep], column[keep], start[keep], end[keep])


def _moved(found: Segments, ahead: int) -> Segments:
    return Segments(
        found.start + ahead,
        found.end + ahead,
        found.kind,
        found.name,
        found.operator,
        found.place,
        found.where,
    )


def _nothing(start: int, end: int) -> Segments:
    """Time before anything that the other process recorded."""
    one, none = np.ones(1, np.int64), np.full(1, NULL, np.int64)
    return Segments(
        start * one, end * one, int(Kind.NOTHING) * one, none, none, HOST * one, 0 * one
    )
