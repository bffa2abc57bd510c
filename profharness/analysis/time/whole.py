"""What is the same in all windows of a trace, worked out once, and the part of it that one set of
windows can see.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.time.device_work import Delays, Work, delays
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.launching import host_launching
from profharness.analysis.time.recurring import recurring
from profharness.analysis.time.steps import Step, device_steps, steady
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import I64, Trace


@dataclass(frozen=True, eq=False)
class Near:
    """A trace with only those kernels and copies that reach into a set of windows; `rows` are those
    kernels in the whole trace, None: all.
    """

    trace: Trace
    rows: I64 | None


@dataclass(eq=False)
class Pace:
    """The steady steps of all processes (of a trace, or of one of its points), and what they say
    whichever windows are looked at. `starts` are those of all kernels, in order.
    """

    steps: list[Step]
    starts: I64

    @cached_property
    def lengths(self) -> dict[int, list[float]]:
        """The lengths of the steps of each process, in ns; without those that have none, and
        without a process of whose steps work of an earlier one outlives all.
        """
        by_process: dict[int, list[float]] = {}
        for step in self.steps:
            if (length := step.length_ns) is not None:
                by_process.setdefault(step.process, []).append(length)
        return {process: lengths for process, lengths in by_process.items() if any(lengths)}

    @cached_property
    def per_second(self) -> float | None:
        """Steps per second, the mean over the processes; None where no step has a length."""
        if not self.lengths:
            return None
        rates = [len(lengths) * 1e9 / sum(lengths) for lengths in self.lengths.values()]
        return sum(rates) / len(rates)

    @cached_property
    def median_ns(self) -> float | None:
        """Median length of a step; None where most have none beside the work of an earlier one."""
        every = [length for lengths in self.lengths.values() for length in lengths]
        return (float(np.median(every)) or None) if every else None

    @cached_property
    def kernels(self) -> float:
        """Kernels that a step launched, the mean over the steps; where marks are all that is known,
        those that start inside: a search per step, where a pass over all kernels per step would
        grow with both.
        """
        launched = [step.kernels for step in self.steps if step.kernels is not None]
        if len(launched) == len(self.steps):
            return sum(launched) / len(launched)
        before = np.searchsorted(self.starts, [step.start_ns for step in self.steps])
        until = np.searchsorted(
            self.starts, [max(step.start_ns, step.end_ns) for step in self.steps]
        )
        return int((until - before).sum()) / len(self.steps)


@dataclass(eq=False)
class Whole:
    """One trace, with what is known of each of its kernels. Not frozen only because its parts are
    made when they are asked for first.
    """

    trace: Trace
    facts: KernelFacts
    idle: IdleAnalysis = field(init=False)
    _launching: dict[int, Intervals] = field(default_factory=dict, init=False)
    _paces: dict[str | None, Pace] = field(default_factory=dict, init=False)
    _recurring: dict[tuple[int, str | None], Intervals] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.idle = IdleAnalysis(self.trace)

    @property
    def work(self) -> Work:
        return self.idle.work

    @cached_property
    def delays(self) -> Delays:
        """Delays of all linked kernels."""
        return delays(self.trace, self.work)

    @cached_property
    def starts(self) -> I64:
        """The starts of all kernels, in order of time."""
        return np.sort(self.trace.kernels.start_ns)

    @cached_property
    def operators(self) -> Intervals:
        """When any operator ran, merged."""
        return intervals.merge(intervals.lasting(self.trace.ops.start_ns, self.trace.ops.dur_ns))

    def launching(self, device: int) -> Intervals:
        """When some thread that launches on the device was in, or between, launches."""
        if device not in self._launching:
            self._launching[device] = host_launching(self.trace, self.work, device)
        return self._launching[device]

    def recurring(self, device: int, point: str | None) -> Intervals:
        """What the device may have run unrecorded, and that comes again in the steps of the trace
        or of one of its points.
        """
        key = device, point
        if key not in self._recurring:
            stretches, of_point = self.idle.not_recorded(device), self.pace(point).steps
            self._recurring[key] = recurring(self.trace, self.work, stretches, of_point, device)
        return self._recurring[key]

    def pace(self, point: str | None) -> Pace:
        """Of the steps of the trace, or of one of its points: once for all windows."""
        if point not in self._paces:
            groups: dict[int, list[Step]] = {}
            for step in device_steps(self.trace, point):
                groups.setdefault(step.process, []).append(step)
            self._paces[point] = Pace(
                [step for group in groups.values() for step in steady(group)], self.starts
            )
        return self._paces[point]

    def near(self, windows: Intervals) -> Near:
        """What a merged set of windows can see of the devices' work. A whole trace stays as
        it is.
        """
        kernels, copies = self.trace.kernels, self.trace.copies
        rows = intervals.reaching(intervals.lasting(kernels.start_ns, kernels.dur_ns), windows)
        moved = intervals.reaching(intervals.lasting(copies.start_ns, copies.dur_ns), windows)
        if rows.all() and moved.all():
            return Near(self.trace, None)
        seen = np.flatnonzero(rows)
        return Near(
            replace(
                self.trace, kernels=kernels.take(seen), copies=copies.take(np.flatnonzero(moved))
            ),
            seen,
        )
