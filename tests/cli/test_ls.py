"""The list of runs: damaged and foreign ones have a row of their own, and hide no other."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.rundir.manifest import Manifest, PassRecord, PointRecord
from profharness.rundir.paths import RunDir
from tests.steps import calls_of


def run_in(folder: Path, **fields: object) -> Path:
    RunDir.create(folder).write_manifest(
        Manifest(
            **{
                "id": folder.name,
                "created": "2026-01-02T03:04:05Z",
                "profharness": "0",
                "kind": "scan",
                "argv": (),
                "state": "done",
                **fields,
            }
        )
    )
    return folder


def listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run_cli(["ls", str(folder)]) == 0
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.out.splitlines()


def test_damaged_runs_are_listed_with_the_reason_and_the_others_as_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tuple(PointRecord(id=name, pass_name="bare") for name in "aab")
    split = (PassRecord(name="counters", split=("x", "y")),)
    run_in(tmp_path / "b-good", points=points, passes=split)
    for name, content in (("c-cut", b'{"id'), ("d-deep", b'{"x":' + b"[" * 99_999), ("e", b"\xff")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_bytes(content)
    (tmp_path / "f-pipe").mkdir()
    os.mkfifo(tmp_path / "f-pipe" / "manifest.json")
    (tmp_path / "g-out").mkdir()
    (tmp_path / "g-out" / "manifest.json").symlink_to("../b-good/manifest.json")
    (tmp_path / "h-loop").symlink_to("h-loop")
    (tmp_path / "i-link").symlink_to("b-good")
    (tmp_path / "j-gone").symlink_to("nowhere")
    (tmp_path / "k-none").mkdir()
    lines = listed(tmp_path, capsys)
    assert lines[0].startswith("done         2026-01-02T03:04:05Z    2 points  bare")
    assert lines[0].endswith("b-good   split: counters as x+y")
    assert [line.split()[0] for line in lines] == ["done", *["damaged"] * 5, "done"]
    assert "a pipe" in lines[4]
    assert "leads out of the run directory" in lines[5]
    assert "i-link" in lines[6]


def test_texts_of_any_length_take_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path / "a", created="x" * 100_000)
    (line,) = listed(tmp_path, capsys)
    assert len(line) < 300 + len(str(tmp_path))


def test_a_run_costs_a_list_few_steps_however_many_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make soak` measures the seconds of a thousand runs."""
    points = tuple(PointRecord(id=f"torch-b{n}", pass_name="bare", trials=9) for n in range(12))
    first = run_in(tmp_path / "few" / "0", points=points)
    for folder, count in (("few", 50), ("many", 250)):
        for number in range(count):
            root = tmp_path / folder / str(number)
            root.mkdir(parents=True, exist_ok=True)
            if root != first:
                shutil.copy(first / "manifest.json", root)
    listed(tmp_path / "few", capsys)  # the first one imports
    few = calls_of(lambda: listed(tmp_path / "few", capsys))
    many = calls_of(lambda: listed(tmp_path / "many", capsys))
    assert (many - few) / 200 < 500


def test_a_newer_manifest_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run_in(tmp_path / "a") / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    (line,) = listed(tmp_path, capsys)
    assert line.startswith("damaged")
    assert "written by a newer profharness" in line
