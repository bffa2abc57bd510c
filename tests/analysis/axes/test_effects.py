"""What axes are worth: planted effects come back, and chance proves none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from profharness.analysis.axes.effects import Effects, effects_of
from profharness.analysis.axes.noise import Executions, point_means
from profharness.analysis.axes.records import AxisLevels
from profharness.trace.model import F64, I64

NOISE = 0.05
NOTHING: Callable[[I64], F64] = lambda places: np.zeros(len(places))  # noqa: E731  a model


def axes_with(levels: Sequence[int]) -> list[AxisLevels]:
    return [
        AxisLevels(name=f"a{at}", values=tuple(2**k for k in range(count)), is_number=True)
        for at, count in enumerate(levels)
    ]


def grid(levels: Sequence[int]) -> I64:
    return np.array(list(itertools.product(*(range(count) for count in levels))), np.int64)


def scanned(
    levels: Sequence[int],
    repeats: int,
    rng: np.random.Generator,
    model: Callable[[I64], F64] = NOTHING,
    *,
    places: I64 | None = None,
    noise: float = NOISE,
    drift: float = 0.0,
) -> Effects:
    """The effects of a scan whose truth is `model`, with a drift from round to round."""
    where = grid(levels) if places is None else places
    point = np.repeat(np.arange(len(where)), repeats)
    turn = np.tile(np.arange(repeats), len(where))
    rates = 7.0 + model(where)[point] + drift * turn + rng.normal(0, noise, len(point))
    means = point_means(Executions(point, turn, rates), len(where))
    return effects_of(axes_with(levels), where, means)


@pytest.mark.parametrize(
    ("levels", "repeats", "kept"),
    [
        ((3, 5), 3, None),
        ((2, 2), 3, None),
        ((3,), 3, None),
        ((4, 4), 1, None),
        ((4, 4, 4), 3, 20),
        ((3, 5), 3, 13),
    ],
)
def test_chance_proves_an_effect_in_fewer_than_five_scans_of_a_hundred(
    levels: tuple[int, ...], repeats: int, kept: int | None
) -> None:
    """Scans in which nothing has an effect and the machine drifts: the share with any proven effect
    must be below 5 %. 300 scans at a true 5 % would show 7.5 % or more in 1 of 30.
    """
    rng, scans, false = np.random.default_rng(20260101), 300, 0
    for _ in range(scans):
        every = grid(levels)
        places = every if kept is None else every[rng.choice(len(every), kept, replace=False)]
        effects = scanned(levels, repeats, rng, places=places, drift=0.1)
        assert not effects.needs
        false += any(one.proven for one in effects.effects)
    assert false / scans < 0.075


def test_intervals_hold_the_planted_worth_of_both_axes() -> None:
    truth, inside = (0.4, 0.2), [0, 0]
    rng, scans = np.random.default_rng(3), 100
    for _ in range(scans):
        effects = scanned(
            (2, 2), 3, rng, lambda places: 0.4 * places[:, 0] + 0.2 * places[:, 1], drift=0.05
        )
        for at, worth in enumerate(truth):
            factor = next(one for one in effects.effects if one.axes == (f"a{at}",)).factor
            assert factor.low is not None
            assert factor.high is not None
            inside[at] += factor.low <= math.exp(worth) <= factor.high
    assert min(inside) >= 0.95 * scans


def test_what_is_planted_is_proven_and_said_the_right_way_round() -> None:
    effects = scanned(
        (3, 4), 3, np.random.default_rng(5), lambda places: -0.5 * (places[:, 1] == 2)
    )
    first = effects.effects[0]
    assert first.axes == ("a1",)
    assert first.proven
    assert first.worst == {"a1": 4}
    assert first.factor.value == pytest.approx(math.exp(0.5), rel=0.1)
    assert not any(one.proven for one in effects.effects[1:])


def test_an_interaction_is_told_with_the_values_at_which_it_changes() -> None:
    def model(places: I64) -> F64:
        return np.asarray(0.6 * ((places[:, 0] == 1) & (places[:, 1] == 2)), np.float64)

    effects = scanned((2, 3), 4, np.random.default_rng(6), model)
    pair = next(one for one in effects.effects if len(one.axes) == 2)
    assert pair.proven
    assert pair.factor.value == pytest.approx(math.exp(0.6), rel=0.15)
    assert (pair.best["a0"], pair.worst["a0"]) in {(2, 1), (1, 2)}
    best_is_there = pair.best == {"a0": 2, "a1": 4}
    assert best_is_there or pair.worst["a1"] == 4


def test_rounds_that_slow_down_are_no_noise() -> None:
    point, turn = np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6)
    means = point_means(Executions(point, turn, 1.0 * point + 0.5 * turn), 6)
    assert means.sigma == pytest.approx(0.0, abs=1e-9)
    assert means.freedom == 18 - 6 - 2
    assert np.diff(means.mean) == pytest.approx(np.ones(5))


def test_the_noise_that_was_planted_comes_back() -> None:
    rng = np.random.default_rng(8)
    point, turn = np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200)
    rates = rng.normal(0, 1, 200)[point] + rng.normal(0, NOISE, 600)
    means = point_means(Executions(point, turn, rates), 200)
    assert means.sigma == pytest.approx(NOISE, rel=0.1)


def test_without_repeats_two_axes_have_intervals_from_what_they_leave() -> None:
    effects = scanned((4, 4), 1, np.random.default_rng(2), lambda places: 0.3 * places[:, 0])
    assert {one.axes for one in effects.effects} == {("a0",), ("a1",)}
    assert effects.effects[0].proven


def test_too_few_points_say_what_they_need() -> None:
    where = grid((3, 3))
    assert scanned((3, 3), 3, np.random.default_rng(1), places=where[:1]).needs
    assert "more points" in scanned((3, 3), 1, np.random.default_rng(1), places=where[[0, 4]]).needs


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_dependence_is_told_of_the_gain(sign: float) -> None:
    """From the worse value of the first axis to the better one, where that gains most."""
    effects = scanned(
        (3, 3),
        3,
        np.random.default_rng(5),
        lambda at: sign * (at[:, 0] + 0.5 * at[:, 0] * at[:, 1]),
        noise=0.01,
    )
    (pair,) = (one for one in effects.effects if len(one.axes) == 2)
    ends = {value: place for place, value in enumerate((1, 4))}
    assert ends[pair.best["a0"]] - ends[pair.worst["a0"]] == sign
    assert (pair.best["a1"], pair.worst["a1"]) == (4, 1)
