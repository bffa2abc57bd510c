"""The slow steps at a beginning, and the point to run at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.stats.chosen import Rated, chosen_points
from profharness.stats.slow_start import slow_steps

LEVELS = (("8", "16", "32"), ("0", "1", "2", "4"), ("b", "a"))


def rated(rates: dict[tuple[str, str, str], float]) -> list[Rated]:
    return [Rated("-".join(setting), setting, rate) for setting, rate in rates.items()]


def test_the_recommended_point_asks_for_least_within_five_per_cent() -> None:
    best, recommended = chosen_points(
        rated(
            {
                ("32", "4", "b"): 100.0,
                ("32", "1", "a"): 96.0,
                ("16", "4", "a"): 97.0,
                ("32", "1", "b"): 95.5,
                ("8", "0", "b"): 94.9,
            }
        ),
        LEVELS,
    )
    assert best.name == "32-4-b"
    assert recommended.name == "32-1-a"  # 1 + 1/3; 16-4 asks for 1/2 + 1, a category for nothing


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=12))
def test_the_recommended_point_is_near_the_best(rates: list[float]) -> None:
    values = tuple(str(at) for at in range(len(rates)))
    points = [Rated(value, (value,), rate) for value, rate in zip(values, rates, strict=True)]
    best, recommended = chosen_points(points, [values])
    assert best.rate == max(rates)
    near = [one for one in points if one.rate >= 0.95 * best.rate]
    assert recommended == min(near, key=lambda one: float(one.name))


@pytest.mark.parametrize("slow", [0, 1, 3, 8])
def test_slow_first_steps_are_left_out(slow: int) -> None:
    noise = np.random.default_rng(7).normal(0, 0.02, 40)
    steps = 1e6 * (1 + noise)
    steps[:slow] *= 3
    assert slow_steps(steps.astype(int).tolist()) == slow


def test_a_noisy_steady_program_keeps_nearly_all_steps() -> None:
    dropped = [
        slow_steps((1e6 * np.random.default_rng(seed).lognormal(0, 0.1, 50)).astype(int).tolist())
        for seed in range(200)
    ]
    assert np.mean(dropped) < 0.1


def test_few_or_equal_steps_are_kept() -> None:
    assert slow_steps([]) == slow_steps([9, 1, 1]) == slow_steps([5] * 9) == 0
    assert slow_steps([9, 9, 9, 9, 1, 1, 1, 1]) == 4
