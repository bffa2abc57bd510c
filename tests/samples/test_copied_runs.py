"""A run that was copied to another machine and is read there by another user, who may not write."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from profharness.cli import run_cli
from tests.samples.figures import figures_of
from tests.samples.keep import unpacked

_NOBODY = 65534


def _as_nobody(run: Path, out: Path, told: multiprocessing.SimpleQueue[object]) -> None:
    """In a process of its own: give up what makes root's reading differ from anyone else's."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    told.put(
        (
            os.access(run / "manifest.json", os.W_OK),
            figures_of(run),
            run_cli(["report", str(run), "-o", str(out / "report.html")]),
            run_cli(["merge", str(run), "-o", str(out / "merged.pftrace")]),
            run_cli(["ls", str(run.parent)]),
            run_cli(["report", str(run)]),
        )
    )


def test_another_user_elsewhere_reads_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = unpacked("0.1-scan-onnxruntime", tmp_path / "first")
    here = figures_of(run)
    # what is imported on demand is imported by now, wherever the other user may look
    assert run_cli(["report", str(run), "-o", str(tmp_path / "here.html")]) == 0
    assert run_cli(["merge", str(run), "-o", str(tmp_path / "here.pftrace")]) == 0
    moved, out = tmp_path / "elsewhere" / run.name, tmp_path / "out"
    moved.parent.mkdir()
    run.rename(moved)
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    for path in (moved, *moved.rglob("*")):
        path.chmod(0o555 if stat.S_ISDIR(path.stat().st_mode) else 0o444)
    for path in (*out.parents, moved.parent):
        if (
            path.stat().st_uid == os.getuid()
            and path.is_relative_to("/tmp")
            and path != Path("/tmp")
        ):
            path.chmod(path.stat().st_mode | 0o011)
    fork = multiprocessing.get_context("fork")
    told = fork.SimpleQueue()
    capfd.readouterr()
    reader = fork.Process(target=_as_nobody, args=(moved, out, told))
    reader.start()
    reader.join(60)
    said = capfd.readouterr()
    assert reader.exitcode == 0, said.err
    may_write, there, *statuses, into_the_run = told.get()
    assert not may_write
    assert there == here
    assert statuses == [0, 0, 0]
    # identifiers in it come from the folder's name; all else has the same length
    merged = [path.read_bytes() for path in (out / "merged.pftrace", tmp_path / "here.pftrace")]
    assert abs(len(merged[0]) - len(merged[1])) < 8
    assert into_the_run == 2, said.err
    assert "Traceback" not in said.err
    assert "copy it to a place that can be written" in said.err
    for path in (moved, *moved.rglob("*")):
        path.chmod(0o755)
