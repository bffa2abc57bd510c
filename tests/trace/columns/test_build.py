from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.columns.build import Growing, Pool, packed_integers, per_text, text_pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import Strings


def test_columns_grow_by_blocks_and_scalars_repeat() -> None:
    rows = Growing("a", "b")
    rows.add(2, a=[1, 2], b=7)
    rows.add(0, a=[], b=7)
    rows.add(1, a=[3], b=8)
    assert len(rows) == 3
    assert rows.take("a").tolist() == [1, 2, 3]
    assert rows.take("b").tolist() == [7, 7, 8]
    with pytest.raises(KeyError):
        rows.take("a")


def test_columns_must_be_known_and_complete() -> None:
    rows = Growing("a", "b")
    with pytest.raises(KeyError):
        rows.add(1, a=[1], b=[1], c=[1])
    with pytest.raises(KeyError):
        rows.add(1, a=[1])
    for values in ([1], [1, 2, 3], []):
        with pytest.raises(ValueError, match="b has"):
            rows.add(2, a=[1, 2], b=values)


def test_a_column_can_be_looked_at_before_it_is_taken() -> None:
    rows = Growing("a")
    assert rows.peek("a").tolist() == []
    rows.add(2, a=[1, 2])
    rows.add(1, a=3)
    assert rows.peek("a").tolist() == rows.peek("a").tolist() == [1, 2, 3]
    assert rows.take("a").tolist() == [1, 2, 3]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_become_a_column(values: list[int]) -> None:
    column = packed_integers(values)
    assert (column.dtype, column.tolist()) == (np.int64, values)
    column[:] = 0  # a column of its own


@pytest.mark.parametrize("odd", [None, 1.5, "1", 2**63, -(2**63) - 1])
def test_what_is_no_integer_of_64_bits_is_refused(odd: object) -> None:
    with pytest.raises(struct.error):
        packed_integers([1, odd])


def test_no_blocks() -> None:
    assert Growing("a").take("a").tolist() == []


def test_pool_numbers_keys_as_they_come() -> None:
    pool: Pool[str] = Pool()
    assert pool.codes(["x", "y", "x"]).tolist() == [0, 1, 0]


def test_text_pool_uses_the_strings_of_the_trace() -> None:
    strings = Strings(["first"])
    assert text_pool(strings).codes([b"", b"first", "é".encode(), b"\xff"]).tolist() == [
        NULL,
        0,
        1,
        2,
    ]
    assert strings.texts == ["first", "é", "\ufffd"]


def test_per_text_asks_once_per_text() -> None:
    asked = []

    def value(text: str) -> int:
        asked.append(text)
        return len(text)

    strings = Strings(["a", "bb", "unused"])
    assert per_text(strings, np.array([0, 1, 1, NULL, 0]), value).tolist() == [1, 2, 2, 0, 1]
    assert sorted(asked) == ["", "a", "bb"]
    assert per_text(Strings(), np.zeros(0, np.int64), value).tolist() == []
