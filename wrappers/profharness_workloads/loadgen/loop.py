"""One client process: keeps requests in flight (closed loop) or sends them when they are due (open
loop).

A single thread over epoll. Each connection carries one request at a time, as a client would. Every
request becomes a row of eight int64 in the records file; nothing else is computed while load runs.
Times are CLOCK_MONOTONIC ns.
"""

from __future__ import annotations

import collections
import gc
import heapq
import select
import time
from time import perf_counter_ns
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from profharness_workloads.loadgen import board
from profharness_workloads.loadgen.client_plan import Plan
from profharness_workloads.loadgen.connection import (
    ANSWERED,
    CLOSED,
    CONNECTED,
    OPEN,
    Connection,
    Lost,
)
from profharness_workloads.loadgen.messages import Message
from profharness_workloads.loadgen.request_rows import (
    CANCELLED,
    FAILED,
    OK,
    SEQUENCES,
    TIMED_OUT,
    RequestRows,
)

LONGEST_WAIT_NS = 50_000_000  # the parent's word is heard at least this often
FIRST_PAUSE_NS, LONGEST_PAUSE_NS = 10_000_000, 500_000_000  # after a failure, before the next try
MOST_CONNECTIONS = 900  # below the usual limit of open files


class Loop:
    """Runs until the board says STOP and nothing is in flight any more, or the drain time is
    over.
    """

    def __init__(self, plan: Plan, common: Any, mine: Any, say: Any):
        self._plan, self._common, self._mine, self._say = plan, common, mine, say
        self._poller = select.epoll()
        self._by_fd: Dict[int, Connection] = {}
        self._all: List[Connection] = []
        self._free: List[Connection] = []
        self._opening: Set[Connection] = set()
        self._backlog: Deque[int] = collections.deque()
        self._timers: List[Tuple[int, int, Connection]] = []
        self._pauses: Dict[Connection, int] = {}
        self._messages: Dict[int, Sequence[Message]] = {}
        self._count, self._timer_count = plan.first, 0
        self._in_flight = 0
        self._rows = RequestRows(plan.records)
        self._row = self._rows.add
        self._instants: Optional[Iterator[int]] = None
        self._next_ns = 0
        self._look_ns = 0
        self._sending = False
        self._replayed = False

    def run(self) -> None:
        """The whole life of a client process. Raises Lost when not one connection could be made at
        the start.
        """
        self._connect_all()
        self._mine[board.READY] = 1
        while not self._common[board.START_NS]:
            if self._common[board.PHASE] == board.STOP:
                return
            self._step(perf_counter_ns() + 1_000_000)
        start = self._common[board.START_NS]
        while perf_counter_ns() < start:
            time.sleep(max(0, start - perf_counter_ns()) / 1e9)
        gc.collect()
        gc.disable()
        self._sending = True
        self._begin(start)
        while self._common[board.PHASE] != board.STOP:
            self._turn()
        self._drain()

    # connections

    def _connect_all(self) -> None:
        plan = self._plan
        for slot in range(plan.slots):
            self._new(slot)
        deadline = perf_counter_ns() + plan.timeout_ns
        while (
            any(connection.state not in (OPEN, CLOSED) for connection in self._all)
            and perf_counter_ns() < deadline
        ):
            if self._common[board.PHASE] == board.STOP:
                return
            self._step(min(deadline, perf_counter_ns() + LONGEST_WAIT_NS))
        if plan.slots and not any(connection.state == OPEN for connection in self._all):
            self._say("no connection in %g s" % (plan.timeout_ns / 1e9))
            raise Lost("no connection to %s" % ", ".join(target.name for target in plan.targets))

    def _new(self, slot: int) -> Connection:
        plan = self._plan
        server = (slot * plan.clients + plan.client) % len(plan.targets)
        connection = Connection(plan.targets[server], server, self._poller)
        connection.slot = slot
        if slot not in self._messages:
            self._messages[slot] = plan.messages(slot * plan.clients + plan.client)
        self._all.append(connection)
        self._mine[board.CONNECTIONS] = len(self._all)
        self._open(connection)
        return connection

    def _open(self, connection: Connection) -> None:
        connection.sent_ns = perf_counter_ns()
        try:
            connection.open()
            self._by_fd[connection.fd] = connection
            self._opening.add(connection)
        except (Lost, OSError) as error:
            self._lost(connection, str(error), FAILED)

    def _lost(self, connection: Connection, why: str, status: int) -> None:
        """Record the request that was on it, close it, and try again after a pause that grows."""
        self._say(why)
        if connection.busy:
            self._finish(connection, status)
        elif (
            connection.state != OPEN and self._sending
        ):  # a client that gets no connection gets no answer either
            self._in_flight += 1
            connection.sequence, connection.intended_ns = self._number(), connection.sent_ns
            self._finish(connection, status)
        self._drop(connection)
        if self._sending:
            self._again(connection, perf_counter_ns())

    def _again(self, connection: Connection, now_ns: int) -> None:
        """The next try on this connection, after a pause that doubles from failure to failure."""
        pause = self._pauses.get(connection, FIRST_PAUSE_NS)
        self._pauses[connection] = min(2 * pause, LONGEST_PAUSE_NS)
        connection.think_ns = pause
        self._at(now_ns + pause, connection)

    def _number(self) -> int:
        self._count += 1
        return self._plan.client * SEQUENCES + self._count - 1

    def _drop(self, connection: Connection) -> None:
        self._by_fd.pop(connection.fd, None)
        self._opening.discard(connection)
        if self._free and connection in self._free:
            self._free.remove(connection)
        self._count_bytes(connection)
        connection.close()

    def _count_bytes(self, connection: Connection) -> None:
        self._mine[board.TRANSMITTED] += connection.transmitted
        self._mine[board.RECEIVED] += connection.received
        connection.transmitted = connection.received = 0

    # time

    def _at(self, when_ns: int, connection: Connection) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (when_ns, self._timer_count, connection))

    def _begin(self, start_ns: int) -> None:
        plan = self._plan
        if plan.arrivals is None:
            for connection in self._all:
                if connection.state == OPEN:
                    self._send(connection, perf_counter_ns(), 0)
                elif connection.state == CLOSED:
                    self._at(start_ns, connection)
        else:
            self._free = [connection for connection in self._all if connection.state == OPEN]
            self._schedule(start_ns)

    def _schedule(self, start_ns: int) -> None:
        plan = self._plan
        assert plan.arrivals is not None
        self._instants = plan.arrivals.instants(start_ns, plan.client, plan.clients)
        self._next_ns = next(self._instants)

    def _turn(self) -> None:
        """One round of the loop: due arrivals and timers, then whatever the sockets bring until the
        next of them.
        """
        now = perf_counter_ns()
        until = now + LONGEST_WAIT_NS
        if self._instants is not None:
            if not self._replayed and self._common[board.WINDOW_NS]:
                self._replayed = True
                self._schedule(
                    self._common[board.WINDOW_NS]
                )  # the window begins with the schedule's beginning
            while self._next_ns <= now:
                self._arrive(self._next_ns)
                self._next_ns = next(self._instants)
            until = min(until, self._next_ns)
        self._due(now)
        if self._timers:
            until = min(until, self._timers[0][0])
        if now >= self._look_ns:
            self._overdue(now)
        self._step(until)

    def _due(self, now: int) -> None:
        while self._timers and self._timers[0][0] <= now:
            when, _, connection = heapq.heappop(self._timers)
            if connection.state == CLOSED:
                self._open(connection)
            elif connection.state == OPEN and not connection.busy:
                if self._plan.arrivals is None:
                    self._send(connection, when, connection.think_ns)
                else:
                    self._idle(connection)

    def _overdue(self, now: int) -> None:
        """Give up requests, and connections being made, that have waited for too long."""
        limit = self._plan.timeout_ns
        self._look_ns = now + max(1_000_000, min(limit // 20, 50_000_000))
        for connection in self._all:
            waits = connection.busy or connection in self._opening
            if waits and now - connection.sent_ns > limit:
                self._lost(connection, "no answer within %g s" % (limit / 1e9), TIMED_OUT)
        while self._backlog and now - self._backlog[0] > limit:
            self._unsent(self._backlog.popleft(), now, TIMED_OUT)
            self._mine[board.FAILED] += 1

    def _step(self, until_ns: int) -> None:
        """Wait for the sockets until then at most, and take what they bring."""
        wait = until_ns - perf_counter_ns()
        if self._instants is None and not self._timers:
            events = self._poller.poll(max(0.0, wait / 1e9))
        else:  # epoll rounds up to milliseconds, select does not
            if wait > 0:
                select.select([self._poller.fileno()], [], [], wait / 1e9)
            events = self._poller.poll(0)
        for fd, _ in events:
            connection = self._by_fd.get(fd)
            if connection is None:
                continue
            try:
                became = connection.on_event()
            except Lost as lost:
                self._lost(connection, str(lost), FAILED)
                continue
            if became == ANSWERED:
                self._answered(connection)
            elif became == CONNECTED:
                self._connected(connection)

    # requests

    def _connected(self, connection: Connection) -> None:
        self._opening.discard(connection)
        if not self._sending:
            return
        if self._plan.arrivals is None:
            self._send(connection, perf_counter_ns(), connection.think_ns)
        else:
            self._idle(connection)

    def _arrive(self, intended_ns: int) -> None:
        if self._free:
            self._send(self._free.pop(), intended_ns, 0)
            return
        self._backlog.append(intended_ns)
        if (
            len(self._opening) < len(self._backlog)
            and len(self._all) * self._plan.clients < MOST_CONNECTIONS
        ):
            self._new(len(self._all))

    def _idle(self, connection: Connection) -> None:
        """An open loop's connection is free: the request that waits longest goes on it."""
        if self._backlog:
            self._send(connection, self._backlog.popleft(), 0)
        else:
            self._free.append(connection)

    def _send(self, connection: Connection, intended_ns: int, think_ns: int) -> None:
        plan = self._plan
        messages = self._messages[connection.slot]
        message = messages[self._count % len(messages)]
        sequence = self._number()
        head, payload, length = message.parts(sequence if plan.numbered else -1)
        codec: Any = connection.codec
        data = codec.begin(head, payload) if length < 0 else codec.begin(head, payload, length)
        connection.busy, connection.sequence, connection.items = True, sequence, message.items
        connection.intended_ns, connection.think_ns = intended_ns, think_ns
        self._in_flight += 1
        connection.sent_ns = perf_counter_ns()
        try:
            connection.send(data)
        except Lost as lost:
            self._lost(connection, str(lost), FAILED)

    def _answered(self, connection: Connection) -> None:
        if not connection.busy:
            return
        error = connection.codec.error
        if error:
            self._say(error)
        done_ns = self._finish(connection, FAILED if error else OK)
        if not connection.codec.usable:
            self._drop(connection)
        if not self._sending:
            return
        if error and self._plan.arrivals is None:
            self._again(connection, done_ns)
            return
        if self._pauses:
            self._pauses.pop(connection, None)
        connection.think_ns = self._plan.think_ns
        if connection.state == CLOSED or connection.think_ns:
            self._at(done_ns + connection.think_ns, connection)
        elif self._plan.arrivals is not None:
            self._idle(connection)
        else:
            self._send(connection, done_ns, 0)

    def _finish(self, connection: Connection, status: int) -> int:
        done_ns = perf_counter_ns()
        connection.busy = False
        self._in_flight -= 1
        self._row(
            connection.sequence,
            connection.intended_ns,
            connection.sent_ns,
            done_ns,
            connection.items,
            status,
            connection.think_ns,
            connection.server,
        )
        numbers = self._mine
        if status == OK:
            numbers[board.DONE] += 1
            numbers[board.LATENCY_NS] += done_ns - connection.sent_ns
        else:
            numbers[board.FAILED] += 1
        numbers[board.TRANSMITTED] += connection.transmitted
        numbers[board.RECEIVED] += connection.received
        connection.transmitted = connection.received = 0
        return done_ns

    def _unsent(self, intended_ns: int, now_ns: int, status: int) -> None:
        """A request that was due and never got onto a connection."""
        items = self._messages[0][0].items if self._messages else 1
        self._row(self._number(), intended_ns, now_ns, now_ns, items, status, 0, 0)

    # the end

    def _drain(self) -> None:
        """No more is sent; what is in flight may come back until the drain time, and is recorded as
        cancelled after it.

        So is what was due later, after a pause: the pause is part of the window.
        """
        self._sending = False
        thinking = self._timers
        self._timers, self._instants = [], None
        while self._in_flight and perf_counter_ns() < self._common[board.DRAIN_NS]:
            self._step(min(self._common[board.DRAIN_NS], perf_counter_ns() + LONGEST_WAIT_NS))
        now = perf_counter_ns()
        self._mine[board.UNSENT] = len(self._backlog)
        for intended in self._backlog:
            self._unsent(intended, now, CANCELLED)
        for when, _, late in thinking:
            self._row(
                self._number(), when, now, now, late.items, CANCELLED, late.think_ns, late.server
            )
        for connection in self._all:
            if connection.busy:
                self._row(
                    connection.sequence,
                    connection.intended_ns,
                    connection.sent_ns,
                    now,
                    connection.items,
                    CANCELLED,
                    connection.think_ns,
                    connection.server,
                )
            self._drop(connection)
        self._rows.close()
