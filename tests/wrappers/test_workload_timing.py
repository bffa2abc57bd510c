"""Warm-up and trials: when they end and what is inside the timer; on a clock of the test's own."""

from __future__ import annotations

import gc
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(workloads: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    from profharness_workloads.shared import timing

    made = Clock()
    monkeypatch.setattr(timing, "perf_counter_ns", made)
    return made


@pytest.fixture
def timing(workloads: Path) -> ModuleType:
    from profharness_workloads.shared import timing

    return timing


def action(timing: ModuleType, clock: Clock, durations_ns: list[int], *, before_ns: int = 0):
    """Runs that take the given times (the last for ever), with inputs that take `before_ns` to
    make.
    """
    left = list(durations_ns)

    def prepare() -> None:
        clock.now += before_ns

    def run(_: object) -> None:
        clock.now += left.pop(0) if len(left) > 1 else left[0]

    return timing.Action(prepare, run, lambda: None)


def test_only_the_run_is_timed(timing: ModuleType, clock: Clock) -> None:
    trials = timing.trials(action(timing, clock, [7, 8, 9], before_ns=1000), 3, 0.0, lambda: None)
    assert trials.durations_ns == [7, 8, 9]
    assert [b - a for a, b in zip(trials.starts_ns, trials.starts_ns[1:], strict=False)] == [
        1007,
        1008,
    ]


def test_trials_end_when_both_count_and_time_are_reached(timing: ModuleType, clock: Clock) -> None:
    second = 1_000_000_000
    assert (
        len(timing.trials(action(timing, clock, [second // 10]), 3, 2.0, lambda: None).starts_ns)
        == 20
    )
    assert len(timing.trials(action(timing, clock, [second]), 5, 2.0, lambda: None).starts_ns) == 5


def test_devices_are_idle_at_both_readings_and_inputs_are_made_before(timing: ModuleType) -> None:
    steps: list[str] = []
    watched = timing.Action(
        lambda: steps.append("inputs"),
        lambda _: steps.append("run"),
        lambda: steps.append("synchronise"),
    )
    timing.trials(watched, 1, 0.0, lambda: None)
    assert steps == ["inputs", "synchronise", "run", "synchronise"]


def test_the_collector_is_off_inside_and_back_after(timing: ModuleType) -> None:
    seen: list[bool] = []
    timing.trials(
        timing.Action(lambda: None, lambda _: seen.append(gc.isenabled()), lambda: None),
        2,
        0.0,
        lambda: None,
    )
    assert seen == [False, False]
    assert gc.isenabled()


def test_the_output_of_a_trial_is_freed_outside_the_timer(timing: ModuleType) -> None:
    alive: list[int] = []

    class Output:
        def __init__(self) -> None:
            assert not alive, "the former output is still held inside the timer"
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    timing.trials(
        timing.Action(lambda: None, lambda _: Output(), lambda: None), 3, 0.0, lambda: None
    )


def test_somebody_who_does_not_want_the_trials_ends_them(timing: ModuleType, clock: Clock) -> None:
    def gone() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timing.trials(action(timing, clock, [600_000_000]), 1_000_000, 0.0, gone)


def test_a_warm_up_outlasts_late_recompilations(timing: ModuleType, clock: Clock) -> None:
    ms = 1_000_000
    warm = timing.warm_up(
        action(timing, clock, [68 * ms, 43 * ms, 15 * ms, 3500 * ms, 14 * ms]), None, timing.no_span
    )
    assert warm.agreed
    assert warm.durations_ns[:4] == [68 * ms, 43 * ms, 15 * ms, 3500 * ms]
    assert len(warm.durations_ns) == 4 + timing.AGREEING


def test_a_warm_up_does_at_least_what_was_asked(timing: ModuleType, clock: Clock) -> None:
    assert (
        len(timing.warm_up(action(timing, clock, [10_000]), 12, timing.no_span).durations_ns) == 12
    )
    assert (
        len(timing.warm_up(action(timing, clock, [10_000]), 1, timing.no_span).durations_ns)
        == timing.AGREEING
    )
    assert timing.warm_up(action(timing, clock, [10_000]), 0, timing.no_span).durations_ns == []


def test_the_cap_ends_a_warm_up_that_never_agrees(timing: ModuleType, clock: Clock) -> None:
    ever_slower = [1_000_000_000 * 2**n for n in range(10)]
    warm = timing.warm_up(action(timing, clock, ever_slower), None, timing.no_span, cap_s=10.0)
    assert not warm.agreed
    assert sum(warm.durations_ns) == 15_000_000_000
    asked = timing.warm_up(action(timing, clock, ever_slower), 7, timing.no_span, cap_s=10.0)
    assert len(asked.durations_ns) == 7


def test_compiling_is_a_figure_of_its_own(timing: ModuleType, clock: Clock) -> None:
    warm = timing.warm_up(
        action(timing, clock, [60_000_000_000, 5_000_000]), None, timing.no_span, compiles=True
    )
    assert warm.compile_ns == 60_000_000_000 - 5_000_000
    assert warm.durations_ns == [5_000_000] * timing.AGREEING
    assert timing.WarmUp([1], [0], agreed=True).compile_ns is None


def test_marked_trials_lie_inside_their_spans(timing: ModuleType) -> None:
    import contextlib
    from time import perf_counter_ns

    spans: list[tuple[int, int, int]] = []

    @contextlib.contextmanager
    def span(index: int):
        start = perf_counter_ns()
        yield
        spans.append((index, start, perf_counter_ns()))

    trials = timing.marked_trials(
        timing.Action(lambda: None, lambda _: None, lambda: None), 4, 0.0, lambda: None, span
    )
    assert [index for index, _, _ in spans] == [0, 1, 2, 3]
    for (_, start, stop), at, duration in zip(
        spans, trials.starts_ns, trials.durations_ns, strict=True
    ):
        assert start <= at
        assert at + duration <= stop


@given(
    before=st.lists(st.floats(2.0, 6.0), max_size=8),
    level=st.floats(-3.0, 3.0),
    count=st.integers(5, 30),
)
@settings(max_examples=60, deadline=None)
def test_the_last_level_is_found(
    workloads: Path, before: list[float], level: float, count: int
) -> None:
    from profharness_workloads.shared import timing

    values = [level + extra for extra in before] + [level] * count
    assert timing.last_change(values) <= len(before)
    if (
        len(before) <= count - 2
    ):  # most differences between neighbours are those inside the last level: it sets the noise
        assert timing.last_change(values) == len(before)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_noise_is_no_change_for_long(workloads: Path, seed: int) -> None:
    import numpy as np

    from profharness_workloads.shared import timing

    times = np.random.default_rng(seed).lognormal(10.0, 0.1, 60).astype(int).tolist()
    assert any(timing.agree(times[:n]) for n in range(5, 61))
