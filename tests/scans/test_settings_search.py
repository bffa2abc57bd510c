"""The search of settings on made-up response surfaces whose best setting is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.rundir.executions.axes import Axis
from profharness.scans.settings_search import Measured, SettingsSearch
from tests.scans.surfaces import Surface

BATCH = Axis("batch", ("64", "8", "16", "32"))
DELAY = Axis("queue-delay-us", ("0", "1000"))
PROVIDER = Axis("provider", ("cpu", "openvino", "dnnl"))
AXES = (BATCH, DELAY, PROVIDER)
Rate = Callable[[int], Measured]


def searched(search: SettingsSearch, rate: Rate) -> list[Measured]:
    measured: list[Measured] = []
    while (place := search.following(measured)) is not None:
        measured.append(rate(place))
    return measured


@given(st.integers(1, 30), st.integers(0, 1000), st.floats(0.001, 0.3))
@settings(deadline=None, max_examples=40)
def test_it_spends_its_levels_and_no_more(levels: int, seed: int, noise: float) -> None:
    dice = random.Random(seed)
    search = SettingsSearch(AXES, levels, seed)
    measured = searched(search, lambda at: Measured(at, dice.gauss(at / 10, noise), noise))
    assert len(measured) == levels
    assert {one.place for one in measured} <= set(range(24))
    first = [one.place for one in measured[: len(search.begins_with)]]
    assert first == list(search.begins_with)
    assert len(set(first)) == len(first)
    assert search.recommended(measured) in {one.place for one in measured}


def test_the_same_seed_asks_the_same() -> None:
    def places(seed: int) -> list[int]:
        search = SettingsSearch(AXES, 12, seed)
        found = searched(search, lambda at: Measured(at, math.sin(at), 0.01))
        return [one.place for one in found]

    assert places(3) == places(3)
    assert places(3) != places(4)


def test_numbers_stand_by_size_and_categories_as_listed() -> None:
    grid = SettingsSearch(AXES, 8).grid
    by_setting = dict(zip(SettingsSearch(AXES, 8).settings, grid.levels.tolist(), strict=True))
    assert by_setting["64", "0", "cpu"] == [3, 0, 0]
    assert by_setting["8", "1000", "dnnl"] == [0, 1, 2]
    assert grid.ordered == (True, True, False)


def test_the_best_of_those_that_keep_the_limit_is_recommended() -> None:
    """The more instances the faster and the later: 4 of 8 values keep the limit."""
    axis = Axis("instances", tuple(map(str, range(1, 9))))
    search = SettingsSearch((axis,), 10, 1)

    def rate(place: int) -> Measured:
        return Measured(place, math.log(place + 1), 0.01, over=(place - 3.5) / 4, over_sigma=0.01)

    assert search.recommended(searched(search, rate)) == 3


def test_nothing_is_recommended_where_nothing_keeps_the_limit() -> None:
    search = SettingsSearch(AXES, 8)
    measured = searched(search, lambda at: Measured(at, 1.0, 0.01, over=2.0, over_sigma=0.01))
    assert search.recommended(measured) is None


def test_the_last_levels_measure_leaders_again() -> None:
    search = SettingsSearch(AXES, 12, 5)
    measured = searched(search, lambda at: Measured(at, float(at == 7) * 0.01, 0.1))
    again = measured[-search.again :]
    assert {one.place for one in again} <= {one.place for one in measured[: -search.again]}


def test_the_winner_is_measured_again() -> None:
    search = SettingsSearch(AXES, 12, 5)
    measured = searched(search, lambda at: Measured(at, math.sin(at), 0.001))
    assert sum(one.place == search.recommended(measured) for one in measured) > 1


def test_settings_that_fail_cost_only_themselves_and_their_neighbours_doubt() -> None:
    """Beyond a corner everything fails; the best setting lies beside it."""
    batch = Axis("batch", ("8", "16", "32", "64"))
    workers = Axis("workers", ("0", "1", "2", "4", "8"))
    found = 0
    for seed in range(10):
        search = SettingsSearch((batch, workers), 12, seed)

        def rate(place: int) -> Measured:
            size, count = divmod(place, 5)
            if size + count > 6:
                return Measured(place, None, over=0.5, over_sigma=0.3)
            return Measured(place, size + min(count, 3) / 2, 0.01, over=-0.5, over_sigma=0.3)

        found += search.recommended(searched(search, rate)) == 18
    assert found >= 9


def test_where_everything_fails_all_levels_are_spent_and_nothing_is_recommended() -> None:
    search = SettingsSearch(AXES, 30)
    measured = searched(search, lambda at: Measured(at, None, over=0.5, over_sigma=0.3))
    assert len({one.place for one in measured}) == len(measured) == 24
    assert search.recommended(measured) is None


def test_a_search_that_may_measure_all_twice_finds_the_best() -> None:
    search = SettingsSearch(AXES, 48, 2)
    measured = searched(search, lambda at: Measured(at, math.log(10 + (at == 13)), 0.001))
    assert search.recommended(measured) == 13


def share_found(
    surfaces: int, noise: float, by: Callable[[Surface, int, float, int], int]
) -> float:
    """How often the recommended setting is within 5 % of the best, half of all or 20 levels each."""
    found = 0
    for number in range(surfaces):
        surface = Surface(np.random.default_rng([11, number]))
        levels = max(8, min(len(surface.rates) // 2, 20))
        place = by(surface, levels, noise, number)
        found += surface.rates[place] >= 0.95 * surface.rates.max()
    return found / surfaces


def by_search(surface: Surface, levels: int, noise: float, seed: int) -> int:
    dice = np.random.default_rng([12, seed])
    search = SettingsSearch(surface.axes, levels, seed)
    measured = searched(search, lambda at: surface.measured(at, noise, dice))
    place = search.recommended(measured)
    assert place is not None
    return place


def at_random(surface: Surface, levels: int, noise: float, seed: int) -> int:
    dice = np.random.default_rng([13, seed])
    places = dice.choice(len(surface.rates), min(levels, len(surface.rates)), replace=False)
    return max(places.tolist(), key=lambda at: surface.measured(at, noise, dice).value)


@pytest.mark.statistics
@pytest.mark.parametrize(("noise", "least"), [(0.01, 0.93), (0.03, 0.92), (0.1, 0.8)])
def test_it_finds_a_setting_within_5_percent_far_more_often_than_chance(
    noise: float, least: float
) -> None:
    ours = share_found(100, noise, by_search)
    theirs = share_found(100, noise, at_random)
    print(f"noise {noise}: {ours:.2f} by the search, {theirs:.2f} at random")
    assert ours >= least
    assert ours >= theirs + 0.1
