from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from profharness.errors import UsageError
from profharness.rundir.outputs import (
    refuse_inputs,
    require_writable,
    temporary_beside,
    whole_file,
)
from tests import started


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = tmp_path / "run"
    (root / "artifacts" / "torch").mkdir(parents=True)
    for name in ("manifest.json", "merged.pftrace", "artifacts/torch/trace.json"):
        (root / name).write_text(name)
    return root


def test_an_input_is_refused_by_whatever_name(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_text("{}")
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link.pftrace").symlink_to(source)
    os.link(source, tmp_path / "hard.pftrace")
    for name in ("trace.json", "folder/trace.json", "link.pftrace", "hard.pftrace"):
        with pytest.raises(UsageError, match="is read for this, and would be destroyed"):
            refuse_inputs(tmp_path / name, [tmp_path / "other", source])
    (tmp_path / "copy.pftrace").write_text("{}")
    for name in ("copy.pftrace", "new.pftrace"):
        refuse_inputs(tmp_path / name, [source])


@pytest.mark.parametrize("name", ["manifest.json", "artifacts/torch/trace.json"])
def test_a_record_of_a_run_is_refused(tmp_path: Path, run: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(run)
    for folder in (run, tmp_path / "link"):
        with pytest.raises(UsageError, match="a record of the run would be destroyed"):
            refuse_inputs(folder / name, [run])
    (tmp_path / "out.pftrace").symlink_to(run / name)
    with pytest.raises(UsageError, match="a record of the run"):
        refuse_inputs(tmp_path / "out.pftrace", [run])


def test_what_a_run_makes_again_may_be_overwritten(run: Path) -> None:
    refuse_inputs(run / "merged.pftrace", [run])
    refuse_inputs(run / "figure.pdf", [run])
    refuse_inputs(run / "manifest.json", [run.parent / "another"])


def test_no_device_or_pipe_gives_way_to_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    (tmp_path / "null").symlink_to("/dev/null")
    places = [pipe, tmp_path / "link", tmp_path / "null"]
    for place in [*places, Path("/dev/null"), Path("/dev/stdout")]:
        with pytest.raises(UsageError, match="is no plain file"):
            require_writable(place, "name another place with -o")
    (tmp_path / "broken").symlink_to("nowhere")
    for name in ("new", "broken"):
        require_writable(tmp_path / name, "name another place with -o")


def test_files_of_a_tools_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sysinfo.csv").touch()
    (tmp_path / "merged.pftrace").touch()
    with pytest.raises(UsageError, match="a file of a tool would be destroyed"):
        refuse_inputs(tmp_path / "sysinfo.csv", [tmp_path])
    refuse_inputs(tmp_path / "merged.pftrace", [tmp_path])


def test_a_file_takes_its_place_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "figure.png"
    target.write_text("old")

    def fill_the_disk() -> None:
        with whole_file(target) as temporary:
            temporary.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fill_the_disk()
    assert target.read_text() == "old"
    with whole_file(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_a_temporary_file_has_the_mode_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for mode, made in ((0o666, 0o640), (0o600, 0o600)):
            handle, path = temporary_beside(tmp_path / "x", mode)
            os.close(handle)
            assert stat.S_IMODE(path.stat().st_mode) == made
            assert path.name.startswith(".x.")
    finally:
        os.umask(before)


def test_a_device_or_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    target = tmp_path / "pipe"
    os.mkfifo(target)  # a device, such as /dev/null, can be made by the administrator alone
    with pytest.raises(UsageError, match="is no plain file"):
        require_writable(target, "name another with -o")
    require_writable(tmp_path / "new", "name another with -o")
    done = started.run("topology", "-o", target, "--force")
    assert (done.returncode, target.is_fifo()) == (2, True), done.stderr


@pytest.mark.parametrize("linked", ["itself", "symbolic", "hard"])
def test_merge_onto_its_own_input_is_refused_though_forced(
    shared: Path, tmp_path: Path, linked: str
) -> None:
    source, target = tmp_path / "trace.json.gz", tmp_path / "merged.pftrace"
    shutil.copy(next((shared / "fixtures" / "kineto").rglob("*.json.gz")), source)
    source.chmod(0o644)
    before = source.read_bytes()
    if linked == "symbolic":
        target.symlink_to(source)
    elif linked == "hard":
        os.link(source, target)
    else:
        target = source
    done = started.run("merge", source, "-o", target, "--force", cwd=tmp_path)
    assert (done.returncode, "would be destroyed" in done.stderr) == (2, True), done.stderr
    assert source.read_bytes() == before
