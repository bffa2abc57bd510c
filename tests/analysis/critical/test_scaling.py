"""Curves through times at batch sizes, against laws that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.critical.scaling import (
    FURTHEST,
    forecast,
    neighbours,
    power_law,
    share_of_larger,
)

times = st.floats(1, 1e6)
sizes = st.integers(1, 512)


def at(pair: tuple[int, int], low: float, high: float, size: int) -> float:
    return float(forecast(pair, np.array([low]), np.array([high]), size)[0])


@given(call=times, item=times, small=sizes, more=sizes, size=sizes)
def test_a_part_per_call_and_one_per_item_are_given_back(
    call: float, item: float, small: int, more: int, size: int
) -> None:
    """Inside and outside of the sizes alike."""
    pair = small, small + more
    made = at(pair, call + item * small, call + item * pair[1], size)
    assert made == pytest.approx(call + item * size, rel=1e-6)


@given(call=times, exponent=st.floats(1, 3), size=st.integers(2, 15))
def test_what_grows_more_than_in_proportion_is_a_power(
    call: float, exponent: float, size: int
) -> None:
    assert at((1, 16), call, call * 16**exponent, size) == pytest.approx(call * size**exponent)


@given(low=times, high=times, size=sizes)
def test_beyond_the_sizes_times_neither_fall_nor_grow_more_than_in_proportion(
    low: float, high: float, size: int
) -> None:
    made = at((8, 32), low, high, size)
    if size > 32:
        assert high * (1 - 1e-9) <= made <= high * size / 32 * (1 + 1e-9)
    elif size < 8:
        assert low * size / 8 * (1 - 1e-9) <= made <= low * (1 + 1e-9)
    else:
        assert min(low, high) * (1 - 1e-9) <= made <= max(low, high) * (1 + 1e-9)


def test_the_sizes_that_a_forecast_rests_on() -> None:
    measured = [1, 4, 64]
    assert neighbours(measured, 2) == (0, 1)
    assert neighbours(measured, 16) == (1, 2)
    assert neighbours(measured, 64 * FURTHEST) == (1, 2)
    assert neighbours(measured, 64 * FURTHEST + 1) is None
    assert neighbours([8, 16], 2) == (0, 1)
    assert neighbours([8, 16], 1) is None
    assert neighbours([8], 8) is None


def test_an_operator_that_was_not_there_at_one_size_has_no_power() -> None:
    assert power_law((1, 16), np.array([0.0, 2.0]), np.array([5.0, 0.0]), 4).tolist() == [0, 0]
    assert share_of_larger((1, 16), 4) == 0.5
    assert (share_of_larger((4, 16), 1), share_of_larger((4, 16), 64)) == (0, 1)
