"""The table model as a pandas frame."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from profharness.report.frame import frame_of
from profharness.report.table import Cell, Column, Table


def one_column(values: list[object], unit: str = "") -> pd.DataFrame:
    rows = tuple((Cell(value=value),) for value in values)
    return frame_of(Table("t", (Column(key="x", unit=unit),), rows))


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_no_integer_is_rounded_and_none_is_made_up(values: list[int | None]) -> None:
    column = one_column(list(values))["x"]
    assert [None if pd.isna(value) else int(value) for value in column] == values
    if values and None not in values:
        assert column.dtype == "int64"
    elif any(value is not None for value in values):
        assert column.dtype == "Int64"


def test_other_values_have_the_types_that_a_read_csv_would_give_them() -> None:
    assert one_column([1, None, 0.5])["x"].dtype == "float64"
    assert one_column([None, None])["x"].dtype == "float64"
    assert one_column(["a", None])["x"].isna().tolist() == [False, True]
    assert one_column([True, False])["x"].tolist() == [True, False]
    assert one_column([])["x"].empty


def test_a_unit_that_is_no_part_of_the_name_is_kept_beside_it() -> None:
    assert one_column([1.0], unit="W").attrs["units"] == {"x": "W"}
    assert one_column([1.0]).attrs["units"] == {}
