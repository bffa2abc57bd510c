"""Clocks that collectives put together, against the offsets and rates that they were made with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from profharness.analysis.communication.clocks import CommonClock, common_clock
from profharness.analysis.communication.collectives import Arrivals
from profharness.analysis.communication.corridor import furthest
from profharness.analysis.communication.matching import matched
from profharness.trace.collectives import Collective, encode

EPOCH = 1_760_000_000_000_000_000
S = 1_000_000_000


class World:
    """Ranks that meet in `calls` collectives; what each stamps is its own clock's time."""

    def __init__(self, seed, ranks, calls, *, ppm=0.0, kinds=("all_reduce",), always_late=None):
        dice = np.random.default_rng(seed)
        meet = np.arange(calls) * 20_000_000 + dice.integers(0, 5_000_000, calls)
        late = dice.integers(0, 400_000, (ranks, calls))
        if always_late is not None:
            late[always_late] += 500_000
        self.start = meet + late
        over = self.start.max(axis=0) + dice.integers(8_000, 60_000, calls)
        # ranks leave a collective apart, each with a habit of its own
        self.end = (
            over + dice.integers(0, 3_000, (ranks, 1)) + dice.integers(0, 900, (ranks, calls))
        )
        self.offset = EPOCH + dice.integers(-5 * S, 5 * S, ranks)
        self.rate = 1 + 1e-6 * ppm * dice.uniform(-1, 1, ranks)
        self.texts = tuple(
            encode(Collective(kind, 1000, 1000, "Float", ranks, "g")) for kind in kinds
        )
        self.what = np.arange(calls) % len(kinds)

    def stamped(self, rank, true):
        return self.offset[rank] + np.round(true * self.rate[rank]).astype(np.int64)

    def arrivals(self):
        found = []
        for rank in range(len(self.start)):
            start, end = (self.stamped(rank, times[rank]) for times in (self.start, self.end))
            found.append(Arrivals(f"rank {rank}", start, end - start, self.what, self.texts))
        return found

    def clock(self, unit_of=None) -> CommonClock:
        ranks = self.arrivals()
        groups, left = matched(ranks)
        assert not left
        return common_clock(ranks, groups, unit_of)

    def error(self, clock: CommonClock, rank: int) -> int:
        """How far the same instants of this rank and of the base lie apart on the common clock."""
        instants = np.linspace(self.end[:, 0].max(), self.end[:, -1].min(), 50)
        own = clock.of(rank).conversion(self.stamped(rank, instants))
        base = clock.of(int(clock.base)).conversion(self.stamped(int(clock.base), instants))
        return int(np.abs(own - base).max())


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 120), st.booleans())
def test_the_clock_is_within_the_bound_that_it_tells(seed, ranks, calls, drifting):
    world = World(seed, ranks, calls, ppm=20.0 if drifting else 0.0)
    clock = world.clock()
    for rank in range(ranks):
        unit = clock.of(rank)
        assert unit.bound_ns is not None
        assert unit.contradiction_ns == 0
        assert world.error(clock, rank) <= unit.bound_ns + 2  # stamps are rounded to 1 ns


def test_a_bound_is_worth_telling_and_the_error_is_far_below_it():
    world = World(7, 8, 400)
    clock = world.clock()
    assert clock.bound_ns is not None
    assert 3_000 < clock.bound_ns < 30_000  # the shortest calls take 8 us
    assert max(world.error(clock, rank) for rank in range(8)) <= 4_000
    assert clock.scatter_ns < 2_000


def test_the_bound_grows_where_one_rank_always_comes_last():
    even, late = World(7, 4, 400).clock(), World(7, 4, 400, always_late=0).clock()
    assert even.bound_ns is not None
    assert late.bound_ns is not None
    assert late.bound_ns > 3 * even.bound_ns


def test_clocks_of_different_rates_get_a_line():
    world = World(3, 4, 400, ppm=20.0)
    clock = world.clock()
    lines = [len(unit.conversion.knots_ns) for unit in clock.units.values()]
    assert lines.count(2) == 3
    assert clock.scatter_ns < 5_000 < clock.constant_ns
    assert max(world.error(clock, rank) for rank in range(4)) <= 6_000


def test_ranks_of_one_host_move_together():
    world = World(5, 4, 100)
    world.offset[1], world.offset[3] = world.offset[0], world.offset[2]
    clock = world.clock(["n0", "n0", "n1", "n1"])
    assert set(clock.units) == {"n0", "n1"}
    assert clock.of(0) is clock.of(1)
    assert clock.of(2) is clock.of(3)
    instants = np.arange(10) * S
    apart = clock.of(2).conversion(world.stamped(2, instants)) - world.stamped(0, instants)
    assert np.abs(apart).max() <= clock.units["n1"].bound_ns


def test_exchanges_put_clocks_together_but_bound_nothing():
    clock = World(5, 3, 50, kinds=("all_to_all",)).clock()
    assert clock.bound_ns is None
    assert clock.scatter_ns < 2_000


def test_calls_that_no_even_clock_fits_are_told():
    world = World(5, 2, 200)
    world.offset = np.array([EPOCH, EPOCH])
    stepped = world.arrivals()
    jump = np.where(np.arange(200) >= 100, 2_000_000, 0)
    moved = Arrivals("rank 1", stepped[1].start + jump, stepped[1].dur, world.what, world.texts)
    ranks = [stepped[0], moved]
    clock = common_clock(ranks, matched(ranks)[0])
    assert clock.of(1).contradiction_ns > 200_000
    assert clock.of(1).bound_ns > clock.of(1).contradiction_ns


@given(st.data())
def test_the_furthest_line_is_that_of_a_linear_programme(data):
    count = data.draw(st.integers(1, 30))
    at = np.cumsum(data.draw(st.lists(st.integers(1, 10**9), min_size=count, max_size=count)))
    low = np.array(
        data.draw(st.lists(st.integers(-(10**5), 10**4), min_size=count, max_size=count))
    )
    room = data.draw(st.lists(st.integers(0, 10**5), min_size=count, max_size=count))
    high = low + np.array(room)
    found, short = furthest(at, low, high)
    x = (at - at[0]) / max(int(at[-1] - at[0]), 1)
    rows = np.concatenate([np.stack([np.ones(count), x], 1), -np.stack([np.ones(count), x], 1)])
    limits = np.concatenate([high, -low]).astype(float)
    feasible = linprog([0, 0], rows, limits, bounds=(None, None)).status == 0
    assert feasible == (short == 0) or short <= 1
    if short:
        return
    widest = 0.0
    for moment in (0.0, float(x[-1])):
        for sign in (1, -1):
            told = linprog([-sign, -sign * moment], rows, limits, bounds=(None, None))
            if told.status == 0:
                widest = max(widest, -told.fun)
    assert found == pytest.approx(widest, abs=2 + 1e-6 * widest)
