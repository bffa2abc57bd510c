"""A fleet of servers, event by event: requests come, wait in the queue of their device, are served
alone or in batches, and go.

The heap holds one entry (time, code) per coming request and per batch in service. A plain loop over
a heap simulates a million requests in seconds; a test holds it equal to SimPy.
"""

from __future__ import annotations

import heapq
import math
import random
from array import array
from bisect import bisect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from profharness.analysis.fleet.records import ClosedLoad, Fleet, Load, OpenLoad, Policy, Thinking

F64 = npt.NDArray[np.float64]
_Request = tuple[float, int]
"""When it came, and the number of its client."""


@dataclass(frozen=True, eq=False)
class Served:
    """The requests that are answered, in the order of their answers: when, after how long (both in
    s), how long all instances together had served until then, in s, and for which model.
    """

    at: F64
    latency: F64
    busy: F64
    model: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.at)


class Simulation:
    """One fleet under one load; it goes on from where it stood. The same seed gives the same
    requests.
    """

    def __init__(self, fleet: Fleet, load: Load, seed: int) -> None:
        self._fleet, self._load = fleet, load
        self._random = random.Random(seed)  # noqa: S311  no secret
        self._events: list[tuple[float, int]] = []
        kinds = range(len(fleet.models))
        self._queues: list[list[deque[_Request]]] = [
            [deque() for _ in kinds] for _ in range(fleet.devices)
        ]
        self._free = [fleet.instances] * fleet.devices
        self._inside = [0] * fleet.devices
        self._held_until = [[0.0 for _ in kinds] for _ in range(fleet.devices)]
        self._batches: dict[int, tuple[int, int, float, list[_Request]]] = {}
        self._made = 0
        self._busy = 0.0
        self._turn = 0
        self._at, self._latency, self._busy_at = array("d"), array("d"), array("d")
        self._model = array("h")
        self._pause = _pauses(load, self._random)
        self._factors = [model.scatter.draws(self._random) for model in fleet.models]
        self._shares = list(accumulate(model.share for model in fleet.models))
        self._pick = self._picker()
        self._begin()

    def _begin(self) -> None:
        load = self._load
        if isinstance(load, OpenLoad):
            heapq.heappush(self._events, (self._pause(), 0))
            return
        # clients that begin together would come together for ever where their pauses do not scatter
        fixed = load.thinking is Thinking.FIXED
        for client in range(load.clients):
            first = self._random.random() * load.think_s if fixed else self._pause()
            heapq.heappush(self._events, (first, client))

    @property
    def served(self) -> Served:
        """All requests that were answered so far."""
        return Served(
            np.array(self._at),
            np.array(self._latency),
            np.array(self._busy_at),
            np.array(self._model),
        )

    def advance(self, requests: int) -> None:
        """Go on until so many more requests are answered."""
        until = len(self._at) + requests
        events, pop, push = self._events, heapq.heappop, heapq.heappush
        pick, pause, inside = self._pick, self._pause, self._inside
        queues, free, start = self._queues, self._free, self._start
        shares, draw = self._shares, self._random.random
        is_open, mixed = isinstance(self._load, OpenLoad), len(shares) > 1
        while len(self._at) < until:
            now, code = pop(events)
            if code < 0:
                self._on_device(now, code)
                continue
            device = pick()
            inside[device] += 1
            model = bisect(shares, draw(), 0, len(shares) - 1) if mixed else 0
            queues[device][model].append((now, code))
            if free[device]:
                start(device, now)
            if is_open:
                push(events, (now + pause(), 0))

    def _on_device(self, now: float, code: int) -> None:
        """The end of a batch (odd codes), or of the time that a device holds back (even ones)."""
        number = -code
        if number % 2 == 0:
            self._start(number // 2 - 1, now)
            return
        device, model, length, requests = self._batches.pop(number // 2)
        self._free[device] += 1
        self._inside[device] -= len(requests)
        self._busy += length
        closed, outside = isinstance(self._load, ClosedLoad), self._fleet.models[model].outside_s
        for came, client in requests:
            self._at.append(now)
            self._latency.append(now - came + outside)
            self._busy_at.append(self._busy)
            self._model.append(model)
            if closed:
                heapq.heappush(self._events, (now + outside + self._pause(), client))
        if self._inside[device]:
            self._start(device, now)

    def _start(self, device: int, now: float) -> None:
        """Let free instances of the device take what waits."""
        while self._free[device]:
            kind = self._ready(device, now)
            if kind < 0:
                return
            model, queue = self._fleet.models[kind], self._queues[device][kind]
            batch = [queue.popleft() for _ in range(min(len(model.service_s), len(queue)))]
            length, factor = model.service_s[len(batch) - 1], self._factors[kind]
            if factor is not None:
                length *= factor()
            self._free[device] -= 1
            self._batches[self._made] = device, kind, length, batch
            heapq.heappush(self._events, (now + length, -2 * self._made - 1))
            self._made += 1

    def _ready(self, device: int, now: float) -> int:
        """The model whose oldest request came first, of those that need not be held back for more;
        -1 for none.
        """
        found, oldest = -1, math.inf
        for kind, queue in enumerate(self._queues[device]):
            if not queue or queue[0][0] >= oldest:
                continue
            model = self._fleet.models[kind]
            due = queue[0][0] + model.queue_delay_s
            if len(queue) < len(model.service_s) and now < due:
                held = self._held_until[device]
                if held[kind] != due:  # one entry for each request that is waited for
                    held[kind] = due
                    heapq.heappush(self._events, (due, -2 * (device + 1)))
                continue
            found, oldest = kind, queue[0][0]
        return found

    def _picker(self) -> Callable[[], int]:
        inside, count, draw = self._inside, self._fleet.devices, self._random.randrange
        policy = self._fleet.policy
        if count == 1:
            return lambda: 0
        if policy is Policy.LEAST_LOADED:
            return lambda: inside.index(min(inside))
        if policy is Policy.ROUND_ROBIN:
            return self._next_in_turn

        def of_two() -> int:
            one, other = draw(count), draw(count - 1)
            other += other >= one  # two different ones
            return one if inside[one] <= inside[other] else other

        return of_two

    def _next_in_turn(self) -> int:
        device = self._turn
        self._turn = (device + 1) % self._fleet.devices
        return device


def _pauses(load: Load, source: random.Random) -> Callable[[], float]:
    """What draws the time, in s, until the next request: of anybody, or of a client that has its
    answer.
    """
    if isinstance(load, ClosedLoad) and load.thinking is Thinking.FIXED:
        return lambda: load.think_s
    mean = 1 / load.rate if isinstance(load, OpenLoad) else load.think_s
    draw, log = source.random, math.log
    return lambda: -mean * log(1.0 - draw())
