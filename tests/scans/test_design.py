"""Which points of a grid are measured, and in which order."""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from profharness.node.probe import Environment
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.rundir.executions.axes import Axis
from profharness.scans import create
from profharness.scans.command import CommandScan
from profharness.scans.design import latin_hypercube, rounds, settings_of

LEVELS = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def axes_with(levels: list[int]) -> tuple[Axis, ...]:
    return tuple(Axis(f"a{at}", tuple(map(str, range(count)))) for at, count in enumerate(levels))


@given(LEVELS)
def test_the_grid_is_every_combination_once(levels: list[int]) -> None:
    settings = settings_of(axes_with(levels), "grid", 1)
    assert list(settings) == list(itertools.product(*(map(str, range(count)) for count in levels)))


@given(LEVELS, st.integers(0, 2**31), st.floats(0, 1))
def test_a_latin_hypercube_has_distinct_points_in_balance(
    levels: list[int], seed: int, share: float
) -> None:
    grid = prod(levels)
    size = 1 + round(share * (grid - 1))
    axes = axes_with(levels)
    settings = latin_hypercube(axes, size, seed)
    assert len(settings) == len(set(settings)) == size
    assert settings == latin_hypercube(axes, size, seed)
    if size > grid // 2:
        return  # there a point that came twice may have been put in another place
    for at, axis in enumerate(axes):
        counts = Counter(setting[at] for setting in settings)
        assert max(counts.values()) - min(counts[value] for value in axis.values) <= 1


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**31))
def test_each_round_has_every_point_once(points: int, repeats: int, seed: int) -> None:
    order = rounds(points, repeats, seed)
    for repeat in range(repeats):
        turn = order[repeat * points : (repeat + 1) * points]
        assert sorted(turn) == [(point, repeat) for point in range(points)]


def test_rounds_are_at_random() -> None:
    order = rounds(9, 3, 20260101)
    turns = {tuple(point for point, repeat in order if repeat == at) for at in range(3)}
    assert len(turns) == 3
    assert tuple(range(9)) not in turns


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
def test_every_point_has_a_folder_of_its_own(words: list[str]) -> None:
    request = from_mapping(
        {"command": ("x", "{n}"), "axes": {"n": words}, "repeats": 1}, COMMAND_LINE
    )
    scan = create(request, Environment(host="node"))
    assert isinstance(scan, CommandScan)
    assert len(set(scan.ids)) == len(words)
    assert all("/" not in name and "~" not in name and name[0] not in ".-" for name in scan.ids)
