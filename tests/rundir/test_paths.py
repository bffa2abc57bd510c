from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from profharness.errors import InputError, OutputExists
from profharness.findings import finding
from profharness.measure.recorder import Recorder
from profharness.rundir.manifest import (
    Artifact,
    ClockSnapshot,
    Hello,
    Manifest,
    PassRecord,
    PointRecord,
    decode,
    encode,
)
from profharness.rundir.paths import RunDir, write_atomic


def a_manifest() -> Manifest:
    return Manifest(
        id="r",
        created="2026-01-01T00:00:00Z",
        profharness="0",
        kind="scan",
        argv=("profharness", "run"),
        passes=(PassRecord(name="bare", argv=(("python", "w.py"),), exit_status=0),),
        points=(
            PointRecord(
                id="torch-b4", pass_name="bare", backend="torch", batch_size=4, notes={"a": "b"}
            ),
        ),
        artifacts=(
            Artifact(path="artifacts/x.json", layer="torch", format="kineto", pass_name="torch"),
        ),
        clocks=(
            ClockSnapshot(
                host="h",
                phase="before",
                boot_ns=1,
                monotonic_ns=2,
                monotonic_raw_ns=3,
                realtime_ns=1790857026000000000,
                width_ns=70,
            ),
        ),
        processes=(Hello(pid=3),),
        findings=(finding("drift", "points differ", ratio=0.1),),
    )


def test_the_manifest_comes_back_as_it_was() -> None:
    assert decode(encode(a_manifest()), "m") == a_manifest()


def test_a_full_disk_does_not_end_the_run_and_is_made_up_for_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(RunDir.create(tmp_path / "r"), a_manifest())
    room = [False, False, True]

    def written(run: RunDir, manifest: Manifest) -> None:
        if not room.pop(0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_atomic(run.manifest_path, encode(manifest))

    monkeypatch.setattr(RunDir, "write_manifest", written)
    recorder.update(state="running")
    recorder.add_finding(finding("cpu-pressure", "other work"))
    assert recorder.unwritten == "No space left on device"
    assert recorder.run.read_manifest() == a_manifest()
    recorder.update(state="done")
    assert recorder.unwritten == ""
    found = recorder.run.read_manifest()
    assert (found.state, [one.id for one in found.findings]) == ("done", ["drift", "cpu-pressure"])


def test_a_run_folder_that_became_read_only_ends_no_workload_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(RunDir.create(tmp_path / "r"), a_manifest())

    def refused(_run: RunDir, _manifest: Manifest) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(RunDir, "write_manifest", refused)
    recorder.update(state="done")
    assert recorder.unwritten == os.strerror(errno.EROFS)
    assert recorder.manifest.state == "done"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"schema": 99}', b'{"schema": 1, "id": 3}', b"\xff\xfe"]
)
def test_a_damaged_or_newer_manifest_is_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError, match=r"run/manifest\.json"):
        decode(data, "run/manifest.json")


def test_unknown_fields_of_a_newer_writer_are_passed_over() -> None:
    data = encode(a_manifest()).replace(b'"id": "r"', b'"id": "r", "moon_phase": "full"', 1)
    assert decode(data, "m") == a_manifest()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "new")
    RunDir.create(tmp_path / "new")  # an empty folder may be used
    (tmp_path / "new" / "x").touch()
    for taken in (tmp_path / "new", tmp_path / "new" / "x"):
        with pytest.raises(OutputExists):
            RunDir.create(taken)
    with pytest.raises(InputError, match="is not a run directory"):
        RunDir.open(tmp_path)
    with pytest.raises(InputError, match="none: there is no such run directory"):
        RunDir.open(tmp_path / "none")


def test_an_atomic_write_leaves_the_old_file_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m.json"
    write_atomic(target, b"old")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_recorder_keeps_the_file_true_after_each_change(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run")
    recorder = Recorder(run, a_manifest())
    recorder.set_pass(PassRecord(name="torch", layers=("torch",)))
    recorder.set_pass(PassRecord(name="torch", layers=("torch",), state="done"))
    recorder.add_point(
        PointRecord(id="torch-b8", pass_name="torch", state="failed", error="out of memory")
    )
    recorder.add_finding(finding("point-failed", "torch-b8 failed"))
    read = run.read_manifest()
    assert read == recorder.manifest
    assert [record.state for record in read.passes] == ["planned", "done"]
    recorder.write_trials("torch", "torch-b8", [(0, "trial", 10, 5, 8)])
    assert (run.point_path("torch", "torch-b8") / "trials.csv").read_text().splitlines()[
        1
    ] == "0,trial,10,5,8"
