"""Lines that name no run, or say `latest`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from profharness.cli import run_cli
from profharness.options.request import Request
from tests.analysis.run.run_scene import manifest


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs in the folder of runs; the one that was made last is the first by name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFHARNESS_OUTPUT", raising=False)
    for name, created in (("b-old", "2026-11-20T00:00:00Z"), ("a-new", "2026-11-21T00:00:00Z")):
        root = tmp_path / "traces" / name
        root.mkdir(parents=True)
        made = manifest(kind="command", points=(), scan=None, created=created, passes=())
        (root / "manifest.json").write_bytes(msgspec.json.encode(made))
    return tmp_path


@pytest.mark.parametrize("words", [("metrics",), ("metrics", "latest"), ("report", "--json")])
def test_the_newest_run_is_taken_and_named(
    runs: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    run_cli(list(words))
    assert "the newest run: traces/a-new\n" in capsys.readouterr().err


def test_the_two_newest_runs_are_compared(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_cli(["compare"])
    assert "the newest runs: traces/a-new, traces/b-old\n" in capsys.readouterr().err


def test_a_file_of_that_name_is_itself(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "latest").write_text("")
    assert run_cli(["metrics", "latest"]) == 4
    err = capsys.readouterr().err
    assert "latest is empty" in err
    assert "newest" not in err


@pytest.mark.parametrize("words", [("hotspots",), ("view", "latest"), ("compare",)])
def test_without_a_run_the_way_to_one_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFHARNESS_OUTPUT", raising=False)
    assert run_cli(list(words)) == 2
    said = capsys.readouterr().err
    assert "there is no run below traces, and the line names none" in said
    assert "name a run directory or a trace file" in said


def test_steps_may_be_typed_as_two_numbers() -> None:
    assert Request(command=("true",), capture="10:30").capture == "steps=10:30"
