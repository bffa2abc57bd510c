"""One window as a graph of instants: each has up to three causes, and comes when the last of them
has arrived.

Nodes are the starts of device work, its ends, and the points of host threads, in this order. Of the
causes of a node the one that arrived last binds it: its lag is what was measured. The others keep
the shortest lag that is usual for their kind, so that a rerun with other times finds the next
limit. A rerun of the graph as it is gives the measured times exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.arrivals import Arrivals, arrivals
from profharness.analysis.critical.host_points import HostPoints, Role, host_points
from profharness.analysis.critical.scope import Scope
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
I8 = npt.NDArray[np.int8]

OWN, STREAM, OTHER = 0, 1, 2
"""Columns of causes: what a start was launched by, an end's start, or the host's own previous
point; the stream's work before it, or the device work or thread that a host point waited for; work
of another stream.
"""


@dataclass(frozen=True, eq=False)
class Graph:
    """Times in ns. `cause` and `lag` have one row per column of causes (NULL: none); `binding` is
    the column that arrived last. `order` lists nodes so that causes come first.
    """

    scope: Scope
    arrived: Arrivals
    points: HostPoints
    time: I64
    cause: I64
    lag: I64
    binding: I8
    order: I64

    @property
    def works(self) -> int:
        """How many pieces of work there are: their starts come first, then their ends."""
        return len(self.arrived.start)

    @property
    def last(self) -> int:
        """The node of the last end in the window: the main thread's, or of a piece of work."""
        host = 2 * self.works + self.points.last
        if self.scope.host_end == self.scope.end and not self.scope.ends_on_device:
            return host
        ends = np.flatnonzero(self.arrived.end == self.scope.end)
        return self.works + int(ends[-1])


def graph_of(scope: Scope) -> Graph:
    """The graph of one process in its window."""
    arrived = arrivals(scope)
    points = host_points(scope, arrived)
    works = len(arrived.start)
    time = np.concatenate((arrived.start, arrived.end, points.time))
    cause = np.full((3, len(time)), NULL, np.int64)
    lag = np.zeros((3, len(time)), np.int64)
    binding = np.zeros(len(time), np.int8)
    _starts(scope, arrived, points, (cause, lag, binding))
    _ends(arrived, (cause, lag))
    _hosts(works, points, (cause, lag, binding, time))
    return Graph(scope, arrived, points, time, cause, lag, binding, _order(works, time))


def _starts(scope: Scope, arrived: Arrivals, points: HostPoints, into: tuple[I64, I64, I8]) -> None:
    """Causes of the starts of work."""
    cause, lag, binding = into
    works = len(arrived.start)
    own, came = _launch_points(arrived, points)
    before = np.where(arrived.before == NULL, NULL, works + arrived.before)
    other = np.where(arrived.awaited == NULL, NULL, works + arrived.awaited)
    never = scope.start - 1
    ended = np.where(arrived.before == NULL, never, arrived.end[np.maximum(arrived.before, 0)])
    awaited = np.where(arrived.awaited == NULL, never, arrived.end[np.maximum(arrived.awaited, 0)])
    alone = (arrived.call == NULL) & (before == NULL) & (other == NULL)
    own = np.where((arrived.call != NULL) | alone, own, NULL)
    reached = np.stack((came, ended, awaited))
    usual = np.array([[arrived.latency_ns], [arrived.gap_ns], [arrived.gap_ns]])
    causes = np.stack((own, before, other))
    arrival = np.where(causes == NULL, never, np.minimum(reached + usual, arrived.start))
    column = np.argmax(arrival[[STREAM, OTHER, OWN]], axis=0)
    binding[:works] = np.array([STREAM, OTHER, OWN], np.int8)[column]
    measured = arrived.start - reached
    bound = np.arange(3)[:, None] == binding[:works]
    cause[:, :works] = causes
    lag[:, :works] = np.where(bound, measured, np.minimum(usual, measured))


def _launch_points(arrived: Arrivals, points: HostPoints) -> tuple[I64, I64]:
    """The node at which each piece was launched, and its time; the window's first point for what
    was launched before it.
    """
    works = len(arrived.start)
    calls = np.flatnonzero(points.call != NULL)
    calls = calls[points.role[calls] == Role.LAUNCH]
    order = calls[np.argsort(points.call[calls], kind="stable")]
    node = np.zeros(works, np.int64)
    if len(order):
        place = np.minimum(np.searchsorted(points.call[order], arrived.call), len(order) - 1)
        node = np.where(points.call[order][place] == arrived.call, order[place], 0)
    return 2 * works + node, points.time[node]


def _ends(arrived: Arrivals, into: tuple[I64, I64]) -> None:
    cause, lag = into
    works = len(arrived.start)
    cause[OWN, works : 2 * works] = np.arange(works)
    lag[OWN, works : 2 * works] = arrived.end - arrived.start


def _hosts(works: int, points: HostPoints, into: tuple[I64, I64, I8, I64]) -> None:
    """Causes of host points: their thread, and what they waited for."""
    cause, lag, binding, time = into
    first = 2 * works
    own = np.where(points.before == NULL, NULL, first + points.before)
    awaited = np.where(
        points.after_point != NULL,
        first + points.after_point,
        np.where(points.after_work != NULL, works + points.after_work, NULL),
    )
    cause[OWN, first:], cause[STREAM, first:] = own, awaited
    lag[OWN, first:], lag[STREAM, first:] = points.lag, points.return_ns
    came = np.where(own == NULL, time[first], time[np.maximum(own, 0)])
    waited = (awaited != NULL) & (time[np.maximum(awaited, 0)] > came)
    binding[first:] = np.where(waited, STREAM, OWN)


def _order(works: int, time: I64) -> I64:
    """By time; at one instant the host before devices, and pieces in their order, each start before
    its end.
    """
    rank = np.concatenate((np.arange(works) * 2, np.arange(works) * 2 + 1))
    hosts = np.arange(len(time) - 2 * works) - (len(time) - 2 * works)
    order: I64 = np.lexsort((np.concatenate((rank, hosts)), time))
    return order
