"""The slope of a series and its interval: what rises, what only scatters, what jumps."""

from __future__ import annotations

import numpy as np
import pytest

from profharness.stats.trend import trend


def test_a_straight_line_has_its_slope_everywhere():
    found = trend(100.0 + 3.0 * np.arange(57))
    assert found is not None
    assert (found.slope, found.low, found.high, found.tau) == pytest.approx((3.0, 3.0, 3.0, 1.0))
    assert (found.first, found.last) == pytest.approx((100.0, 100.0 + 3.0 * 56))


def test_nineteen_values_are_too_few():
    assert trend(np.arange(19.0)) is None
    assert trend(np.arange(20.0)) is not None


def test_single_slow_values_do_not_make_a_trend():
    values = np.full(200, 100.0) + np.random.default_rng(3).normal(0, 1, 200)
    values[190:195] = 1e6
    found = trend(values)
    assert found is not None
    assert abs(found.slope) * 200 < 1.0


@pytest.mark.parametrize("count", [20, 200, 2000])
def test_the_interval_holds_the_slope_and_scatter_alone_rarely_rises(count: int):
    generator = np.random.default_rng(count)
    held = risen = 0
    for _ in range(300):
        noise = generator.normal(0, 10, count)
        rising = trend(100 + 50 * np.arange(count) / count + noise)
        level = trend(100 + noise)
        assert rising is not None
        assert level is not None
        held += rising.low <= 50 / count <= rising.high
        risen += level.rises
    assert held >= 0.91 * 300
    assert risen <= 0.06 * 300


def test_a_jump_in_the_middle_does_not_rise_all_the_way():
    values = np.where(np.arange(200) < 100, 100.0, 200.0)
    values += np.random.default_rng(5).normal(0, 1, 200)
    found = trend(values)
    assert found is not None
    assert found.tau < 0.65
