"""Parquet tables hold what the trace holds."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from profharness.trace.model import Strings, Trace
from profharness.writers.columns import read, write
from tests.writers.strategies import traces
from tests.writers.test_perfetto import small_trace


@settings(max_examples=10, deadline=None)
@given(traces())
def test_every_cell_comes_back(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(trace, Path(folder))
        for name, table in trace.tables():
            path = Path(folder) / f"{name}.parquet"
            assert path.exists() == (len(table) > 0)
            if not len(table):
                continue
            found = pq.read_table(path)
            for column in fields(table):
                values = getattr(table, column.name).tolist()
                if column.metadata["unit"] == "string":
                    values = [None if code < 0 else trace.strings[code] for code in values]
                elif column.metadata["unit"] != "ns":
                    values = [
                        None
                        if (value == -1 and isinstance(value, int)) or value != value
                        else value
                        for value in values
                    ]
                assert found[column.name].to_pylist() == values, column.name


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(traces())
def test_a_trace_comes_back_with_texts_among_others(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(trace, Path(folder))
        pools = replace(trace, strings=Strings(("something else", *reversed(trace.strings.texts))))
        found = read(Path(folder), pools)
    for (name, table), (_, again) in zip(trace.tables(), found.tables(), strict=True):
        for column in fields(table):
            ours, theirs = getattr(again, column.name), getattr(table, column.name)
            assert ours.dtype == theirs.dtype
            if column.metadata["unit"] == "string":
                assert [code >= 0 for code in ours] == [code >= 0 for code in theirs]
                assert pools.strings.decode(ours) == trace.strings.decode(theirs)
            else:
                assert np.array_equal(
                    ours, theirs, equal_nan=column.metadata["dtype"] is np.float64
                ), (name, column.name)


def test_columns_say_what_they_mean_and_pools_stand_beside_them(tmp_path: Path) -> None:
    paths = write(small_trace(), tmp_path)
    assert [p.stem for p in paths] == [
        "kernels",
        "copies",
        "api",
        "ops",
        "marks",
        "samples",
        "counters",
        "requests",
        "devices",
        "streams",
        "sources",
    ]
    column = pq.read_schema(tmp_path / "kernels.parquet").field("dur_ns")
    assert column.metadata == {b"unit": b"ns", b"meaning": b"duration; zero is allowed"}
    (source,) = pq.read_table(tmp_path / "sources.parquet").to_pylist()
    assert (source["path"], source["clock"], source["residual_ns"]) == ("a.json", "unknown", 310)
