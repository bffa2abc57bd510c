import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.stats.throughput import (
    NO_DRIFT,
    common_window,
    drift_between,
    largest_drift,
    latency_percentiles,
    summarise_trials,
    widened,
)

DURATIONS = st.lists(st.integers(1_000, 10**10), min_size=1, max_size=60)


@settings(deadline=None)
@given(DURATIONS, st.integers(1, 4096))
def test_formulas(durations, items):
    stats = summarise_trials(durations, items)
    rates = [items / t * 1e9 for t in durations]
    assert stats.throughput == pytest.approx(sum(rates) / len(rates))
    assert stats.rate_of_mean == pytest.approx(items * len(durations) / sum(durations) * 1e9)
    assert stats.throughput_median == pytest.approx(np.median(rates))
    assert stats.consistency == pytest.approx(np.mean(rates) * np.mean(durations) / items / 1e9)
    assert stats.consistency >= 1 - 1e-9
    if len(durations) > 1:
        assert stats.sem == pytest.approx(np.std(rates, ddof=1) / math.sqrt(len(rates)), abs=1e-9)
        assert 0 <= stats.low <= stats.high
    else:
        assert stats.sem is stats.low is stats.high is stats.latency_std_ns is None


@settings(deadline=None)
@given(st.integers(1, 10**10), st.integers(1, 300), st.integers(1, 5000))
def test_constant_trials_are_consistent(duration, count, items):
    stats = summarise_trials([duration] * count, items)
    assert stats.consistency == 1.0
    assert stats.sem in (None, pytest.approx(0, abs=1e-6 * stats.throughput))


def test_interval_is_the_same_every_time_and_differs_by_seed():
    durations = np.random.default_rng(0).integers(900, 1100, 50) * 1000
    first, again, other = (summarise_trials(durations, 4, seed) for seed in ("a", "a", "b"))
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def test_interval_covers_the_true_throughput():
    hits = 0
    for seed in range(200):
        times = np.random.default_rng(seed).normal(1e6, 5e4, 30)
        stats = summarise_trials(times.astype(np.int64), 8, str(seed))
        # mean of s/t of normal times: s/mu (1 + CV^2) to second order
        hits += stats.low <= 8e3 * (1 + 0.05**2) <= stats.high
    assert hits >= 0.9 * 200


@pytest.mark.parametrize("bad", [([], 1), ([0, 5], 1), ([5], 0), ([-1], 1)])
def test_what_cannot_be_is_refused(bad):
    with pytest.raises(ValueError, match=r"trials|positive"):
        summarise_trials(*bad)


def test_percentiles_need_ten_samples_beyond():
    times = np.arange(1, 201, dtype=float)
    found = {one.q: one for one in latency_percentiles(times)}
    assert found[50.0].value_ns == pytest.approx(100.5)
    assert found[95.0].value_ns == pytest.approx(np.percentile(times, 95))
    assert found[99.0].value_ns is None
    assert found[99.0].needs == "more trials (at least 1000)"
    assert found[99.9].needs == "more trials (at least 10000)"
    assert latency_percentiles(times[:19], (50.0,))[0].value_ns is None
    assert latency_percentiles(times[:20], (50.0,))[0].value_ns is not None


def test_the_interval_of_the_median_holds_the_truth_in_19_of_20_and_widens_where_trials_resemble_their_neighbours():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        (found,) = latency_percentiles(rng.lognormal(0.0, 0.3, 200), (50.0,))
        held += found.low_ns <= 1.0 <= found.high_ns
    assert 0.93 <= held / 400 <= 0.99
    slow = 1e6 * np.exp(
        0.2 * np.repeat(rng.standard_normal(10), 20) + 0.01 * rng.standard_normal(200)
    )
    alike = summarise_trials(slow.astype(np.int64), 1).percentiles[0]
    (alone,) = latency_percentiles(slow, (50.0,))
    assert alike.high_ns - alike.low_ns > 1.5 * (alone.high_ns - alone.low_ns)


def test_common_window_is_not_the_sum():
    # two processes, 10 trials of 100 ns each, the second starts when the first is half done
    starts = np.concatenate([np.arange(10) * 100, 500 + np.arange(10) * 100])
    found = common_window(starts, np.full(20, 100), np.full(20, 2), np.repeat([0, 1], 10))
    assert found.window_ns == 500
    assert found.items == 20
    assert found.throughput == pytest.approx(20 / 500e-9)
    assert found.summed == pytest.approx(2 * 20 / 1000e-9)
    assert (
        common_window(starts[[0, 19]], np.array([100, 100]), np.array([1, 1]), np.array([0, 1]))
        is None
    )


def test_drift_widens():
    rng = np.random.default_rng(1)
    first = summarise_trials(rng.normal(1e6, 1e4, 50).astype(np.int64), 8)
    slower = summarise_trials(rng.normal(1.1e6, 1e4, 50).astype(np.int64), 8)
    drift = drift_between(first, slower, "p")
    assert drift.significant
    assert drift.relative == pytest.approx(1 / 1.1 - 1, abs=0.01)
    low, high = widened(first, drift)
    assert low < slower.throughput < high
    assert not drift_between(first, first).significant
    assert largest_drift([]) == NO_DRIFT
    assert largest_drift([NO_DRIFT, drift]) == drift


def test_the_common_rates_interval_covers_the_truth():
    """Two processes with noisy trials over one window: the interval holds their true rate about 19
    times in 20.
    """
    inside = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        parts = [np.cumsum(rng.gamma(25.0, mean / 25.0, 400)) for mean in (1e6, 2e6)]
        ends = np.concatenate(parts).astype(np.int64)
        durations = np.concatenate([np.diff(part, prepend=0.0) for part in parts]).astype(np.int64)
        owner = np.repeat([0, 1], 400)
        found = common_window(ends - durations, durations, np.ones(800, np.int64), owner)
        inside += found.low <= 1500 <= found.high
    assert 180 <= inside <= 200


def test_few_trials_give_no_interval_and_the_spread_is_between_processes():
    found = common_window(
        np.array([0, 100, 0]), np.array([100, 100, 190]), np.array([1, 1, 1]), np.array([0, 0, 1])
    )
    assert found.sem is None
    assert found.low is None
    assert found.own == pytest.approx((1e7, 1e9 / 190))
    assert found.spread == pytest.approx(0.9)
