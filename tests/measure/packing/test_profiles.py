"""Profiles of a measured run are compressed: the same figures, and each profile once whatever ends
the work half-way.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.measure.packing.profiles import pack_profiles
from profharness.measure.recorder import Recorder
from profharness.rundir import outputs
from profharness.rundir.paths import RunDir
from profharness.understand.run_files import all_artifacts
from tests.run_files import run_of

BESIDE = ".profharness.json"
TRACE = "artifacts/torch/n0/0/trace.json"
MARKER = "artifacts/torch/n0/0/marker.json"


def recorder_of(root: Path) -> Recorder:
    """A run of two ranks whose profiles are plain, as their hooks left them."""
    run = run_of(root, ranks=2, lend=False)
    for rank, pid in enumerate((100, 101)):
        plain = root / f"artifacts/torch/n0/{rank}/trace.json"
        packed = Path(f"{plain}.gz")
        plain.write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
        beside = {"v": 1, "file": plain.name, "host": "n0", "pid": pid, "rank": rank}
        Path(f"{plain}{BESIDE}").write_text(json.dumps(beside))
    text = run.manifest_path.read_text().replace("trace.json.gz", "trace.json")
    run.manifest_path.write_text(text)
    return Recorder(run, run.read_manifest())


def figures(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run_cli(["metrics", str(root), "--json"]) == 0
    return capsys.readouterr().out.replace(".json.gz", ".json")


def profiles(root: Path) -> list[str]:
    """What readers take, be it in the manifest or not."""
    run = RunDir.open(root)
    return sorted(one.path for one in all_artifacts(run, run.read_manifest()) if not one.aside)


def test_the_run_says_the_same_of_smaller_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = recorder_of(tmp_path)
    plain = {path: (tmp_path / path).read_bytes() for path in (TRACE, MARKER)}
    before = figures(tmp_path, capsys)
    assert '"kernels": 80' in before
    pack_profiles(recorder)
    assert figures(tmp_path, capsys) == before
    for path, content in plain.items():
        packed = tmp_path / f"{path}.gz"
        assert gzip.decompress(packed.read_bytes()) == content
        assert json.loads(Path(f"{packed}{BESIDE}").read_text())["file"] == packed.name
    left = sorted(path.name for path in (tmp_path / TRACE).parent.iterdir())
    names = ("marker.json.gz", "trace.json.gz")
    assert left == sorted([*names, *(name + BESIDE for name in names)])
    sizes = {
        one.path: one.size_bytes
        for one in RunDir.open(tmp_path).read_manifest().artifacts
        if one.layer == "torch"
    }
    assert sizes == {path: (tmp_path / path).stat().st_size for path in sizes}
    assert len(sizes) == 4


def test_a_file_keeps_its_time_and_mode_and_packing_again_changes_nothing(tmp_path: Path) -> None:
    recorder = recorder_of(tmp_path)
    (tmp_path / TRACE).chmod(0o640)
    before = (tmp_path / TRACE).stat()
    pack_profiles(recorder)
    packed = tmp_path / f"{TRACE}.gz"
    after = packed.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    content = packed.read_bytes()
    pack_profiles(recorder)
    assert packed.read_bytes() == content
    assert packed.stat().st_ino == after.st_ino


def test_a_profile_without_its_sidecar_stays(tmp_path: Path) -> None:
    """Whoever wrote it may be at it still."""
    recorder = recorder_of(tmp_path)
    (tmp_path / f"{TRACE}{BESIDE}").unlink()
    (tmp_path / f"artifacts/torch/n0/1/trace.json{BESIDE}").write_text('{"v": 1, "fi')
    pack_profiles(recorder)
    assert [path for path in profiles(tmp_path) if path.endswith(".json")] == [
        TRACE,
        "artifacts/torch/n0/1/trace.json",
    ]
    assert not list(tmp_path.rglob("trace.json.gz*"))


def test_on_a_full_disk_everything_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = recorder_of(tmp_path)
    before, listed = figures(tmp_path, capsys), sorted(tmp_path.rglob("*"))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    pack_profiles(recorder)
    monkeypatch.undo()
    assert sorted(tmp_path.rglob("*")) == listed
    assert figures(tmp_path, capsys) == before


@pytest.mark.parametrize("stage", ["first file", "manifest", "unlink"])
def test_a_kill_leaves_each_profile_once(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C stands for the kill: what follows is not done."""
    recorder = recorder_of(tmp_path)
    before, names = figures(tmp_path, capsys), profiles(tmp_path)
    made: list[Path] = []

    def killed(*_args: object, **_keys: object) -> None:
        raise KeyboardInterrupt

    def second(path: Path, mode: int = 0o666) -> tuple[int, Path]:
        made.append(path)
        if len(made) > 1:
            raise KeyboardInterrupt
        return outputs.temporary_beside(path, mode)

    with monkeypatch.context() as patch:
        if stage == "first file":
            patch.setattr("profharness.measure.packing.profiles._THREADS", 1)
            patch.setattr("profharness.measure.packing.profiles.temporary_beside", second)
        elif stage == "manifest":
            patch.setattr(recorder, "update", killed)
        else:
            patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            pack_profiles(recorder)
    assert list(tmp_path.rglob("*.json.gz"))
    assert list(tmp_path.rglob("trace.json"))
    assert [name.removesuffix(".gz") for name in profiles(tmp_path)] == names
    assert figures(tmp_path, capsys) == before
    again = RunDir.open(tmp_path)
    pack_profiles(Recorder(again, again.read_manifest()))
    assert [name.removesuffix(".gz") for name in profiles(tmp_path)] == names


def test_a_manifest_that_cannot_be_written_still_names_files_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = recorder_of(tmp_path)
    before = figures(tmp_path, capsys)

    def refused(*_args: object, **_keys: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RunDir, "write_manifest", refused)
        pack_profiles(recorder)
    assert (tmp_path / TRACE).is_file()
    assert figures(tmp_path, capsys) == before
