"""Which points of a scan over axes are proven worse than the best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import tukey_hsd

from profharness.analysis.axes.noise import Executions, PointMeans, point_means, unproven


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_comparison_of_all_pairs_by_tukey_and_kramer(seed: int) -> None:
    dice = np.random.default_rng(seed)
    counts = dice.integers(2, 6, 7)
    groups = [
        dice.normal(level, 0.05, count)
        for level, count in zip(np.linspace(0, 0.25, 7), counts, strict=True)
    ]
    rows = np.repeat(np.arange(7), counts)
    means = point_means(Executions(rows, np.zeros_like(rows), np.concatenate(groups)), 7)
    best = int(np.argmax(means.mean))
    others = [at for at in range(7) if at != best]
    pvalues = tukey_hsd(*groups).pvalue
    assert unproven(means, best, others) == [at for at in others if pvalues[best, at] >= 0.05]


def test_without_repeats_the_levels_of_a_server_tell_their_own_noise() -> None:
    mean = np.log([100.0, 99.0, 50.0])
    alone = PointMeans(mean, np.array([1, 1, 1]))
    assert unproven(alone, 0, [1, 2]) == []  # nothing tells: nothing is claimed or denied
    told = PointMeans(mean, np.array([1, 1, 1]), within=np.full(3, 0.02))
    assert unproven(told, 0, [1, 2]) == [1]


def test_few_repeats_do_not_hide_what_the_levels_tell() -> None:
    mean, count = np.log([100.0, 80.0]), np.array([2, 1])
    lucky = PointMeans(mean, count, sigma=1e-6, freedom=1, within=np.full(2, 0.5))
    assert unproven(lucky, 0, [1]) == [1]
    many = PointMeans(mean, np.array([9, 9]), sigma=0.01, freedom=16, within=np.full(2, 0.5))
    assert unproven(many, 0, [1]) == []
    assert lucky.half_width(0) == pytest.approx(0.98, abs=0.01)
    assert many.half_width(0) == pytest.approx(0.01 * 2.12 / 3, rel=0.01)
