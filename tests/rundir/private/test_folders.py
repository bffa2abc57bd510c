"""Private folders go with the process that made them, and what a killed one left with the next."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.rundir.private import folders
from profharness.rundir.private.folders import private_folder

# merges two files, and says so in the middle of it
MERGING = """
import pathlib, sys, time
from profharness.understand.merge import command, merger
def hang(*_):
    print("in the middle", flush=True)
    time.sleep(600)
merger.Merger.write = hang
paths = [pathlib.Path(word) for word in sys.argv[1:]]
command.merge_to_file(paths, pathlib.Path("out.pftrace"), command.MergeOptions(allow_unaligned=True))
"""
TRACE = (
    '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 2.0, '
    '"pid": %d, "tid": 1}], "schemaVersion": 1}'
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_merge_that_is_ended_leaves_nothing_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for pid in (1, 2):
        (tmp_path / f"{pid}.json").write_text(TRACE % pid)
    before = set(tmp_path.iterdir())
    with subprocess.Popen(
        [sys.executable, "-c", MERGING, "1.json", "2.json"], cwd=tmp_path, stdout=subprocess.PIPE
    ) as merging:
        assert merging.stdout is not None
        assert merging.stdout.readline()
        assert len(set(tmp_path.iterdir()) - before) == 1
        merging.send_signal(number)
        assert merging.wait(60) == -number
    if number == signal.SIGKILL:
        monkeypatch.setattr(folders, "_swept", set())
        with private_folder(tmp_path) as folder:
            assert set(tmp_path.iterdir()) - before == {folder}
    assert set(tmp_path.iterdir()) == before


def test_folders_of_the_living_and_of_elsewhere_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_folder(tmp_path) as living:
        pid, start, host = living.name.split("-")[2:5]
        dead, elsewhere = (
            tmp_path / f".profharness-private-{pid}-{int(start) + 1}-{where}-x"
            for where in (host, f"{host}0")
        )
        for folder in (dead, elsewhere):
            folder.mkdir()
        monkeypatch.setattr(folders, "_swept", set())
        with private_folder(tmp_path) as another:
            assert set(tmp_path.iterdir()) == {living, elsewhere, another}
