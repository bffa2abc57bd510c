"""Running sums of what host threads were in, and the parts that they make."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profharness.analysis.host.gaps import Gaps
from profharness.analysis.host.in_collectives import in_collectives
from profharness.analysis.host.kinds import Kind, without_address
from profharness.analysis.host.own_frames import HOOKS, is_own
from profharness.analysis.host.python_lines import ThreadSamples, of_thread, share_out
from profharness.analysis.host.records import HostPart
from profharness.analysis.host.timeline import (
    HostRows,
    Timeline,
    host_rows,
    thread_of,
    timeline,
)
from profharness.analysis.time.idle import HostThread
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.stats.proportion import wilson
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

KEPT = 30
"""Parts with a name of their own; smaller ones are taken together, by cause and kind."""
I64 = npt.NDArray[np.int64]
_Key = tuple[str, str, str]
"""Cause, kind and name."""


@dataclass(eq=False)
class HostTally:
    """Times by cause, kind and name, of threads that one trace after the other tells of. Not
    frozen, as it grows with each thread and cause.

    With `near`, a merged set of intervals, only time in it is asked for: threads are followed
    there alone, which is much cheaper where a device is seldom idle. `launching` are the names of
    the operators to which work of a device belongs.
    """

    near: Intervals | None = None
    launching: frozenset[str] = frozenset()
    _trace: Trace | None = field(default=None, init=False)
    _times: Counter[_Key] = field(default_factory=Counter, init=False)
    _computed: Counter[_Key] = field(default_factory=Counter, init=False)
    _samples: Counter[_Key] = field(default_factory=Counter, init=False)
    _running: dict[_Key, int | None] = field(default_factory=dict, init=False)
    _of_thread: dict[int, ThreadSamples] = field(default_factory=dict, init=False)
    _lines: dict[int, Timeline] = field(default_factory=dict, init=False)

    def turn_to(self, trace: Trace) -> None:
        """From now on threads are those of this trace."""
        self._trace = trace
        self._of_thread.clear()
        self._lines.clear()

    @property
    def trace(self) -> Trace:
        """The trace that threads are looked up in."""
        assert self._trace is not None
        return self._trace

    @property
    def rows(self) -> HostRows:
        """What its threads did."""
        return host_rows(self.trace)

    @property
    def total_ns(self) -> int:
        return self._times.total()

    def thread(self, host: HostThread) -> int:
        """The number of a thread in `HostRows.thread`; of several the first that has any rows."""
        numbers = (thread_of(self.rows, *owner) for owner in host.owners)
        return next((number for number in numbers if number != NULL), NULL)

    def thread_of(self, owner: tuple[int, int, int]) -> int:
        """The number of the thread of a recording, process and thread id; NULL where it has no
        row.
        """
        found = np.flatnonzero((self.rows.owners == np.array(owner)).all(axis=1))
        return int(found[0]) if len(found) else NULL

    def add_device(self, cause: str, ns: int) -> None:
        """Time that the host did not hold up."""
        self._times[cause, "", ""] += ns

    def add_window(self, when: Intervals, thread: int) -> None:
        """Split a window by what a thread was in, collectives that none of its operators hides
        first.
        """
        left = when
        for name, held in in_collectives(self.trace, self.rows, thread, when):
            self._times["", Kind.COLLECTIVE.key, name] += held.total
            left = intervals.subtract(left, held)
        self.add("", left, thread)

    def add(self, cause: str, held: Intervals, thread: int) -> None:
        """Split a merged set of intervals by what a thread was in (NULL: nothing is known of it).

        What no operator and no call explains is shared out among the Python lines that samples of
        the thread saw, where there are any.
        """
        if not held.total:
            return
        unknown = held
        if thread != NULL:
            samples = self._samples_of(thread)
            line = self.line(thread)
            if len(samples):
                line = _without_ranges(line)
            self._add_line(cause, held, line)
            unknown = intervals.subtract(held, intervals.merge(line.intervals()))
            if len(samples):
                gaps = Gaps(unknown, _alike(unknown, line, self.rows.name))
                self._add_samples(cause, gaps, samples)
                return
        self._times[cause, Kind.NOTHING.key, ""] += unknown.total

    def _add_line(self, cause: str, held: Intervals, line: Timeline) -> None:
        seen, inside = _seen_in(line, held)
        if not len(seen):
            return
        by_holder = line.kind < Kind.LAUNCH_CALL  # these hold for all that is inside of them
        named = self.rows.name[np.where(by_holder, line.holder, line.inner)[seen]]
        kind = line.kind[seen]
        first, group = first_rows(pack([kind, named]))
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, group, inside)
        counts = np.bincount(group)
        for at, ns, count in zip(first.tolist(), sums.tolist(), counts.tolist(), strict=True):
            text = self.trace.strings[int(named[at])]
            name = HOOKS if is_own(text) else without_address(text)
            key = cause, Kind(int(kind[at])).key, name
            self._times[key] += ns
            if self.launching and key[1] == Kind.OPERATOR.key and name not in self.launching:
                self._computed[key] += count

    def _add_samples(self, cause: str, gaps: Gaps, samples: ThreadSamples) -> None:
        told = 0
        for part in share_out(self.trace, samples, gaps):
            kind = Kind.WRITING if part.writes else Kind.PYTHON
            key = cause, kind.key, part.name
            self._times[key] += part.ns
            self._samples[key] += part.samples
            before = self._running.get(key, 0)
            known = before is not None and part.running_ns is not None
            self._running[key] = (before or 0) + (part.running_ns or 0) if known else None
            told += part.ns
        self._times[cause, Kind.NOTHING.key, ""] += gaps.held.total - told

    def line(self, thread: int) -> Timeline:
        """The timeline of a thread, as far as it is asked for: once, since each cause of idle time
        asks for it.
        """
        if thread not in self._lines:
            self._lines[thread] = timeline(self.rows, thread, self.near)
        return self._lines[thread]

    def _samples_of(self, thread: int) -> ThreadSamples:
        if thread not in self._of_thread:
            owner = self.rows.owner(thread)
            self._of_thread[thread] = of_thread(self.trace, self.rows.recording, owner)
        return self._of_thread[thread]

    def parts(self, window_ns: int) -> tuple[HostPart, ...]:
        """The largest first; those beyond the first `KEPT` taken together by cause and kind."""
        ordered = sorted(
            ((key, ns) for key, ns in self._times.items() if ns),
            key=lambda item: (-item[1], item[0]),
        )
        kept = [self._part(key, ns, window_ns) for key, ns in ordered[:KEPT]]
        rest: dict[tuple[str, str], list[tuple[_Key, int]]] = {}
        for key, ns in ordered[KEPT:]:
            rest.setdefault(key[:2], []).append((key, ns))
        for (cause, kind), smaller in rest.items():
            if len(smaller) == 1:  # nothing to take together
                kept.append(self._part(*smaller[0], window_ns))
                continue
            ns = sum(one for _, one in smaller)
            share, count = ns / window_ns, len(smaller)
            kept.append(HostPart(cause=cause, kind=kind, ns=ns, share=share, others=count))
        return tuple(sorted(kept, key=lambda part: (-part.ns, part.cause, part.kind, part.name)))

    def _part(self, key: _Key, ns: int, window_ns: int) -> HostPart:
        cause, kind, name = key
        samples = self._samples.get(key)
        low, high = (None, None) if samples is None else self._interval(ns, window_ns)
        running = self._running.get(key)
        return HostPart(
            cause=cause,
            kind=kind,
            name=name,
            ns=ns,
            share=ns / window_ns,
            computed=self._computed.get(key),
            samples=samples,
            low=low,
            high=high,
            running=None if running is None else running / ns,
        )

    def _interval(self, ns: int, window_ns: int) -> tuple[float, float]:
        """The 95 % interval of a sampled part's share of the window: of all that was sampled, whose
        time is exact, it is a share of the samples.
        """
        sampled_ns = sum(self._times[key] for key in self._samples)
        count = self._samples.total()
        low, high = wilson(min(round(ns / sampled_ns * count), count), count)
        return low * sampled_ns / window_ns, high * sampled_ns / window_ns


def _seen_in(line: Timeline, held: Intervals) -> tuple[I64, I64]:
    """The stretches of which something lies in a merged set, in order, and how much in ns. Only
    those near the set are looked at, which most of the time is a small part of the trace.
    """
    first = np.searchsorted(line.end, held.start, "right")
    count = np.maximum(np.searchsorted(line.start, held.end, "left") - first, 0)
    owner = np.repeat(np.arange(len(held)), count)
    near = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    length = np.minimum(line.end[near], held.end[owner])
    length -= np.maximum(line.start[near], held.start[owner])
    if not len(near):
        return near, length
    # a stretch may reach into several members of the set, which then follow each other
    begins = np.flatnonzero(np.concatenate(([True], near[1:] != near[:-1])))
    return near[begins], np.add.reduceat(length, begins)


def _alike(held: Intervals, line: Timeline, name: npt.NDArray[np.int32]) -> I64:
    """A number for each gap of a timeline that is the same where the stretches before and after it
    have the same names; NULL where a gap is cut off on either side.
    """
    if not len(line.start):
        return np.full(len(held), NULL, np.int64)
    before = np.searchsorted(line.end, held.start, "left").clip(max=len(line.end) - 1)
    after = np.searchsorted(line.start, held.end, "left").clip(max=len(line.start) - 1)
    whole = (line.end[before] == held.start) & (line.start[after] == held.end)
    group = first_rows(pack([name[line.inner[before]], name[line.inner[after]]]))[1]
    return np.where(whole, group, NULL)


def _without_ranges(line: Timeline) -> Timeline:
    """The timeline without time that only a range of the program names: samples tell more."""
    told: npt.NDArray[np.bool_] = line.kind != Kind.RANGE
    return Timeline(
        line.start[told], line.end[told], line.kind[told], line.holder[told], line.inner[told]
    )
