"""Warm-up and trials: what is timed, when it is enough, and what stays outside the timer.

One trial, serial: inputs at hand, device idle, clock, run, device idle, clock. Inputs are made
before the point (see inputs.pool); the output is dropped after the second reading; garbage
collection is off for the whole loop. Times are `time.perf_counter_ns`, which is CLOCK_MONOTONIC on
Linux.
"""

from __future__ import annotations

import contextlib
import gc
import math
from time import perf_counter_ns
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
)

AGREEING = 5  # so many trials in a row must agree before a warm-up ends
WARM_UP_CAP_S = 10.0
LOOK_BACK = 64  # trials that the test for agreement looks at
SAME = math.log(1.05)  # a change smaller than this is none
ASTRAY = math.log(1.5)
LOOK_EVERY_NS = 1_000_000_000

Span = Callable[[str], ContextManager[Any]]


class Action(NamedTuple):
    """One trial in parts: `prepare` gives inputs (not timed), `run` takes them, `synchronise` waits
    for the devices.
    """

    prepare: Callable[[], Any]
    run: Callable[[Any], Any]
    synchronise: Callable[[], None]


class Trials(NamedTuple):
    """Start (CLOCK_MONOTONIC) and duration of each trial."""

    starts_ns: List[int]
    durations_ns: List[int]


class WarmUp(NamedTuple):
    """Trials that were dropped. `agreed` is False when the time cap ended it; `first_ns` is a
    compiling first call.
    """

    durations_ns: List[int]
    starts_ns: List[int]
    agreed: bool
    first_ns: Optional[int] = None

    @property
    def compile_ns(self) -> Optional[int]:
        """The compiling first call less what a warm call takes."""
        if self.first_ns is None:
            return None
        warm = sorted(self.durations_ns)[len(self.durations_ns) // 2] if self.durations_ns else 0
        return max(0, self.first_ns - warm)


def recompiled(trials: Trials, warm: WarmUp, *, grew: bool) -> Dict[str, str]:
    """A note where trials contain compiling: they are as long as half of the first call was beyond
    a warm one and ten times the median, or (`grew`) left new files in a compile cache.
    """
    usual = sorted(trials.durations_ns)[len(trials.durations_ns) // 2]
    compile_ns = warm.compile_ns or 0
    long = [t for t in trials.durations_ns if t >= 10 * usual and 2 * t >= compile_ns > 0]
    if long:
        return {
            "recompiled": "%d of %d trials took up to %.3g s where the median is %.3g s"
            % (len(long), len(trials.durations_ns), max(long) / 1e9, usual / 1e9)
        }
    return {"recompiled": "a compile cache grew during the trials"} if grew else {}


@contextlib.contextmanager
def collection_off() -> Iterator[None]:
    """Collect garbage once, then leave the collector off inside."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def once(action: Action) -> Trials:
    """One timed trial."""
    inputs = action.prepare()
    action.synchronise()
    start = perf_counter_ns()
    output = action.run(inputs)
    action.synchronise()
    stop = perf_counter_ns()
    del output
    return Trials([start], [stop - start])


def warm_up(
    action: Action,
    asked: Optional[int],
    span: Callable[[int], ContextManager[Any]],
    *,
    compiles: bool = False,
    cap_s: float = WARM_UP_CAP_S,
) -> WarmUp:
    """Run until the last AGREEING trials agree, at least `asked` (None: as many as agreement needs;
    0: none at all).

    `span(i)` marks the i-th. A compiling first call is kept apart and does not count against the
    cap. The cap never cuts below `asked`, nor below two.
    """
    first_ns = None
    starts: List[int] = []
    durations: List[int] = []

    def ended(*, agreed: bool) -> WarmUp:
        return WarmUp(durations, starts, agreed, first_ns)

    with collection_off():
        if compiles:
            first_ns = once(action).durations_ns[0]
        if asked == 0:
            return ended(agreed=True)
        deadline = perf_counter_ns() + int(cap_s * 1e9)
        while True:
            with span(len(durations)):
                trial = once(action)
            starts.append(trial.starts_ns[0])
            durations.append(trial.durations_ns[0])
            enough = len(durations) >= (asked or 2)
            if enough and agree(durations):
                return ended(agreed=True)
            if enough and perf_counter_ns() > deadline:
                return ended(agreed=False)


def agree(durations_ns: Sequence[int], last: int = AGREEING) -> bool:
    """Whether the last trials belong to one level: no change of level among them (on log t), and
    none astray.

    So few trials cannot tell noise from a change by themselves, so none may lie beyond a factor
    ASTRAY of their median until four times as many have shown that the workload is that noisy.
    """
    logs = [math.log(max(1, t)) for t in durations_ns[-LOOK_BACK:]]
    if len(logs) < last or len(logs) - last_change(logs) < last:
        return False
    middle = sorted(logs[-last:])[last // 2]
    return len(durations_ns) >= 4 * last or all(
        abs(value - middle) <= ASTRAY for value in logs[-last:]
    )


def last_change(values: Sequence[float]) -> int:
    """Index at which the last level of a series begins (0: no change), by repeated binary
    segmentation.

    A split counts when the two means differ by more than SAME and by four standard errors; the
    noise is taken from the median first difference, which a single step or spike does not move.
    """
    begin = 0
    while True:
        split = _split(values[begin:])
        if not split:
            return begin
        begin += split


def _split(values: Sequence[float]) -> int:
    count = len(values)
    if count < 2:
        return 0
    differences = sorted(abs(b - a) for a, b in zip(values, values[1:]))
    noise = max(
        differences[(count - 1) // 2] / 0.954, SAME / 4
    )  # 0.954 = 0.6745 * sqrt(2), for normal noise
    best, at, left, total = 0.0, 0, 0.0, sum(values)
    for i in range(1, count):
        left += values[i - 1]
        difference = abs(left / i - (total - left) / (count - i))
        score = difference / (noise * math.sqrt(1 / i + 1 / (count - i)))
        if difference > SAME and score > best:
            best, at = score, i
    return at if best > 4 else 0


def trials(
    action: Action, count: int, min_seconds: float, still_wanted: Callable[[], None]
) -> Trials:
    """Timed trials until both `count` and `min_seconds` (of wall time) are reached, with nothing
    else in the loop.

    `still_wanted` is called outside the timer about once a second, and raises to end.
    """
    prepare, run, synchronise = action
    starts: List[int] = []
    durations: List[int] = []
    with collection_off():
        stop = perf_counter_ns()
        deadline, look = stop + int(min_seconds * 1e9), stop + LOOK_EVERY_NS
        while len(durations) < count or stop < deadline:
            inputs = prepare()
            synchronise()
            start = perf_counter_ns()
            output = run(inputs)
            synchronise()
            stop = perf_counter_ns()
            output = None  # noqa: F841  freed here
            starts.append(start)
            durations.append(stop - start)
            if stop > look:
                still_wanted()
                look = stop + LOOK_EVERY_NS
    return Trials(starts, durations)


def marked_trials(
    action: Action,
    count: int,
    min_seconds: float,
    still_wanted: Callable[[], None],
    span: Callable[[int], Any],
) -> Trials:
    """As `trials`, each inside `span(i)`, for passes that a tool records; the range is outside the
    timer.
    """
    collected = Trials([], [])
    with collection_off():
        deadline = perf_counter_ns() + int(min_seconds * 1e9)
        while len(collected.starts_ns) < count or perf_counter_ns() < deadline:
            with span(len(collected.starts_ns)):
                trial = once(action)
            collected.starts_ns.extend(trial.starts_ns)
            collected.durations_ns.extend(trial.durations_ns)
            still_wanted()
    return collected


def no_span(_index: int) -> ContextManager[Any]:
    """Marks nothing."""
    return contextlib.nullcontext()
