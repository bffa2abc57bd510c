from __future__ import annotations

import statistics
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.grouping import group, modes, pack

small = st.integers(-1, 4)
large = st.integers(-(2**62), 2**62)
rows = st.lists(st.tuples(small, large, small, large), min_size=1, max_size=40)


@given(rows)
def test_packed_keys_are_equal_and_ordered_as_the_rows(found):
    keys = pack([np.array(column, np.int64) for column in zip(*found, strict=True)])
    by_key = sorted(range(len(found)), key=lambda row: keys[row])
    assert [found[row] for row in by_key] == sorted(found)
    assert len(set(keys.tolist())) == len(set(found))


@given(st.lists(st.tuples(small, st.integers(0, 10**12)), max_size=60))
def test_group_statistics_equal_the_standard_library(found):
    groups = group(
        np.array([key for key, _ in found], np.int32),
        np.array([value for _, value in found], np.int64),
    )
    expected = defaultdict(list)
    for key, value in found:
        expected[key].append(value)
    assert groups.key.tolist() == sorted(expected)
    for place, key in enumerate(groups.key.tolist()):
        values = expected[key]
        assert groups.count[place] == len(values)
        assert groups.sums()[place] == sum(values)
        assert groups.smallest()[place] == min(values)
        assert groups.largest()[place] == max(values)
        assert groups.medians()[place] == statistics.median(values)
        assert groups.deviations()[place] == pytest.approx(
            statistics.stdev(values) if len(values) > 1 else 0.0, rel=1e-9
        )


def test_values_too_wide_for_a_combined_sort():
    groups = group(np.array([1, 2, 1], np.int64), np.array([2**61, 5, -(2**61)], np.int64))
    assert (groups.key.tolist(), groups.sums().tolist(), groups.smallest().tolist()) == (
        [1, 2],
        [0, 5],
        [-(2**61), 5],
    )


@given(st.lists(st.tuples(small, small, small), min_size=1, max_size=40))
def test_mode_is_the_most_common_and_smallest_among_equals(found):
    key, *columns = (np.array(column, np.int64) for column in zip(*found, strict=True))
    keys, chosen = modes(key, columns)
    assert keys.tolist() == sorted({row[0] for row in found})
    for owner, row in zip(keys.tolist(), chosen.tolist(), strict=True):
        counts = Counter(item[1:] for item in found if item[0] == owner)
        best = min(counts, key=lambda shape: (-counts[shape], shape))
        assert found[row] == (owner, *best)


def test_nothing_to_group():
    nothing = np.empty(0, np.int64)
    assert group(nothing, nothing).sums().tolist() == []
    assert [part.tolist() for part in modes(nothing, [nothing])] == [[], []]
    assert pack([nothing]).tolist() == []
