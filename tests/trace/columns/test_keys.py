"""Keys of rows against Python's tuples, and distinct values against numpy.unique."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.columns.column import repeated
from profharness.trace.columns.keys import coded, distinct, first_rows, pack

Column = npt.NDArray[np.int64]
near = st.integers(-3, 3)
far = st.integers(-(2**63), 2**63 - 1)
columns = st.one_of(
    st.lists(near | far, max_size=40).map(lambda values: np.array(values, np.int64)),
    st.lists(near, max_size=40).map(lambda values: np.array(values, np.int32)),
    st.tuples(near | far, st.integers(0, 9)).map(lambda one: repeated(one[0], np.int64, one[1])),
)


@given(columns)
def test_distinct_values_are_those_of_numpy(column: Column) -> None:
    values, place = np.unique(column, return_inverse=True)
    found, rank = coded(column)
    assert found.tolist() == distinct(column).tolist() == values.tolist()
    assert found.dtype == distinct(column).dtype == column.dtype
    assert rank.tolist() == place.tolist()


@given(columns)
def test_the_first_row_of_each_value(column: Column) -> None:
    first, place = first_rows(column)
    _, expected, rank = np.unique(column, return_index=True, return_inverse=True)
    assert first.tolist() == expected.tolist()
    assert place.tolist() == rank.tolist()


def test_a_wide_range_of_many_rows_and_a_narrow_one() -> None:
    """More rows than the smallest table: marked in a table where the range is as wide as the rows
    are many, else sorted.
    """
    for step in (1, 1000):
        column = np.repeat(np.arange(-70_000, 70_000, dtype=np.int64) * step, 2)[::-1]
        values, place = coded(column)
        assert np.array_equal(values[place], column)
        assert np.array_equal(values, np.arange(-70_000, 70_000) * step)
        assert np.array_equal(first_rows(column)[0], np.arange(2 * 140_000 - 2, -1, -2))


@given(
    st.integers(1, 12).flatmap(
        lambda rows: st.lists(
            st.lists(near | far, min_size=rows, max_size=rows), min_size=1, max_size=4
        )
    )
)
def test_packed_keys_are_equal_and_ordered_as_the_rows(table: list[list[int]]) -> None:
    rows = list(zip(*table, strict=True))
    key = pack([np.array(column, np.int64) for column in table]).tolist()
    for one, first in zip(key, rows, strict=True):
        for other, second in zip(key, rows, strict=True):
            assert (one < other, one == other) == (first < second, first == second)
