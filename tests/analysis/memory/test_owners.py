"""Rows of `hotspots --by memory`: those of the peak and of what was taken."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from profharness.analysis.memory.owners import memory_owners
from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.understand.loose.memory_owners import owners_of
from profharness.understand.session.listings import Asked, listing_of
from tests.analysis.memory.made import Program

MIB = 1 << 20


@pytest.fixture
def made(tmp_path: Path) -> Path:
    program = Program(before=3 * MIB)
    program.module("Net_0", 0, 100)
    program.operator("aten::mm", 10, 30)
    program.operator("aten::relu", 40, 60)
    program.operator("aten::sum", 200, 210)
    program.take(12, 0x1000, 5 * MIB)
    program.take(45, 0x2000, 4 * MIB)
    program.free(70, 0x1000)
    program.take(205, 0x3000, 1 * MIB)
    return program.file(tmp_path)


def test_operators_and_modules_sum_to_the_peak(made: Path) -> None:
    table, _ = owners_of(made)
    assert table.peak_bytes == 12 * MIB
    for owner in ("operator", "module"):
        rows = [row for row in table.rows if row.owner == owner]
        assert sum(row.kept_bytes for row in rows) == table.peak_bytes
        assert sum(row.share or 0 for row in rows) == pytest.approx(1)
        assert sum(row.bytes for row in rows) == 10 * MIB
    assert [(row.name, row.kept_bytes) for row in table.rows if row.owner == "operator"] == [
        ("aten::mm", 5 * MIB),
        ("aten::relu", 4 * MIB),
        ("before the recording", 3 * MIB),
        ("aten::sum", 0),
    ]
    assert memory_owners(None).rows == ()


def test_every_form_has_the_same_rows(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hotspots", str(made), "--by", "memory"]
    shown = {}
    for form in ("table", "md", "csv", "json"):
        assert run_cli([*words, "--format", form]) == 0
        shown[form] = capsys.readouterr().out
    rows = json.loads(shown["json"])["rows"]
    listed = list(csv.DictReader(io.StringIO(shown["csv"])))
    assert [row["name"] for row in rows] == [row["name"] for row in listed]
    assert [row["kept_bytes"] for row in rows] == [int(row["kept_bytes (B)"]) for row in listed]
    for form in ("table", "md"):
        assert "12.0 MiB at the peaks" in shown[form]
        assert all(row["name"] in shown[form] for row in rows)
    assert run_cli([*words, "--top", "1"]) == 0
    assert f"and {len(rows) - 1} more rows (--top)" in capsys.readouterr().out
    python = listing_of([made], Asked("memory"))
    assert [row[-1].value for row in python.table.rows] == [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--samples", "power"], "--samples"), (["--format", "folded"], "--format folded")],
)
def test_options_that_mean_nothing_are_refused(
    made: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["hotspots", str(made), "--by", "memory", *more]) == 2
    assert f"{said} is not for rows by memory" in capsys.readouterr().err
    assert run_cli(["hotspots", str(made), str(made), "--by", "memory"]) == 2
    with pytest.raises(UsageError, match="one run or file"):
        listing_of([made, made], Asked("memory"))


def test_without_allocations_it_says_how_to_record_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program()
    program.operator("aten::mm", 0, 10)
    assert run_cli(["hotspots", str(program.file(tmp_path)), "--by", "memory"]) == 0
    assert "--profile-memory" in capsys.readouterr().err
