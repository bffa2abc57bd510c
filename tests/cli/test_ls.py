"""The list of runs: damaged and foreign ones have a row of their own, and hide no other."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from profharness.cli import run_cli
from profharness.findings import finding
from profharness.rundir.harness_process import identify
from profharness.rundir.manifest import Manifest, PassRecord, PointRecord, ScanRecord
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
    assert lines[0].startswith("done         2026-01-02T03:04:05Z    2 points  bare ")
    assert "b-good " in lines[0]
    assert lines[0].endswith("   split: counters as x+y")
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


def test_a_command_that_failed_says_how_it_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("python", "train it.py")
    for name, status in (("a", 0), ("b", 3), ("c", 139)):
        run_in(tmp_path / name, kind="command", command=command, exit_status=status)
    lines = listed(tmp_path, capsys)
    assert [line.split("  ")[0] for line in lines] == [
        "done",
        "exited 3",
        "killed by SIGSEGV 2026-01-02T03:04:05Z",
    ]
    assert all(line.endswith("python 'train it.py'") for line in lines)


def test_a_run_whose_harness_is_gone_is_killed_and_one_of_a_living_process_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = identify()
    gone = msgspec.structs.replace(mine, start_ticks=mine.start_ticks + 1)
    run_in(tmp_path / "a", state="running", harness=mine)
    run_in(tmp_path / "b", state="running", harness=gone)
    assert [line.split()[0] for line in listed(tmp_path, capsys)] == ["running", "killed"]


def document(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert run_cli(["ls", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    return list(found["runs"])


def test_the_list_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert document(tmp_path / "none", capsys) == []
    told = finding("cold-cache", "slow at first", point="b1")
    run_in(
        tmp_path / "a",
        scan=ScanRecord(name="particlenet"),
        points=(PointRecord(id="b1", pass_name="bare"), PointRecord(id="b1", pass_name="torch")),
        findings=(told, msgspec.structs.replace(told, point="b2")),
    )
    run_in(tmp_path / "b", kind="command", command=("sh", "-c", "x"), exit_status=3)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "manifest.json").write_bytes(b"{")
    scan, command, damaged = document(tmp_path, capsys)
    assert scan == {
        "name": "a",
        "path": str(tmp_path / "a"),
        "state": "done",
        "started": "2026-01-02T03:04:05Z",
        "kind": "scan",
        "scan": "particlenet",
        "command": None,
        "exit_status": None,
        "points": 1,
        "layers": [],
        "split_passes": {},
        "findings": [{"id": "cold-cache", "severity": told.severity}],
        "error": "",
    }
    assert (command["command"], command["exit_status"]) == (["sh", "-c", "x"], 3)
    assert damaged["state"] == "damaged"
    assert "not a readable manifest" in str(damaged["error"])


def test_the_list_as_markdown_holds_no_markup_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_in(tmp_path / "a", kind="command", command=("a|b", "x\n| forged |", "[@you](http://x)"))
    assert run_cli(["ls", str(tmp_path), "--format", "md"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1
    assert r"a\|b" in lines[2]
    assert r"\[@<!-- -->you\](http:<!-- -->//x)" in lines[2]
