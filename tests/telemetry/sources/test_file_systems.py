"""What network file systems and the processes' own calls moved."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.telemetry.sources.host.file_systems import (
    LustreSource,
    NfsSource,
    TreeFilesSource,
    nfs_mounts,
    parsed_stats,
)
from profharness.telemetry.sources.host.process_tree import ProcessTree

OLD = b"""snapshot_time             1700000000.123456 secs.usecs
read_bytes                3 samples [bytes] 4096 1048576 2101248
write_bytes               2 samples [bytes] 10 20 30
open                      7 samples [regs]
close                     7 samples [regs]
"""
NEW = b"""snapshot_time             1700000000.123456789 secs.nsecs
start_time                1690000000.000000000 secs.nsecs
elapsed_time              10000000.123456789 secs.nsecs
read_bytes                3 samples [bytes] 4096 1048576 2101248 1000000000
write_bytes               2 samples [bytes] 10 20 30 500
read                      3 samples [usecs] 1 100 150 11000
open                      7 samples [usecs] 1 2 9 10
"""
MOUNTS = b"""device proc mounted on /proc with fstype proc
device srv:/home mounted on /home with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tbytes:\t11 12 0 0 1100 1200 3 4
\tper-op statistics
\t        READ: 5 5 0 600 1200 0 3 4 0
device srv:/home mounted on /home/me with fstype nfs4 statvers=1.1
\tbytes:\t11 12 0 0 1100 1200 3 4
device srv:/data mounted on /data with fstype nfs statvers=1.1
\tbytes:\t1 2 0 0 70 80 3 4
device /dev/sda1 mounted on / with fstype ext4
\tbytes:\t1 2 3 4 5 6 7 8
"""


def values(source: LustreSource | NfsSource | TreeFilesSource) -> dict[str, int | float]:
    row: list[int | float] = [-1] * len(source.columns)
    source.read(row, 0)
    return {column.metric: raw for column, raw in zip(source.columns, row, strict=True)}


def test_stats_of_old_and_new_clients() -> None:
    assert parsed_stats(OLD) == (2101248, 30, 14)
    assert parsed_stats(NEW) == (2101248, 30, 10)
    assert parsed_stats(b"snapshot_time 1.2 secs.usecs\n") == (0, 0, 0)
    assert parsed_stats(b"read_bytes x samples [bytes] 1 2 3\nopen\n") == (0, 0, 0)


@pytest.mark.parametrize(
    "place", ["proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite", "sys/fs/lustre/llite"]
)
def test_lustre_at_each_of_its_places(tmp_path: Path, place: str) -> None:
    for name, text in (("scratch-ffff8", OLD), ("flash-ffff9", NEW)):
        folder = tmp_path / place / name
        folder.mkdir(parents=True)
        (folder / "stats").write_bytes(text)
    source = LustreSource(str(tmp_path / "sys"), str(tmp_path / "proc"))
    assert source.probe() == ()
    assert values(source) == {
        "lustre_read": 2 * 2101248,
        "lustre_written": 60,
        "lustre_calls": 24,
        "lustre_read:flash": 2101248,
        "lustre_written:flash": 30,
        "lustre_calls:flash": 10,
        "lustre_read:scratch": 2101248,
        "lustre_written:scratch": 30,
        "lustre_calls:scratch": 14,
    }
    assert {column.unit for column in source.columns} == {"B/s", "calls/s"}


def test_what_a_user_cannot_read_of_lustre_is_said(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("10.0.0.1@o2ib:/fs /scratch lustre rw 0 0\n")
    source = LustreSource(str(tmp_path / "sys"), str(tmp_path / "proc"))
    (why,) = {one.why for one in source.probe()}
    assert "root alone may read" in why
    assert "tree_read" in why
    (tmp_path / "sys/kernel/debug").mkdir(parents=True)
    assert "none of" in LustreSource(str(tmp_path / "sys"), str(tmp_path / "proc")).probe()[0].why
    (tmp_path / "proc/mounts").write_text("/dev/sda1 / ext4 rw 0 0\n")
    why = LustreSource(str(tmp_path / "sys"), str(tmp_path / "proc")).probe()[0].why
    assert why == "no Lustre file system is mounted here"


LCTL = """#!/bin/sh
[ "$*" = "get_param llite.*.stats" ] || exit 3
cat {folder}/answer
"""


def test_where_the_folder_is_closed_lctl_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for lctl, which answers as those of clients with Netlink do."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("10.0.0.1@o2ib:/fs /scratch lustre rw 0 0\n")
    program = tmp_path / "lctl"
    program.write_text(LCTL.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def answer(*texts: tuple[str, bytes]) -> None:
        parts = [f"llite.{name}.stats=\n".encode() + text for name, text in texts]
        (tmp_path / "answer").write_bytes(b"".join(parts))

    answer(("scratch-ffff8", NEW), ("flash-ffff9", OLD))
    source = LustreSource(str(tmp_path / "sys"), str(tmp_path / "proc"))
    assert source.probe() == ()
    assert values(source) == {
        "lustre_read": 2 * 2101248,
        "lustre_written": 60,
        "lustre_calls": 24,
        "lustre_read:scratch": 2101248,
        "lustre_written:scratch": 30,
        "lustre_calls:scratch": 10,
        "lustre_read:flash": 2101248,
        "lustre_written:flash": 30,
        "lustre_calls:flash": 14,
    }
    assert source.max_hz <= 0.2
    answer(("scratch-ffff8", NEW))
    with pytest.raises(OSError, match="other file systems"):
        values(source)
    answer()
    (why,) = {
        one.why for one in LustreSource(str(tmp_path / "sys"), str(tmp_path / "proc")).probe()
    }
    assert why.startswith("needs root: ")


def test_an_export_that_is_mounted_twice_counts_once(tmp_path: Path) -> None:
    assert sorted(nfs_mounts(MOUNTS).values()) == [(70, 80), (1100, 1200)]
    path = tmp_path / "mountstats"
    path.write_bytes(MOUNTS)
    source = NfsSource(str(path))
    assert source.probe() == ()
    assert values(source) == {"nfs_read": 1170, "nfs_written": 1280}
    path.write_bytes(b"device proc mounted on /proc with fstype proc\n")
    assert NfsSource(str(path)).probe()[0].why == "no NFS is mounted here"
    assert "cannot be read" in NfsSource(str(tmp_path / "none")).probe()[0].why


CHILD = "open('/dev/null', 'wb', 0).write(bytes(3_000_000))"
PARENT = f"""
import subprocess, sys, time
open('/dev/null', 'wb', 0).write(bytes(2_000_000))
subprocess.run([sys.executable, '-c', {CHILD!r}], check=True)
print('done', flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_bytes_of_the_process_tree_include_children_that_ended(tmp_path: Path) -> None:
    roots = tmp_path / "roots"
    tree = ProcessTree(str(roots))
    source = TreeFilesSource(tree)
    if source.probe():
        pytest.skip("the kernel keeps no accounts of I/O here")
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        roots.write_text(f"{process.pid}\n")
        tree.refresh(time.monotonic_ns())
        before = values(source)
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        tree.refresh(time.monotonic_ns() + 2_000_000_000)
        after = values(source)
        assert 5_000_000 <= after["tree_written"] <= 5_200_000
        assert after["tree_read"] >= before["tree_read"]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
    ended = values(source)
    assert ended["tree_written"] == after["tree_written"], "what ended does not take its bytes away"
