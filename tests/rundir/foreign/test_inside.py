"""What lies in a run is read, through links that stay in it; what leads out of it is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.names import is_plain_name, wrong_path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = tmp_path / "run"
    (root / "a").mkdir(parents=True)
    (root / "a" / "file").write_text("x")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "run-2").mkdir()
    (tmp_path / "run-2" / "file").write_text("x")
    return root


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("file", ""),
        ("../a/file", ""),
        ("../../secret", "leads out"),
        ("../../run-2/file", "leads out"),
        ("/etc/passwd", "leads out"),
        ("/dev/zero", "leads out"),
        ("nowhere", ""),
        ("..", "a folder"),
        ("link", "Too many levels"),
    ],
)
def test_a_link_is_followed_inside_of_the_run_only(run: Path, target: str, why: str) -> None:
    (run / "a" / "link").symlink_to(target)
    found = Inside(run).why_not(run / "a" / "link")
    assert why in found
    assert bool(found) == bool(why)


def test_a_folder_that_leads_out_hides_its_files(run: Path) -> None:
    (run / "b").symlink_to("../run-2")
    (run / "c").symlink_to("a")
    found = Inside(run).found("*/file")
    assert [path.parent.name for path in found.paths] == ["a", "c"]
    (problem,) = found.refused
    assert problem.source == "b/file"
    assert "leads out of the run directory" in problem.message


def test_the_runs_own_path_may_be_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("run")
    found = Inside(tmp_path / "latest").found("*/file")
    assert len(found.paths) == 1
    assert not found.refused


def test_a_pipe_is_named_and_a_missing_file_is_left_to_who_opens_it(run: Path) -> None:
    os.mkfifo(run / "a" / "pipe")
    assert Inside(run).why_not(run / "a" / "pipe") == "it is a pipe, and was left out"
    assert not Inside(run).why_not(run / "a" / "none")
    with pytest.raises(InputError, match="pipe is not read: it is a pipe"):
        Inside(run).require(run / "a" / "pipe")


@pytest.mark.parametrize(
    "text",
    ["", "/etc/passwd", "../secret", "a/../../secret", "a\0b", "a/" + "n" * 256, "a/" * 2100],
)
def test_a_record_names_no_file_outside(run: Path, text: str) -> None:
    assert wrong_path(text)
    assert Inside(run).why_not_stated(text) == wrong_path(text)


def test_names_of_folders() -> None:
    assert is_plain_name("rocprofv3~1")
    assert is_plain_name("..more")
    assert not any(is_plain_name(name) for name in ("", ".", "..", "a/b", "/a", "a\0"))


def test_folders_without_end_are_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")  # as pathlib of 3.11, 1,000 deep

    monkeypatch.setattr(Path, "glob", endless)
    with pytest.raises(InputError, match="nested too deeply"):
        Inside(run).found("**/file")
