"""Tables that unfold to more than their size explains, and such that lie about themselves."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.rundir import requests
from profharness.rundir.foreign import parquet
from profharness.rundir.foreign.pages import page_sizes
from profharness.trace.model import Requests


def table(rows: int) -> pa.Table:
    return pa.table({name: np.arange(rows) for name in requests.COLUMNS})


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        requests.read(path, "p")
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message


def test_more_rows_than_bytes_explain_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "REQUEST_ROWS", 1000)
    zeros = pa.table({name: np.zeros(200_000, np.int64) for name in requests.COLUMNS})
    pq.write_table(zeros, tmp_path / "t", compression="zstd")
    assert "it says that it has 200\u2009000 rows in" in refused(tmp_path / "t")
    pq.write_table(table(2000), tmp_path / "t", compression="none")
    assert len(requests.read(tmp_path / "t", "p").requests) == 2000


def test_a_page_that_unfolds_to_too_much_is_not_unfolded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(table(50_000), tmp_path / "t", use_dictionary=False, compression="zstd")
    assert len(requests.read(tmp_path / "t", "p").requests) == 50_000
    monkeypatch.setattr(parquet, "PAGE_BYTES", 100_000)
    assert "a page of it unfolds to" in refused(tmp_path / "t")


def test_columns_of_other_types_are_not_read(tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(np.zeros(9, np.int32), pa.array(["x" * 1000]))
    for column, why in ((long, "dictionary"), (pa.array([0.5] * 9), "double")):
        pq.write_table(table(9).set_column(0, requests.COLUMNS[0], column), tmp_path / "t")
        assert f"its column {requests.COLUMNS[0]} is {why}" in refused(tmp_path / "t")
    pq.write_table(table(9).drop_columns(["done_ns"]), tmp_path / "t")
    assert "it has no column done_ns" in refused(tmp_path / "t")
    pq.write_table(table(9).set_column(0, "sent_ns", table(9).column("sent_ns")), tmp_path / "t")
    assert "sent_ns is several columns" in refused(tmp_path / "t") or "no column" in refused(
        tmp_path / "t"
    )


def test_missing_values_and_times_beyond_any_clock_are_not_read(tmp_path: Path) -> None:
    for bad in (pa.array([None, *range(8)], pa.int64()), pa.array([2**62] * 9)):
        pq.write_table(table(9).set_column(1, "sent_ns", bad), tmp_path / "t")
        assert "sent_ns" in refused(tmp_path / "t")


@settings(max_examples=50)
@given(st.data())
def test_any_changed_table_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    requests.write(
        Requests.build(50, **dict.fromkeys(requests.COLUMNS, 7), point=0, source=0), path
    )
    content = bytearray(path.read_bytes())
    places = st.integers(0, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.one_of(st.just(len(content)), places))])
    with suppress(InputError):
        assert len(requests.read(path, "p").requests) <= requests.REQUEST_ROWS + len(content)


@given(st.binary(max_size=60))
def test_no_bytes_are_walked_for_ever(data: bytes) -> None:
    try:
        sizes = page_sizes(data, 0, len(data))
    except ValueError:
        return
    assert len(sizes) <= len(data)
