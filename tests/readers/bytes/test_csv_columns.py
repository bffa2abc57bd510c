"""Bounds of tables that are read as texts."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import read_table, repeated
from profharness.readers.bytes.limits import COLUMNS
from tests.steps import calls_of

STATISTICS = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n'


def test_a_gzipped_table_is_read_up_to_a_size_and_a_plain_one_whole(tmp_path: Path) -> None:
    text = "a,b\n" + "1,2\n" * (3 << 20)
    plain, packed = tmp_path / "plain.csv", tmp_path / "packed.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_table(plain).rows == 3 << 20
    table = read_table(packed)
    assert 250_000 < table.rows < 600_000
    assert "more fields than a file of its size can" in table.problems()[0].message


def test_gzipped_statistics_are_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "results.stats.csv.gz"
    path.write_bytes(gzip.compress((STATISTICS + '"k",1,3000,3000,0.5\n' * 700_000).encode()))
    trace = readers.read(path)
    assert 100_000 < len(trace.statistics) < 250_000
    assert "more fields than a file of its size can" in trace.problems[0].message


def test_statistics_of_more_names_than_can_be_judged_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.stats.csv.gz"
    rows = "".join(f'"k{n}",1,3000,3000,0.5\n' for n in range(40_000))
    path.write_bytes(gzip.compress((STATISTICS + rows).encode()))
    with pytest.raises(InputError, match="kernels have 40000 different names"):
        readers.read(path)


def test_a_table_of_more_columns_than_counters_make_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(COLUMNS + 1)) + "\n")
    with pytest.raises(InputError, match="names 10001 columns, more than the 10000"):
        read_table(path)


def test_columns_of_one_name_are_found_in_one_pass() -> None:
    assert repeated(["a", "", "b", "a", "", "a", "b"]) == ("a", "a", "b")
    names = [f"c{n}" for n in range(2000)]
    assert calls_of(lambda: repeated(names)) < 2 * len(names)
