"""`--capture-trace` of `hotspots` and `metrics`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from tests.trace.graphs.graph_files import Run, captures_of, linear, replays_of

GRAPH = [linear(2, 3, 4, "gemm"), Run("aten::relu", ["relu"], [[2, 3]])]
FLOPS = 2 * 2 * 3 * 4


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A capture, and the trace of two replays."""
    captures_of(tmp_path, GRAPH)
    replays_of(tmp_path, ["gemm", "relu"], ["gemm", "relu"])
    return tmp_path / "capture.json", tmp_path / "replays.json"


def test_hotspots_list_the_captured_operators(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    capture, trace = files
    line = ["hotspots", "--by", "op", "--format", "json", str(trace)]
    run_cli([*line, "--capture-trace", str(capture)])
    said = capsys.readouterr()
    rows = {row["name"]: row for row in json.loads(said.out)["rows"]}
    assert rows["aten::mm"]["flops"] == 2 * FLOPS
    assert [rows[name]["calls"] for name in ("aten::linear", "aten::mm", "aten::relu")] == [2, 2, 2]
    assert {row["total_ns"] for row in rows.values()} == {0}
    assert (rows["aten::mm"]["device_ns"], rows["aten::relu"]["device_ns"]) == (14_000, 14_000)
    assert said.err.startswith("info: 4 of 4 kernels of graph replays")
    run_cli(line)
    assert json.loads(capsys.readouterr().out)["rows"] == []


def test_metrics_of_one_and_of_many_files(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, trace = files
    (tmp_path / "other").mkdir()
    replays_of(tmp_path / "other", ["gemm", "relu"])
    for paths, replays in (([trace], [2]), ([trace, tmp_path / "other/replays.json"], [2, 1])):
        run_cli(["metrics", "--json", *map(str, paths), "--capture-trace", str(capture)])
        findings = json.loads(capsys.readouterr().out)["findings"]
        assert [
            item["figures"]["exact_replays"] for item in findings if item["id"] == "graph-replays"
        ] == replays


@pytest.mark.parametrize("command", ["hotspots", "metrics"])
def test_a_file_without_a_capture_is_an_error(
    command: str, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli([command, str(files[1]), "--capture-trace", str(files[1])]) == 4
    assert "no graph is captured in this trace" in capsys.readouterr().err


def test_a_capture_of_something_else_is_told(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replays_of(tmp_path, ["x", "y"])
    run_cli(["hotspots", "--by", "op", str(files[1]), "--capture-trace", str(files[0])])
    assert "warning: 0 of 2 kernels of graph replays" in capsys.readouterr().err
