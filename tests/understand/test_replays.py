"""Captures of graphs beside the traces of their replays: what is found, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import InputError, UsageError
from profharness.findings import Finding
from profharness.understand.load import load
from profharness.understand.replays import read_captures, with_captures
from tests.trace.graphs.graph_files import Recording, captures_of, mm, replays_of

GRAPH = [mm(2, 3, 4, "a"), mm(2, 3, 4, "b")]


def found(folder: Path, *replays: list[str]) -> Finding:
    """The one new finding on a trace of these replays, beside a capture of `GRAPH`."""
    captures_of(folder, GRAPH)
    replays_of(folder, *replays)
    loaded = load([folder / "replays.json"])
    given = with_captures(loaded, (folder / "capture.json",))
    assert with_captures(loaded, ()) is loaded
    (new,) = given.findings[len(loaded.findings) :]
    return new


def test_replays_that_a_capture_explains(tmp_path: Path) -> None:
    item = found(tmp_path, ["a", "b"], ["a", "b"])
    assert "unmatched" not in item.id
    assert (item.id, item.severity) == ("graph-replays", "info")
    assert item.message == (
        "4 of 4 kernels of graph replays (100.0 % of their time) have the operators of their "
        "capture (replays: 2 equal to a captured graph kernel by kernel)"
    )
    assert item.figures == {
        "captured_graphs": 1, "replays": 2, "exact_replays": 2, "in_order_replays": 0,
        "ambiguous_replays": 0, "kernels": 4, "matched_kernels": 4, "kernels_without_operator": 0,
        "matched_time_share": 1.0,
    }  # fmt: skip


def test_replays_that_a_capture_explains_in_order_are_no_success(tmp_path: Path) -> None:
    item = found(tmp_path, ["a", "b"], ["a", "x"], ["x", "y"])
    assert (item.id, item.severity) == ("graph-replays-unmatched", "warning")
    assert item.message == (
        "3 of 6 kernels of graph replays (50.0 % of their time) have the operators of their "
        "capture (replays: 1 equal to a captured graph kernel by kernel; 1 by the longest match "
        "in order; 1 as they were, since no captured graph matches)"
    )


def test_kernels_launched_outside_of_the_capture_s_operators_are_counted_apart(
    tmp_path: Path,
) -> None:
    captures_of(tmp_path, [*GRAPH, "bare"])
    replays_of(tmp_path, ["a", "b", "bare"])
    loaded = load([tmp_path / "replays.json"])
    item = with_captures(loaded, (tmp_path / "capture.json",)).findings[-1]
    assert (item.id, item.severity) == ("graph-replays", "info")
    assert item.message.startswith("2 of 3 kernels of graph replays (66.7 % of their time) have")
    assert item.message.endswith("; 1 kernel was launched outside of any operator of the capture")
    assert item.figures["matched_kernels"] == 2
    assert item.figures["kernels_without_operator"] == 1


def test_a_trace_without_replays(tmp_path: Path) -> None:
    item = found(tmp_path)
    assert (item.id, item.severity) == ("graph-replays-unmatched", "info")
    assert item.message.startswith("the trace holds no kernel of a graph replay")
    assert item.advice == "leave --capture-trace out for this file"


def test_without_a_capture_nothing_is_said(tmp_path: Path) -> None:
    replays_of(tmp_path, ["a", "b"])
    loaded = load([tmp_path / "replays.json"])
    assert with_captures(loaded, ()) is loaded
    assert [item for item in loaded.findings if "replays" in item.id] == []


def test_files_that_are_no_capture_are_refused(tmp_path: Path) -> None:
    recording = Recording()
    recording.run(mm(1, 1, 1))
    recording.read(tmp_path / "plain.json")
    with pytest.raises(InputError, match="no graph is captured in this trace"):
        read_captures((tmp_path / "plain.json",))
    captures_of(tmp_path, GRAPH, named=False)
    with pytest.raises(InputError, match="do not say which kernels they launch"):
        read_captures((tmp_path / "capture.json",))
    captures_of(tmp_path, ["a", "b"])
    with pytest.raises(InputError, match="no operator is recorded around the captured") as bare:
        read_captures((tmp_path / "capture.json",))
    assert bare.value.hint == "record the CPU activity too"
    with pytest.raises(UsageError, match="a run is no trace of a capture"):
        read_captures((tmp_path,))
    with pytest.raises(InputError, match="there is no such file"):
        read_captures((tmp_path / "missing.json",))
    with pytest.raises(UsageError, match="named twice"):
        read_captures((tmp_path / "capture.json",) * 2)
