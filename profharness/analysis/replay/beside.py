"""Alone beside in-trace time: means with intervals, their ratio, and which part of the time in the
trace is the operator's own (docs/replay.md#parts).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.replay.hottest import HotCall
from profharness.analysis.replay.records import NotReplayed, Reading, ReplayRow, Split
from profharness.stats.bootstrap import bootstrap_means, generator, percentile_interval
from profharness.stats.estimate import Estimate
from profharness.trace.calls.plan import ReplayLine
from profharness.trace.model import F64

SAME = 1.1  # a ratio up to which a call is called its own
FASTER = 0.8  # a ratio below which the replay cannot be the same work


def estimate(samples_ns: npt.ArrayLike, *identity: str | int) -> Estimate:
    """The mean with its 95 % interval, by a block bootstrap that `identity` seeds; without an
    interval for one sample, and without a value for none.
    """
    samples = np.asarray(samples_ns, np.float64)
    if not len(samples):
        return Estimate(value=None)
    if len(samples) == 1:
        return Estimate(value=float(samples[0]))
    low, high = percentile_interval(_means(samples, *identity))
    return Estimate(value=float(samples.mean()), low=max(low, 0.0), high=high)


def _means(samples: F64, *identity: str | int) -> F64:
    rng = generator("replay", *identity)
    means: F64 = bootstrap_means(samples[np.newaxis], rng)[0]
    return means


def ratio(over_ns: npt.ArrayLike, under_ns: npt.ArrayLike, *identity: str | int) -> Estimate:
    """One mean over the other; the interval from replicates of both, where both have them."""
    over, under = np.asarray(over_ns, np.float64), np.asarray(under_ns, np.float64)
    if not len(over) or not len(under) or not under.mean() > 0:
        return Estimate(value=None)
    value = float(over.mean() / under.mean())
    if len(over) < 2 or len(under) < 2:
        return Estimate(value=value)
    lower = _means(under, "under", *identity)
    replicates = _means(over, "over", *identity)[lower > 0] / lower[lower > 0]
    if not len(replicates):
        return Estimate(value=value)
    low, high = percentile_interval(replicates)
    return Estimate(value=value, low=max(low, 0.0), high=high)


def split_of(in_trace: float, alone: float, profiled: float, cold: float) -> Split:
    """The parts of a call's time in the trace; they are not negative and sum to it."""
    own = min(alone, in_trace)
    profiler = min(max(profiled - alone, 0.0), in_trace - own)
    around = in_trace - own - profiler
    of_caches = min(max(cold - alone, 0.0), around)
    return Split(own_ns=own, profiler_ns=profiler, cold_ns=of_caches, rest_ns=around - of_caches)


def reading_of(times: Estimate, split: Split) -> Reading:
    """What a row says in a word: a ratio below `FASTER` means that the replay did other work."""
    value = times.value or 0.0
    if (times.high or value) < FASTER:
        return "doubtful"
    if value <= SAME or (times.low is not None and times.low <= 1.0):
        return "own"
    return "cold-caches" if split.rest_ns <= (SAME - 1) * split.own_ns else "surroundings"


def device_split(in_trace: float, alone: float, profiled: float, cold: float) -> Split:
    """`split_of` where times in the trace and under the profiler are those of kernels, which no
    profiler makes longer; `alone` and `cold` hold the launches too, so that only their difference
    counts.
    """
    return split_of(in_trace, profiled, profiled, profiled + max(cold - alone, 0.0))


def row_of(call: HotCall, line: ReplayLine, *, on_device: bool = False) -> ReplayRow:
    """One call beside what its replay gave; `on_device`: in-trace and profiled times are those of
    kernels.
    """
    name, shapes, types, *_ = call.texts
    identity = call.texts
    times = ratio(call.inclusive_ns, line.profiled, *identity)
    in_trace = estimate(call.inclusive_ns, "trace", *identity)
    alone = estimate(line.warm.ns, "alone", *identity)
    profiled = estimate(line.profiled, "profiled", *identity)
    cold = estimate(line.cold, "cold", *identity)
    bare = alone.value or 0.0
    split = (device_split if on_device else split_of)(
        in_trace.value or 0.0,
        bare,
        bare if profiled.value is None else profiled.value,
        bare if cold.value is None else cold.value,
    )
    return ReplayRow(
        name=name,
        overload=line.overload,
        shapes=shapes,
        dtypes=types,
        calls=len(call.rows),
        share=call.share,
        self_ns=call.self_ns,
        in_trace=in_trace,
        in_trace_median=float(np.median(call.inclusive_ns)),
        alone=alone,
        alone_median=float(np.median(line.warm.ns)) if line.warm.ns else 0.0,
        profiled=profiled,
        cold=cold,
        ratio=times,
        split=split,
        reading=reading_of(times, split),
        chosen=line.chosen,
        steady=line.warm.steady,
        waited=line.warm.waited,
    )


def left_out(call: HotCall, reason: str) -> NotReplayed:
    """A call that was not run."""
    name, shapes, types, *_ = call.texts
    return NotReplayed(
        name=name,
        shapes=shapes,
        dtypes=types,
        calls=len(call.rows),
        share=call.share,
        reason=reason,
    )


def summed(rows: tuple[ReplayRow, ...], outermost_ns: tuple[npt.ArrayLike, ...]) -> Split:
    """The parts of the time of all rows; `outermost_ns` are the times of the calls of each that
    count, those that lie in the calls of no other row.
    """
    parts = np.zeros(4)
    for row, times in zip(rows, outermost_ns, strict=True):
        total, mean = float(np.sum(times)), row.in_trace.value or 0.0
        one = row.split
        shares = np.array([one.own_ns, one.profiler_ns, one.cold_ns, one.rest_ns])
        parts += shares / mean * total if mean > 0 else 0.0
    own, profiler, cold, rest = parts.tolist()
    return Split(own_ns=own, profiler_ns=profiler, cold_ns=cold, rest_ns=rest)
