from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.stats import intervals
from profharness.stats.intervals import Intervals

LENGTH = 60
pairs = st.lists(
    st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(
        lambda pair: (min(pair), max(pair))
    ),
    max_size=12,
)


def make(found: list[tuple[int, int]]) -> Intervals:
    return intervals.of([start for start, _ in found], [end for _, end in found])


def bits(held: Intervals) -> np.ndarray:
    """One boolean per ns: the oracle's picture of a set."""
    picture = np.zeros(LENGTH, bool)
    for start, end in zip(held.start, held.end, strict=True):
        picture[start:end] = True
    return picture


def is_merged(held: Intervals) -> bool:
    return bool(np.all(held.end > held.start) and np.all(held.start[1:] > held.end[:-1]))


@given(pairs)
def test_merge_keeps_every_instant_once(found):
    merged = intervals.merge(make(found))
    assert is_merged(merged)
    np.testing.assert_array_equal(bits(merged), bits(make(found)))
    assert merged.total == bits(make(found)).sum() <= make(found).total
    assert (
        intervals.merge(intervals.lasting([s for s, _ in found], [e - s for s, e in found])).total
        == merged.total
    )


@given(pairs, pairs)
def test_set_operations_equal_those_on_a_bitmap(first, second):
    a, b = intervals.merge(make(first)), intervals.merge(make(second))
    for operation, oracle in (
        (intervals.intersect, np.logical_and),
        (intervals.union, np.logical_or),
        (intervals.subtract, lambda x, y: x & ~y),
    ):
        result = operation(a, b)
        np.testing.assert_array_equal(bits(result), oracle(bits(a), bits(b)))
        assert is_merged(result)


@given(pairs, st.integers(0, LENGTH), st.integers(0, LENGTH))
def test_clip_and_complement_share_the_window_out(found, low, high):
    merged = intervals.merge(make(found))
    inside, free = intervals.clip(merged, low, high), intervals.complement(merged, low, high)
    window = bits(intervals.window(low, high))
    np.testing.assert_array_equal(bits(inside), bits(merged) & window)
    np.testing.assert_array_equal(bits(free), ~bits(merged) & window)
    assert inside.total + free.total == intervals.window(low, high).total


@given(pairs, pairs)
def test_time_of_each_interval_inside_a_set(found, held):
    spans, merged = make(found), intervals.merge(make(held))
    expected = [bits(merged)[start:end].sum() for start, end in found]
    np.testing.assert_array_equal(intervals.inside_ns(spans, merged), np.array(expected, np.int64))
    instants = np.arange(LENGTH)
    np.testing.assert_array_equal(intervals.contains(merged, instants), bits(merged))


@given(pairs, st.lists(st.integers(1, 5), min_size=12, max_size=12), pairs)
def test_running_sum_and_its_integral(found, weights, window):
    weights = weights[: len(found)]
    level = np.zeros(LENGTH)
    for (start, end), weight in zip(found, weights, strict=True):
        level[start:end] += weight
    steps = intervals.running(make(found), weights)
    np.testing.assert_array_equal(steps.at(np.arange(LENGTH)), level)
    inside = bits(make(window))
    merged = intervals.merge(make(window))
    assert intervals.integrate(steps, merged) == level[inside].sum()
    assert (
        intervals.integrate(steps, merged, lambda v: np.minimum(v, 2.0))
        == np.minimum(level, 2)[inside].sum()
    )
    np.testing.assert_array_equal(bits(steps.where(lambda v: v >= 3)), level >= 3)


@given(pairs)
def test_integral_of_concurrency_is_the_sum_of_durations(found):
    everything = intervals.window(0, LENGTH)
    assert intervals.integrate(intervals.running(make(found)), everything) == make(found).total


@given(pairs)
def test_where_at_least_two_members_hold(found):
    level = sum((bits(make([pair])).astype(int) for pair in found), np.zeros(LENGTH, int))
    twice = intervals.overlapping(make(found))
    assert is_merged(twice)
    assert (bits(twice) == (level >= 2)).all()
    in_order = make(sorted(found))
    again = intervals.overlapping(in_order)
    assert (again.start.tolist(), again.end.tolist()) == (twice.start.tolist(), twice.end.tolist())


def test_touching_intervals_are_one_and_empty_ones_vanish():
    merged = intervals.merge(intervals.of([5, 0, 3, 9], [8, 3, 5, 9]))
    assert (merged.start.tolist(), merged.end.tolist()) == ([0], [8])


def test_times_since_the_epoch_stay_exact():
    epoch = 1_789_000_000_000_000_001
    merged = intervals.merge(intervals.lasting([epoch, epoch + 3], [3, 4]))
    assert (merged.start.tolist(), merged.total) == ([epoch], 7)


@pytest.mark.parametrize("operation", [intervals.intersect, intervals.subtract])
def test_operations_on_nothing(operation):
    assert len(operation(intervals.EMPTY, intervals.window(0, 5))) == 0
    assert len(intervals.union()) == 0
    assert intervals.running(intervals.EMPTY).pieces().total == 0
