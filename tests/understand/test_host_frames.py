"""Python's functions name what the host did wherever they were recorded: in one file and several."""

from __future__ import annotations

from pathlib import Path

from profharness.understand.loose.summaries import summarise_paths
from tests.analysis.replay.calls import Event, operator, written


def function(name: str, start_us: float, dur_us: float) -> Event:
    """One record of a function of Python."""
    return {**operator(name, start_us, dur_us), "cat": "python_function"}


def recorded(path: Path, function_us: float) -> Path:
    """Two operators, and between them a function."""
    return written(
        path,
        operator("aten::mm", 0, 10),
        function("train.py(10): read", 20, function_us),
        operator("aten::mm", 990, 10),
    )


def named(*paths: Path) -> dict[tuple[str, str], int]:
    host = summarise_paths(paths).host
    assert host is not None
    return {(part.kind, part.name): part.ns for part in host.parts}


def test_several_files_are_told_by_their_functions_as_each_alone(tmp_path: Path):
    first, second = recorded(tmp_path / "a.json", 300), recorded(tmp_path / "b.json", 500)
    assert named(first) == {
        ("operator", "aten::mm"): 20_000,
        ("python", "train.py(10): read"): 300_000,
        ("nothing", ""): 680_000,
    }
    assert named(first, second) == {
        ("operator", "aten::mm"): 40_000,
        ("python", "train.py(10): read"): 800_000,
        ("nothing", ""): 1_160_000,
    }
