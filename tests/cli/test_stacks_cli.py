"""`hotspots --format folded` and `speedscope`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from tests.analysis.operators.test_around import training
from tests.readers.kineto.kineto_files import document, event, write


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    return training(tmp_path)


def folded(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, int]:
    assert run_cli(["hotspots", str(path), "--format", "folded", *options]) == 0
    lines = (line.rpartition(" ") for line in capsys.readouterr().out.splitlines())
    return {stack: int(ns) for stack, _, ns in lines}


def rows(path: Path, capsys: pytest.CaptureFixture[str], by: str) -> int:
    assert run_cli(["hotspots", str(path), "--json", "--by", by]) == 0
    table = json.loads(capsys.readouterr().out)
    if by == "kernel":
        return int(table["total_ns"])
    return sum(row["device_ns"] for row in table["rows"]) + int(table["device_ns_outside"])


@pytest.mark.parametrize("by", ["stack", "module", "op", "kernel"])
def test_folded_stacks_sum_to_the_table(
    trained: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    assert sum(folded(trained, capsys, "--by", by).values()) == rows(trained, capsys, by)


def test_the_richest_stacks_are_written_unless_told_otherwise(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert any(stack.startswith("train.py(3): main;") for stack in folded(trained, capsys))


def test_speedscope_holds_the_same_time(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["hotspots", str(trained), "--format", "speedscope", "--by", "module"]) == 0
    (profile,) = json.loads(capsys.readouterr().out)["profiles"]
    assert sum(profile["weights"]) == profile["endValue"] == rows(trained, capsys, "module")
    assert profile["name"] == "device time"


def test_several_files_are_one_tree(
    trained: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = write(tmp_path / "other.json", trained.read_bytes())
    alone = folded(trained, capsys, "--by", "op")
    assert run_cli(["hotspots", str(trained), str(other), "--format", "folded", "--by", "op"]) == 0
    lines = (line.rpartition(" ") for line in capsys.readouterr().out.splitlines())
    assert {stack: int(ns) for stack, _, ns in lines} == {
        stack: 2 * ns for stack, ns in alone.items()
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "shape"], "rows by shape do not stand inside of each other"),
        (["--top", "3"], "--top is not for --format folded"),
        (["--samples", "power"], "--samples is not for --format folded"),
        (["--pass", "torch"], "no such pass"),
    ],
)
def test_what_means_nothing_for_stacks_is_refused(
    trained: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run_cli(["hotspots", str(trained), "--format", "folded", *options]) == 2
    assert said in capsys.readouterr().err


def test_a_file_without_stacks_says_what_records_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "t.json", document([event("cpu_op", "aten::mm", 0, 5)]))
    assert folded(path, capsys, "--by", "module") == {}
    assert folded(path, capsys) == {"aten::mm": 5_000}
    assert run_cli(["hotspots", str(path), "--format", "folded", "--by", "module"]) == 0
    assert "record them with --stacks" in capsys.readouterr().err
