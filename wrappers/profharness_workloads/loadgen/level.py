"""One level from start to end: warm up until it is steady, measure a window, stop; what was counted
becomes its report.
"""

from __future__ import annotations

import math
import os
import time
from time import perf_counter_ns
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.loadgen.client_plan import Plan
from profharness_workloads.loadgen.crew import Crew, LevelFailed
from profharness_workloads.loadgen.request_rows import CANCELLED, OK
from profharness_workloads.loadgen.server_side import ServerCpu, Stats, added, growth, statistics
from profharness_workloads.loadgen.settings import Level, Server
from profharness_workloads.loadgen.steady import Settling, Storm
from profharness_workloads.loadgen.window import Windows

LOOK_S = 0.05
WANTED_NS = 1_000_000_000
WARM_UP_CAP, WINDOW_CAP = (
    3,
    4,
)  # a warm-up, and a window that waits for its requests, last at most so many times the asked
LEAST_WINDOW_NS = 500_000_000  # before that no level is given up for its rate
READY_LIMIT_S, DRAIN_S = 20.0, 2.0
OPEN_AHEAD_NS = (
    100_000_000  # an open loop's schedule begins with the window: all clients must know it before
)
LATE_NS, LATE_SHARE = 1_000_000, 0.05  # a send is late beyond 1 ms and 5 % of the median latency
COLUMNS = 8
INTENDED, SENT, DONE, ITEMS, STATUS = 1, 2, 3, 4, 5

Wanted = Callable[[], None]


class Report(NamedTuple):
    """The level as the result line carries it, and words for its notes."""

    level: Dict[str, Any]
    notes: Dict[str, str]
    answered: int


class _Mark(NamedTuple):
    """Everything that is counted from outside, at one end of the window."""

    cpu_ns: int
    server_cpu_ns: Optional[int]
    transmitted: int
    received: int


class Surroundings(NamedTuple):
    """What a level needs beside its clients."""

    servers: Sequence[Server]
    windows: Windows
    still_wanted: Wanted


def run_level(level: Level, plans: Sequence[Plan], around: Surroundings) -> Report:
    """Run one level. Raises LevelFailed when it cannot be measured: no connection, a client that
    died, most requests failing.
    """
    in_flight = level.concurrency if level.mode == "closed" else 1
    with Crew(plans) as crew:
        start = crew.start(READY_LIMIT_S + plans[0].timeout_ns / 1e9, around.still_wanted)
        watch = _Watch(crew, start, around.still_wanted)
        settling = Settling(start, int(level.warmup_s * 1e9), in_flight)
        steady = watch.warm_up(level, settling)
        began = perf_counter_ns()
        notes = {}
        if not around.windows.announce("open", "opened", level.id, around.still_wanted):
            notes["window"] = "the server did not answer the opening of the window"
        watch.resume()
        before = [statistics(server) for server in around.servers]
        opened = crew.open_window(OPEN_AHEAD_NS if level.mode == "open" else 0)
        time.sleep(max(0, opened - perf_counter_ns()) / 1e9)
        first = _mark(crew, around.servers)
        closed, hopeless = watch.window(level, opened, int(level.seconds * 1e9))
        last = _mark(crew, around.servers)
        after = [statistics(server) for server in around.servers]
        crew.stop(min(DRAIN_S, plans[0].timeout_ns / 1e9))
        failures = crew.first_failures
    if not around.windows.announce("close", "closed", level.id, around.still_wanted):
        notes["window"] = "the server did not answer the end of the window"
    if failures:
        notes["said"] = failures[0]
    if hopeless:
        notes["ended_early"] = hopeless
    counts = _counted([plan.records for plan in plans], opened, closed)
    stats = added([growth(start_stats, end_stats) for start_stats, end_stats in zip(before, after)])
    report = _report(level, plans, (opened, closed), (first, last), stats)
    report.update(counts.as_level(level.mode), steady=steady, warmup_ns=began - start)
    return Report(report, notes, counts.answered)


class _Watch:
    """Looks at the counts while load runs, and gives a level up when it has gone wrong."""

    def __init__(self, crew: Crew, start_ns: int, still_wanted: Wanted):
        self._crew, self._still_wanted = crew, still_wanted
        self._start_ns = start_ns
        self._asked_ns = 0
        self._storm = Storm(start_ns)

    def resume(self) -> None:
        """Forget what was seen before, since nobody looked meanwhile."""
        totals = self._crew.totals
        self._storm = Storm(perf_counter_ns(), totals)

    def look(self) -> int:
        """Raises LevelFailed for a dead client and for an error storm; the time of the look."""
        totals, now = self._crew.totals, perf_counter_ns()
        if now - self._asked_ns > WANTED_NS:  # it reads /proc, which is not free
            self._asked_ns = now
            self._still_wanted()
        self._crew.check()
        if self._storm.look(now, totals):
            failures = self._crew.first_failures
            raise LevelFailed(
                "error storm: %d of %d requests failed, so the level was stopped after %.1f s%s"
                % (
                    totals.failed,
                    totals.failed + totals.done,
                    (now - self._start_ns) / 1e9,
                    " (%s)" % failures[0] if failures else "",
                )
            )
        return now

    def warm_up(self, level: Level, settling: Settling) -> bool:
        """At least the asked time, until the level is steady, three times as long at most; whether
        it became steady.
        """
        least = self._start_ns + int(level.warmup_s * 1e9)
        most = self._start_ns + WARM_UP_CAP * int(level.warmup_s * 1e9)
        while True:
            now = self.look()
            settling.look(now, self._crew.totals)
            if now >= least and settling.settled:
                return True
            if now >= most:
                return False
            time.sleep(LOOK_S)

    def window(self, level: Level, opened_ns: int, length_ns: int) -> Tuple[int, str]:
        """Until the asked time is over and enough requests have ended, four times as long at most;
        the end, which is now, and why the level ended before where it cannot reach the rate that it
        was asked for.
        """
        begun = self._crew.totals.done
        while True:
            now = self.look()
            done, length = self._crew.totals.done - begun, now - opened_ns
            enough = done >= level.min_requests
            if length >= length_ns and (enough or length >= WINDOW_CAP * length_ns):
                return now, ""
            if level.least_items_per_s and enough and length >= LEAST_WINDOW_NS:
                at_most = most_items_per_s(done, length, level.batch_size)
                if at_most < level.least_items_per_s:
                    return now, "at most %.4g items/s, and %.4g were worth more time" % (
                        at_most,
                        level.least_items_per_s,
                    )
            rest = (opened_ns + length_ns - now) / 1e9
            time.sleep(min(LOOK_S, rest) if rest > 0 else LOOK_S / 5)


def _mark(crew: Crew, servers: Sequence[Server]) -> _Mark:
    totals = crew.totals
    parts = [ServerCpu(server).read_ns() for server in servers]
    readings = [part for part in parts if part is not None]
    return _Mark(
        crew.cpu_ns(), sum(readings) if readings else None, totals.transmitted, totals.received
    )


def most_items_per_s(done: int, length_ns: int, batch_size: int) -> float:
    """The upper end of the rate after `done` requests, three standard deviations of a Poisson
    process above what was seen; a closed loop scatters less.
    """
    return (done + 3.0 * math.sqrt(done + 1) + 1) * batch_size / (length_ns / 1e9)


class _Counts(NamedTuple):
    requests: int
    failed: int
    late: int

    @property
    def answered(self) -> int:
        return self.requests - self.failed

    def as_level(self, mode: str) -> Dict[str, Any]:
        return {
            "requests": self.requests,
            "failed": self.failed,
            "late_sends": self.late if mode == "open" else 0,
        }


def read_rows(path: str) -> Any:
    """Rows of a records file, eight int64 each; a cut last row is left out."""
    if not os.path.exists(path):
        return np.zeros((0, COLUMNS), np.int64)
    values = np.fromfile(path, "<i8")
    return values[: len(values) // COLUMNS * COLUMNS].reshape(-1, COLUMNS)


def _counted(paths: Sequence[str], opened: int, closed: int) -> _Counts:
    rows = np.concatenate([read_rows(path) for path in paths])
    ended = (rows[:, DONE] > opened) & (rows[:, DONE] <= closed) & (rows[:, STATUS] != CANCELLED)
    good = ended & (rows[:, STATUS] == OK)
    latency = np.median((rows[:, DONE] - rows[:, SENT])[good]) if good.any() else 0.0
    lag = rows[:, SENT] - rows[:, INTENDED]
    meant = (rows[:, INTENDED] >= opened) & (rows[:, INTENDED] < closed)
    late = meant & (lag > max(LATE_NS, LATE_SHARE * float(latency)))
    return _Counts(int(ended.sum()), int((ended & ~good).sum()), int(late.sum()))


def _report(
    level: Level,
    plans: Sequence[Plan],
    window: Tuple[int, int],
    marks: Tuple[_Mark, _Mark],
    stats: Optional[Stats],
) -> Dict[str, Any]:
    first, last = marks
    server_cpu: Optional[int] = None
    if first.server_cpu_ns is not None and last.server_cpu_ns is not None:
        server_cpu = last.server_cpu_ns - first.server_cpu_ns
    arrivals = plans[0].arrivals
    return {
        "mode": level.mode,
        "concurrency": level.concurrency if level.mode == "closed" else None,
        "rate": arrivals.rate if arrivals is not None else None,
        "window_start_ns": window[0],
        "window_end_ns": window[1],
        "clients": len(plans),
        "cpu_ns": last.cpu_ns - first.cpu_ns,
        "server_stats": stats,
        "server_cpu_ns": server_cpu,
        "network_bytes": {
            "rx": last.received - first.received,
            "tx": last.transmitted - first.transmitted,
        },
    }


def busy_processes(level: Level, asked: int) -> int:
    """Client processes that have something to do: no more than requests in flight."""
    return min(asked, level.concurrency) if level.mode == "closed" else asked


def first_connections(rate: float) -> int:
    """Connections that an open loop opens before it starts: for a tenth of a second of arrivals, 8
    at least, 256 at most.
    """
    return min(256, max(8, int(rate * 0.1) + 1))
