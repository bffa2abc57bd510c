"""The instants of host threads at which something starts or ends a wait: launches, calls that wait
for the device, and the backward pass on a thread of its own.

Between two points of a thread the host goes on by itself. Only threads matter that launched work of
the window, and the main thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.arrivals import Arrivals, middle
from profharness.analysis.critical.backward import Handed, handed_over
from profharness.analysis.critical.host_collectives import HostCollectives, host_collectives
from profharness.analysis.critical.scope import Scope
from profharness.analysis.critical.waits import waits
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Role(IntEnum):
    """What happens at a point, in the order in which points of one instant stand."""

    BEGIN = 0
    MET = 1
    """A collective on the CPU that the main thread waited for ends."""
    RETURN = 2
    """A call that waits for the device returns."""
    ROOM = 3
    """A launch returns, since the queue has room again."""
    RESUME = 4
    """The main thread goes on after other threads' backward pass."""
    DONE = 5
    """The last row of a stretch of backward pass ends."""
    ENTER = 6
    """A thread begins, or goes on, with what the main thread gave it."""
    CALL = 7
    """A call that waits for the device begins."""
    LAUNCH = 8
    ARRIVE = 9
    """The main thread hands a collective on the CPU over."""
    END = 10


@dataclass(frozen=True, eq=False)
class HostPoints:
    """Points of all threads: the main thread's first, each thread's in order. `call` is the row of
    the launching or waiting call. `before` is the point that the host came from, `lag` how long it
    takes from there; `after_work` a position in `Scope.work`, `after_point` another thread's point
    that it waited for, and `return_ns` how long the return takes after it.
    """

    time: I64
    thread: I64
    role: I64
    call: I64
    before: I64
    lag: I64
    after_work: I64
    after_point: I64
    return_ns: I64
    mark: I64
    """The row in the trace's marks of the collective on the CPU, at its ends."""
    waits_from: I64
    """Since when the main thread waited for it, where it did."""
    last: int
    """The last point of the main thread."""


@dataclass
class _Found:
    """Points as they are found."""

    time: list[I64] = field(default_factory=list)
    thread: list[I64] = field(default_factory=list)
    role: list[I64] = field(default_factory=list)
    call: list[I64] = field(default_factory=list)
    work: list[I64] = field(default_factory=list)
    """What stands behind a point: device work, a stretch of backward pass, or a collective."""

    def add(
        self, role: Role, time: I64, thread: I64, call: I64 | None = None, work: I64 | None = None
    ) -> None:
        none = np.full(len(time), NULL, np.int64)
        self.time.append(time)
        self.thread.append(thread)
        self.role.append(np.full(len(time), int(role), np.int64))
        self.call.append(none if call is None else call)
        self.work.append(none if work is None else work)


def host_points(scope: Scope, arrived: Arrivals) -> HostPoints:
    """The points of the window, chained."""
    found = _Found()
    main = np.array([scope.main], np.int64)
    of_call = _threads_of_calls(scope)
    launches = np.unique(arrived.call[(arrived.call != NULL) & (arrived.launched >= scope.start)])
    launching = of_call[launches]
    found.add(Role.LAUNCH, scope.records.api.start_ns[launches], launching, launches)
    waiting = waits(scope, arrived)
    waiting = waiting.at(np.isin(of_call[waiting.call], np.concatenate((main, launching))))
    thread = of_call[waiting.call]
    found.add(Role.CALL, waiting.start, thread, waiting.call)
    for role, mask in ((Role.RETURN, ~waiting.for_room), (Role.ROOM, waiting.for_room)):
        found.add(role, waiting.end[mask], thread[mask], waiting.call[mask], waiting.work[mask])
    handed = handed_over(scope)
    found.add(Role.ENTER, handed.start, handed.thread)
    found.add(Role.DONE, handed.end, handed.thread)
    resumed = np.flatnonzero(handed.resume != NULL)
    found.add(Role.RESUME, handed.resume[resumed], np.repeat(main, len(resumed)), None, resumed)
    collectives = host_collectives(scope)
    number = np.arange(len(collectives.mark))
    met = np.flatnonzero(collectives.waits_from != NULL)
    found.add(Role.ARRIVE, collectives.start, np.repeat(main, len(number)), None, number)
    found.add(Role.MET, collectives.end[met], np.repeat(main, len(met)), None, met)
    _add_ends(scope, found)
    return _chained(scope, arrived, found, (handed, collectives))


def _threads_of_calls(scope: Scope) -> I64:
    """The thread of each call, a number of `HostRows.thread`; NULL where it has no row."""
    api, owners = scope.records.api, scope.rows.owners
    if not len(api):
        return np.empty(0, np.int64)
    known = {tuple(owner): number for number, owner in enumerate(owners.tolist())}
    keys = np.stack((scope.rows.recording[api.source], api.pid, api.tid), axis=1)
    first, place = first_rows(pack([keys[:, 0], keys[:, 1], keys[:, 2]]))
    numbers = np.array([known.get(tuple(key), NULL) for key in keys[first].tolist()], np.int64)
    found: I64 = numbers[place]
    return found


def _add_ends(scope: Scope, found: _Found) -> None:
    """The main thread's first and last point, and the first one of each other thread."""
    time, thread = np.concatenate(found.time), np.concatenate(found.thread)
    main = np.array([scope.main], np.int64)
    found.add(Role.BEGIN, np.array([scope.start], np.int64), main)
    found.add(Role.END, np.array([scope.host_end], np.int64), main)
    others = np.unique(thread[thread != scope.main])
    first = []
    for number in others.tolist():
        mine = (scope.rows.thread == number) & (scope.rows.end > scope.start)
        begun = scope.rows.start[mine].min(initial=int(time[thread == number].min()))
        first.append(max(int(begun), scope.start))
    found.add(Role.ENTER, np.array(first, np.int64), others)


def _chained(
    scope: Scope, arrived: Arrivals, found: _Found, behind: tuple[Handed, HostCollectives]
) -> HostPoints:
    """The points in order, each with what the host came from."""
    handed, collectives = behind
    columns = [
        np.concatenate(column)
        for column in (found.time, found.thread, found.role, found.call, found.work)
    ]
    time, thread, role = columns[:3]
    keep = (time <= scope.host_end) | (thread != scope.main)
    order = np.flatnonzero(keep)
    order = order[
        np.lexsort((role[order], time[order], thread[order], thread[order] != scope.main))
    ]
    time, thread, role, call, ref = (column[order] for column in columns)
    before = np.arange(len(time)) - 1
    entered = role == Role.ENTER
    of_main = time[thread == scope.main]
    before[entered] = np.searchsorted(of_main, time[entered], "right") - 1
    lag = np.where(before >= 0, time - time[np.maximum(before, 0)], 0)
    after_work = np.where((role == Role.RETURN) | (role == Role.ROOM), ref, NULL)
    lag, return_ns = _returns(arrived, (time, before, role), after_work, lag)
    after_point = np.full(len(time), NULL, np.int64)
    done = np.flatnonzero(role == Role.DONE)
    for point in np.flatnonzero(role == Role.RESUME).tolist():
        part = ref[point]
        after_point[point] = done[
            (thread[done] == handed.thread[part]) & (time[done] == handed.end[part])
        ][0]
        own = handed.first[part] - time[before[point]]
        lag[point] = min(max(int(own), 0), int(lag[point]))
        return_ns[point] = time[point] - handed.end[part]
    last = int(np.flatnonzero(role == Role.END)[0])
    mark, waits_from = _of_collectives(role, ref, collectives)
    return HostPoints(
        time, thread, role, call, before, lag, after_work, after_point, return_ns, mark,
        waits_from, last,
    )  # fmt: skip


def _of_collectives(role: I64, ref: I64, collectives: HostCollectives) -> tuple[I64, I64]:
    """The mark of the collective at each point, and since when the main thread waited for it."""
    ends = (role == Role.ARRIVE) | (role == Role.MET)
    if not ends.any():
        return np.full(len(role), NULL, np.int64), np.full(len(role), NULL, np.int64)
    number = np.where(ends, ref, 0)
    waits_from = np.where(role == Role.MET, collectives.waits_from[number], NULL)
    return np.where(ends, collectives.mark[number], NULL), waits_from


def _returns(
    arrived: Arrivals, points: tuple[I64, I64, I64], after_work: I64, lag: I64
) -> tuple[I64, I64]:
    """How long a waiting call takes without its wait, and how long its return takes after it: as
    measured for what the call waited for longest, the usual time for the other.
    """
    time, before, role = points
    return_ns = np.zeros(len(time), np.int64)
    waited = np.flatnonzero(after_work != NULL)
    ended = arrived.end[after_work[waited]]
    came = time[before[waited]]
    bound = ended > came
    at = time[waited]
    unbound = middle((at - came)[~bound & (role[waited] == Role.RETURN)])
    usual = middle((at - ended)[bound])
    return_ns[waited] = np.where(bound, at - ended, np.minimum(usual, at - ended))
    lag = lag.copy()
    lag[waited] = np.where(bound, np.minimum(unbound, at - came), at - came)
    return lag, return_ns
