import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.stats.bootstrap import (
    block_length,
    bootstrap_means,
    generator,
    percentile_interval,
    student95,
)


@settings(deadline=None)
@given(st.integers(2, 3000), st.integers(0, 5))
def test_replicates_surround_the_mean_and_repeat_by_seed(samples, seed):
    values = np.random.default_rng(seed).lognormal(0, 0.3, (2, samples))
    first = bootstrap_means(values, generator("x", seed), 200)
    again = bootstrap_means(values, generator("x", seed), 200)
    assert first.shape == (2, 200)
    assert np.array_equal(first, again)
    assert np.all(first.min(axis=1) <= values.mean(axis=1))
    assert np.all(first.max(axis=1) >= values.mean(axis=1))


def test_constant_columns_have_no_spread():
    assert np.all(bootstrap_means(np.full((1, 50), 3.25), generator("c")) == 3.25)


def test_one_sample_is_refused():
    with pytest.raises(ValueError, match="two samples"):
        bootstrap_means(np.ones((1, 1)), generator("x"))


def test_large_numbers_keep_small_deviations():
    values = 1e15 + np.random.default_rng(0).standard_normal((1, 1000)) * 10
    spread = bootstrap_means(values, generator("big")).std()
    assert 0.2 < spread < 0.5  # 10 / sqrt(1000) = 0.32


def test_blocks_keep_the_scatter_of_correlated_samples():
    rng = np.random.default_rng(3)
    steps = rng.standard_normal(4000)
    walk = np.zeros(4000)
    for at in range(1, 4000):
        walk[at] = 0.8 * walk[at - 1] + steps[at]
    naive = walk.std() / np.sqrt(4000)
    blocked = bootstrap_means(walk[None, :], generator("ar")).std()
    assert blocked > 2 * naive  # the true factor is 3 for a correlation of 0.8


@pytest.mark.parametrize("samples", [5, 10, 30, 100])
def test_intervals_cover(samples):
    hits = 0
    for seed in range(300):
        values = np.random.default_rng([seed, samples]).normal(10, 2, samples)
        low, high = percentile_interval(bootstrap_means(values[None, :], generator(seed), 400)[0])
        hits += low <= 10 <= high
    assert hits >= 0.90 * 300


@pytest.mark.slow
def test_block_length_and_student():
    from scipy.stats import t

    assert [block_length(n) for n in (2, 8, 100, 100_000)] == [1, 2, 5, 391]
    assert student95(0) == np.inf
    for freedom in (*range(1, 41), 100, 1000):
        assert student95(freedom) == pytest.approx(float(t.ppf(0.975, freedom)), rel=1e-6)
