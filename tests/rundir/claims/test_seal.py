from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from profharness.rundir import manifest as manifests
from profharness.rundir.claims import seal
from profharness.rundir.manifest import Manifest, ScanRecord


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def sealed(root: Path) -> Manifest:
    made = Manifest(
        id="r",
        created="2026-01-01T00:00:00Z",
        profharness="0",
        kind="scan",
        argv=("profharness", "run"),
        scan=ScanRecord(name="batch", settings={"python": "python3", "batch_sizes": (1, 2)}),
    )
    return msgspec.structs.replace(made, seal=seal.make(root, made))


def test_an_own_run_is_known_as_it_was_read_again(tmp_path: Path) -> None:
    made = sealed(tmp_path)
    read = manifests.decode(manifests.encode(made), "m")
    assert seal.holds(tmp_path, read)
    measured = msgspec.structs.replace(read, state="done", exit_status=0, profharness="9")
    assert seal.holds(tmp_path, measured), "what is measured changes nothing"
    assert (seal.key_path().stat().st_mode & 0o777) == 0o600
    assert (seal.key_path().parent.stat().st_mode & 0o777) == 0o700


def test_what_would_be_started_cannot_be_changed(tmp_path: Path) -> None:
    made = sealed(tmp_path)
    assert made.scan is not None
    for settings in (
        {**made.scan.settings, "python": "/tmp/theirs"},
        {**made.scan.settings, "server_command": "theirs"},
        {},
    ):
        scan = msgspec.structs.replace(made.scan, settings=settings)
        assert not seal.holds(tmp_path, msgspec.structs.replace(made, scan=scan))
    for forged in ("", "0" * 64, "é" * 64):
        assert not seal.holds(tmp_path, msgspec.structs.replace(made, seal=forged))


def test_another_folder_host_or_user_is_not_that_of_the_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sealed(tmp_path)
    assert not seal.holds(tmp_path / "copy", made)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "gethostname", lambda: "node7")
        assert not seal.holds(tmp_path, made)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another users"))
    assert not seal.holds(tmp_path, made)
    assert not (tmp_path / "another users").exists(), "who looks leaves no key"
    seal.make(tmp_path, made)
    assert not seal.holds(tmp_path, made)


def test_a_key_that_others_can_read_or_lead_to_is_none(tmp_path: Path) -> None:
    made = sealed(tmp_path)
    seal.key_path().chmod(0o640)
    assert not seal.holds(tmp_path, made)
    seal.key_path().chmod(0o600)
    seal.key_path().rename(tmp_path / "elsewhere")
    seal.key_path().symlink_to(tmp_path / "elsewhere")
    assert not seal.holds(tmp_path, made)


def test_first_keys_made_at_once_are_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        seals = {pool.submit(sealed, tmp_path).result().seal for _ in range(8)}
    assert len(seals) == 1
    assert [path.name for path in seal.key_path().parent.iterdir()] == ["seal.key"]


def test_without_a_place_for_a_key_there_is_no_seal(tmp_path: Path, state: Path) -> None:
    state.touch()
    made = sealed(tmp_path)
    assert made.seal == ""
    assert not seal.holds(tmp_path, made)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_none(tmp_path: Path) -> None:
    made = sealed(tmp_path)
    os.chown(seal.key_path(), 12345, 12345)
    assert not seal.holds(tmp_path, made)
