"""Columns that hold one value are arrays like others, whatever is done to them, and stay small."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.columns import column
from profharness.trace.columns.table import concat
from profharness.trace.model import Kernels, Ops

VALUES = st.integers(-(2**31), 2**31 - 1)
COLUMNS = st.one_of(
    st.tuples(VALUES, st.integers(0, 9)).map(lambda one: column.repeated(one[0], np.int64, one[1])),
    st.lists(st.integers(0, 2), max_size=9).map(lambda values: np.array(values, np.int64)),
)


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_joined_is_concatenate(columns):
    found = column.concat_columns(columns)
    assert found.dtype == np.int64
    assert found.tolist() == np.concatenate(columns).tolist()


@given(COLUMNS, st.data())
def test_rows_are_those_of_numpy(one, data):
    rows = data.draw(st.lists(st.integers(0, len(one) - 1), max_size=6)) if len(one) else []
    picked = np.array(rows, np.int64)
    assert column.taken(one, picked).tolist() == one[picked].tolist()
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(one), max_size=len(one))), np.bool_
    )
    assert column.taken(one, np.flatnonzero(mask)).tolist() == one[mask].tolist()


@given(COLUMNS)
def test_packed_and_back(one):
    back = column.unpacked(pickle.loads(pickle.dumps(column.packed(one))))
    assert (back.dtype, back.tolist()) == (one.dtype, one.tolist())


def test_what_is_one_value_takes_the_memory_of_one():
    rows = 10_000
    table = Kernels.build(
        start_ns=np.arange(rows),
        dur_ns=5,
        name=np.full(rows, 3),
        device=np.repeat([0, 1], rows // 2),
    )
    assert column.is_repeated(table.name)
    assert column.is_repeated(table.queue)
    assert not column.is_repeated(table.device)
    first, second = table.take(table.device == 0), table.take(np.flatnonzero(table.device == 1))
    assert column.is_repeated(first.device)
    both = concat([first, second])
    assert column.is_repeated(both.name)
    assert not column.is_repeated(both.device)
    assert both.device.tolist() == table.device.tolist()
    assert len(pickle.dumps(table)) < rows * 16
    again = pickle.loads(pickle.dumps(table))
    assert column.is_repeated(again.name)
    assert again.device.tolist() == table.device.tolist()


def test_not_recorded_is_nan_in_columns_of_floats():
    joined = concat([Ops.build(3, start_ns=0, dur_ns=0), Ops.build(2, start_ns=1, dur_ns=0)])
    assert column.is_repeated(joined.flops)
    assert np.isnan(joined.flops).all()
    assert joined.start_ns.tolist() == [0, 0, 0, 1, 1]


def test_a_shared_value_cannot_be_written_to():
    table = Kernels.build(3, start_ns=1, dur_ns=2)
    with pytest.raises(ValueError, match="read-only"):
        table.start_ns[0] = 7
    given_column = np.array([4, 4, 4])
    kept = table.with_columns(pid=given_column).pid
    given_column[0] = 5
    assert kept.tolist() == [4, 4, 4]
