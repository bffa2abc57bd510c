"""What few measurements say of a whole grid, against SciPy and against what was planted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from profharness.stats.surrogate import Posterior, below, expected_gain, grid_of, posterior

GRID = grid_of((4, 3, 2), (True, False, True))


def test_the_grid_is_whole_and_its_last_axis_varies_fastest() -> None:
    assert len(GRID) == 24
    assert GRID.levels[:4].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert len({tuple(row) for row in GRID.levels.tolist()}) == 24


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=20))
def test_below_is_the_normal_distribution(z: list[float]) -> None:
    assert below(np.array(z)) == pytest.approx(stats.norm.cdf(z), abs=1e-15)


@given(st.floats(-3, 3), st.floats(0.01, 2), st.floats(-3, 3))
@settings(max_examples=50, deadline=None)
def test_expected_gain_is_the_mean_of_what_lies_above(mean: float, sd: float, best: float) -> None:
    found = expected_gain(Posterior(np.array([mean]), np.array([sd])), best)[0]
    oracle, _ = integrate.quad(
        lambda y: (y - best) * stats.norm.pdf(y, mean, sd), best, max(best, mean) + 12 * sd
    )
    assert found == pytest.approx(oracle, abs=1e-6)


@given(st.integers(0, 500))
@settings(max_examples=25, deadline=None)
def test_what_was_measured_exactly_is_known(seed: int) -> None:
    dice = np.random.default_rng(seed)
    places = dice.choice(24, 10, replace=False)
    values = dice.normal(3, 1, 10)
    found = posterior(GRID, places, values, np.full(10, 1e-4))
    assert found.mean[places] == pytest.approx(values, abs=0.02)
    others = np.setdiff1d(np.arange(24), places)
    assert found.sd[places].max() < found.sd[others].min()


def test_noise_is_averaged_and_not_followed() -> None:
    """Sixteen levels of one setting with errors of 0.2 know it to 0.05."""
    dice = np.random.default_rng(1)
    values = dice.normal(2, 0.2, 16)
    found = posterior(GRID, [5] * 16, values, [0.2] * 16)
    assert found.mean[5] == pytest.approx(values.mean(), abs=0.02)
    assert found.sd[5] == pytest.approx(0.05, rel=0.25)


def test_a_sum_of_effects_is_foreseen_where_nothing_was_measured() -> None:
    effects = 0.5 * GRID.levels[:, 0] + np.array([0.0, 0.4, -0.3])[GRID.levels[:, 1]]
    truth = effects + 0.2 * GRID.levels[:, 2]
    places = np.array([0, 3, 5, 6, 10, 13, 14, 16, 19, 21, 23])
    found = posterior(GRID, places, truth[places], np.full(len(places), 0.005))
    others = np.setdiff1d(np.arange(24), places)
    assert np.abs(found.mean - truth)[others].max() < 0.25
    assert (np.abs(found.mean - truth)[others] <= 3 * found.sd[others]).all()
    assert int(np.argmax(found.mean)) == int(np.argmax(truth))


def test_equal_measurements_are_no_error() -> None:
    found = posterior(GRID, [1, 2, 3], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    assert found.mean == pytest.approx(np.ones(24), abs=1e-6)
    assert np.isfinite(found.sd).all()
