from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profharness.errors import OutputExists
from profharness.measure.recorder import Recorder
from profharness.rundir.claims import new_folders
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir, write_atomic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def a_manifest() -> Manifest:
    return Manifest(id="r", created="", profharness="0", kind="command", argv=())


def test_each_of_many_starts_at_once_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(20) as pool:
        made = list(
            pool.map(
                lambda _: new_folders.make_next(tmp_path / "traces" / "run", shared=False),
                range(100),
            )
        )
    assert sorted(path.name for path in made) == sorted(
        ["run", *(f"run-{number}" for number in range(2, 101))]
    )


@pytest.mark.parametrize(
    ("shared", "groups", "folder", "manifest"),
    [
        (False, False, 0o700, 0o600),
        (True, False, 0o755, 0o640),
        (False, True, 0o2755, 0o640),
    ],
)
def test_a_new_run_is_its_owners_alone_unless_it_is_shared(
    tmp_path: Path, *, shared: bool, groups: bool, folder: int, manifest: int
) -> None:
    before = os.umask(0o022)
    try:
        if groups:
            tmp_path.chmod(0o2775)
        run = RunDir.create(tmp_path / "run", shared=shared)
        recorder = Recorder(run, a_manifest(), shared=shared)
        recorder.update(state="done")
    finally:
        os.umask(before)
    assert mode(run.root) == folder
    assert mode(run.manifest_path) == manifest


def test_a_folder_that_is_there_keeps_its_mode_and_a_manifest_too(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o751)
    run = RunDir.create(tmp_path / "run")
    assert mode(run.root) == 0o751
    recorder = Recorder(run, a_manifest())
    assert mode(run.manifest_path) == 0o600
    run.manifest_path.chmod(0o644)  # by a user who shows it to others
    recorder.update(state="done")
    assert mode(run.manifest_path) == 0o644


def test_who_holds_a_folder_makes_it_neither_full_nor_taken(tmp_path: Path) -> None:
    (tmp_path / "holder.json").touch()
    (tmp_path / ".holder.0123").touch()
    RunDir.create(tmp_path)
    (tmp_path / "manifest.json").touch()
    with pytest.raises(OutputExists, match="not an empty folder"):
        RunDir.create(tmp_path)


def test_the_umask_stays_as_it_is_while_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that makes a file meanwhile would make it with the wrong mode."""

    def asked(_: int) -> int:
        raise AssertionError("the umask was set")

    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", asked)
            write_atomic(tmp_path / "open", b"1")
            write_atomic(tmp_path / "own", b"1", mode=0o600)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "open"), mode(tmp_path / "own")) == (0o640, 0o600)


def test_nothing_of_ours_sets_the_umask(repository: Path) -> None:
    """It belongs to all threads of a process, and to a workload's own files."""
    setting = [
        str(path.relative_to(repository))
        for folder in ("profharness", "wrappers")
        for path in sorted((repository / folder).rglob("*.py"))
        if "umask(" in path.read_text()
    ]
    assert setting == []
