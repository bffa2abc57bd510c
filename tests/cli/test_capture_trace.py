"""`--capture-trace`, as a user calls the commands that take it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.understand import frames
from tests.analysis.operators import launched
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
    assert {row["total_ns"] for row in rows.values()} == {None}
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


def test_a_run_and_its_report(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, trace = files
    root = launched.run_of(tmp_path / "run", lambda path: shutil.copy(trace, path))
    line = ["--capture-trace", str(capture), "--json"]
    run_cli(["report", str(root), *line])
    found = json.loads(capsys.readouterr().out)
    run_cli(["metrics", str(root), *line])
    for said in (found, json.loads(capsys.readouterr().out)):
        assert said["work"]["known_ns"] == said["work"]["matrix_kernel_ns"] == 14_000
        assert "graph-replays" in [item["id"] for item in said["findings"]]
    rows = json.loads((root / "summary.json").read_text())["use"]["operators"]
    assert "aten::mm" in [row["name"] for row in rows]


@pytest.mark.slow
def test_the_roofline(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mplhep")
    capture, trace = files
    line = ["plot", str(trace), "--roofline", "-o", str(tmp_path / "roofline.svg")]
    assert run_cli(line) == 4
    assert "no operator or kernel whose operations" in capsys.readouterr().err
    assert run_cli([*line, "--capture-trace", str(capture)]) == 0
    assert (tmp_path / "roofline.svg").is_file()


def test_frames_know_the_captured_operators_as_they_are_now(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    capture, trace = files
    found = frames.hotspots(trace, "op", capture_trace=[capture]).set_index("name")
    assert found.loc["aten::mm", "flops"] == 2 * FLOPS
    assert "mfu" in set(frames.metrics(trace, capture_trace=[str(capture)])["figure"])
    captures_of(tmp_path, [linear(4, 3, 4, "gemm"), GRAPH[1]])
    again = frames.hotspots(trace, "op", capture_trace=capture).set_index("name")
    assert again.loc["aten::mm", "flops"] == 4 * FLOPS


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
    (tmp_path / "other").mkdir()
    replays_of(tmp_path / "other", ["gemm", "relu"])
    other = (tmp_path / "other/replays.json").rename(tmp_path / "other.json")
    paths = [str(files[1]), str(other)]
    run_cli(["hotspots", "--by", "op", *paths, "--capture-trace", str(files[0])])
    said = capsys.readouterr().err
    assert "warning: replays.json: 0 of 2 kernels of graph replays (0.0 % of" in said
    assert "info: other.json: 2 of 2 kernels of graph replays (100.0 % of" in said
