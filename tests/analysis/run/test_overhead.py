import numpy as np
import pytest

from profharness.analysis.run.overhead import layer_overhead, rates
from profharness.stats.throughput import Drift


def pass_rates(rng, times, n, cv=0.03):
    return [rates(t * np.exp(cv * rng.standard_normal(n)), 8) for t in times]


def test_rates():
    assert rates([1_000_000, 2_000_000], 4).tolist() == [4000.0, 2000.0]
    assert rates([1_000_000, 2_000_000], [4, 6]).tolist() == [4000.0, 3000.0]


def test_no_overhead_of_equal_passes():
    same = [np.full(10, 100.0), np.full(10, 50.0)]
    estimate = layer_overhead(same, same)
    assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)


def test_interval_covers_the_planted_overhead():
    truth, hits = 0.08, 0
    times = np.array([1e6, 2e6, 8e6])
    for seed in range(150):
        rng = np.random.default_rng(seed)
        bare, layer = pass_rates(rng, times, 100), pass_rates(rng, times / (1 - truth), 10)
        estimate = layer_overhead(bare, layer, seed=str(seed))
        assert estimate.low <= estimate.value <= estimate.high
        hits += estimate.low <= truth <= estimate.high
    assert hits >= 0.9 * 150


def test_interval_covers_with_drift():
    """The node slows by 5 % over the run: the repeats show it, and the interval must hold the true
    2 %.
    """
    truth, hits = 0.02, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        bare, layer = (
            pass_rates(rng, [1e6, 2e6], 100),
            pass_rates(rng, np.array([1e6, 2e6]) * 1.05 / (1 - truth), 10),
        )
        estimate = layer_overhead(
            bare, layer, Drift(1 / 1.05 - 1, significant=True), seed=str(seed)
        )
        hits += estimate.low <= truth <= estimate.high
    assert hits >= 0.9 * 60


def test_no_layer_takes_more_than_everything():
    rng = np.random.default_rng(3)
    bare, slow = [rng.uniform(50, 150, 6)], [rng.uniform(1, 30, 6)]
    found = layer_overhead(bare, slow, Drift(2.0, significant=True))
    assert found.low < found.value < found.high == 1.0


def test_single_trials_have_no_interval():
    estimate = layer_overhead([np.array([100.0])], [np.array([80.0])])
    assert estimate.value == pytest.approx(0.2)
    assert estimate.low is estimate.high is None


def test_points_must_match():
    with pytest.raises(ValueError, match="same points"):
        layer_overhead([np.ones(3)], [])
    with pytest.raises(ValueError, match="same points"):
        layer_overhead([], [])
