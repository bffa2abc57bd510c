"""Times alone beside times in the trace: intervals, ratios, and the parts of the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.replay.beside import (
    device_split,
    estimate,
    ratio,
    reading_of,
    split_of,
    summed,
)
from profharness.analysis.replay.records import ReplayRow, Split
from profharness.stats.estimate import Estimate

_TIME = st.floats(0, 1e12)


@given(_TIME, _TIME, _TIME, _TIME)
def test_the_parts_sum_to_the_time_in_the_trace_and_none_is_negative(trace, alone, profiled, cold):
    parts = split_of(trace, alone, profiled, cold)
    values = (parts.own_ns, parts.profiler_ns, parts.cold_ns, parts.rest_ns)
    assert min(values) >= 0
    assert sum(values) == pytest.approx(trace)


def test_the_parts_by_hand():
    assert split_of(100.0, 60.0, 65.0, 80.0) == Split(
        own_ns=60.0, profiler_ns=5.0, cold_ns=20.0, rest_ns=15.0
    )
    # alone it took longer: all of it is its own
    assert split_of(100.0, 160.0, 165.0, 180.0).own_ns == 100.0


def test_on_a_device_the_launch_is_no_part_of_an_operator():
    """A copy of 16 us takes 37 with its launch, and 45 with that and cold caches; in the trace
    it took 25.
    """
    assert device_split(25.0, 37.0, 16.0, 45.0) == Split(
        own_ns=16.0, profiler_ns=0.0, cold_ns=8.0, rest_ns=1.0
    )


def test_means_have_intervals_that_do_not_depend_on_when_they_are_made():
    one, other = (estimate([10, 12, 11, 13, 10, 12], "same") for _ in range(2))
    assert one == other
    assert one.value == pytest.approx(68 / 6)
    assert (one.low or 0) < one.value < (one.high or 0)
    assert estimate([7.0]) == Estimate(value=7.0)
    assert estimate([]) == Estimate(value=None)


def test_a_ratio_is_that_of_the_means():
    found = ratio([20.0, 22.0, 18.0, 20.0] * 10, [10.0, 10.5, 9.5, 10.0] * 10)
    assert found.value == 2.0
    assert 1.8 < (found.low or 0) < 2.0 < (found.high or 0) < 2.2
    assert ratio([1.0], []).value is None
    assert ratio([1.0], [0.0]).value is None


@pytest.mark.parametrize(
    ("times", "parts", "reading"),
    [
        (1.02, (100.0, 0.0, 0.0, 2.0), "own"),
        (1.5, (100.0, 0.0, 48.0, 2.0), "cold-caches"),
        (1.5, (100.0, 0.0, 10.0, 40.0), "surroundings"),
        (0.5, (100.0, 0.0, 0.0, 0.0), "doubtful"),
    ],
)
def test_each_reading(times, parts, reading):
    own, profiler, cold, rest = parts
    split = Split(own_ns=own, profiler_ns=profiler, cold_ns=cold, rest_ns=rest)
    narrow = Estimate(value=times, low=times - 0.01, high=times + 0.01)
    assert reading_of(narrow, split) == reading


def test_a_wide_interval_that_holds_1_accuses_nothing():
    split = Split(own_ns=100.0, profiler_ns=0.0, cold_ns=0.0, rest_ns=50.0)
    assert reading_of(Estimate(value=1.5, low=0.9, high=2.1), split) == "own"


def test_the_sum_counts_the_calls_that_lie_in_no_other_row():
    row = ReplayRow(
        name="aten::mm",
        overload="",
        shapes="",
        dtypes="",
        calls=2,
        share=0.5,
        self_ns=200,
        in_trace=Estimate(value=100.0),
        in_trace_median=100.0,
        alone=Estimate(value=60.0),
        alone_median=60.0,
        profiled=Estimate(value=65.0),
        cold=Estimate(value=80.0),
        ratio=Estimate(value=1.5),
        split=Split(own_ns=60.0, profiler_ns=5.0, cold_ns=20.0, rest_ns=15.0),
        reading="surroundings",
    )
    assert summed((row, row), ([100.0, 100.0], [])) == Split(
        own_ns=120.0, profiler_ns=10.0, cold_ns=40.0, rest_ns=30.0
    )
