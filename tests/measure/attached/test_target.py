"""What speaks against attaching to a process, from a made-up /proc and from values."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from profharness.errors import Unavailable, UsageError
from profharness.measure.attached.target import (
    Ourselves,
    Target,
    goes_on,
    look,
    ourselves,
    require_attachable,
    require_reachable,
)

US = Ourselves(user=1000, may_trace=False, scope=1)
TARGET = Target(pid=42, argv=("/usr/bin/python3", "train.py"), owner=1000)


def proc(
    folder: Path,
    *,
    status: str = "",
    environ: bytes = b"HOME=/root\0",
    threads: tuple[str, ...] = ("python3",),
    caps: int = 0,
    scope: str | None = "1",
    mounts: tuple[str, str] = ("mnt:[1]", "mnt:[1]"),
) -> Path:
    """A /proc with process 42, ourselves and Yama."""
    own, other = folder / "self", folder / "42"
    for one in (own / "ns", other / "ns"):
        one.mkdir(parents=True)
    (own / "ns" / "mnt").symlink_to(mounts[0])
    (other / "ns" / "mnt").symlink_to(mounts[1])
    (own / "status").write_text(f"Name:\tme\nCapEff:\t{caps:016x}\n")
    (other / "status").write_text(
        "Name:\tpython3\nState:\tS (sleeping)\nTgid:\t42\nTracerPid:\t0\n"
        f"Uid:\t7\t1000\t7\t7\nGid:\t7\t100\t7\t7\n{status}"
    )
    (other / "cmdline").write_bytes(b"/usr/bin/python3\0train.py\0")
    (other / "environ").write_bytes(environ)
    (other / "mem").write_bytes(b"")
    (other / "maps").write_text(
        "7f00-7f01 r-xp 0 08:01 1   /opt/x/libtorch_cpu.so\n7f02-7f03 rw-p 0 00:00 0 [heap]\n"
    )
    fields = " ".join(["S", *(str(number) for number in range(4, 22)), "5000", "9"])
    (other / "stat").write_text(f"42 (py) (thon3) {fields}\n")
    for number, name in enumerate(threads):
        task = other / "task" / str(42 + number)
        task.mkdir(parents=True)
        (task / "comm").write_text(f"{name}\n")
    if scope is not None:
        yama = folder / "sys" / "kernel" / "yama"
        yama.mkdir(parents=True)
        (yama / "ptrace_scope").write_text(f"{scope}\n")
    return folder


def test_the_facts_of_a_process(tmp_path: Path) -> None:
    found = look(42, proc(tmp_path, environ=b"A=1\0ROCP_TOOL_ATTACH=1\0"))
    assert found == Target(
        pid=42,
        argv=("/usr/bin/python3", "train.py"),
        owner=1000,
        group=100,
        variable=True,
        began_boot_ns=5000 * 10**9 // os.sysconf("SC_CLK_TCK"),
        libraries=frozenset({"libtorch_cpu.so"}),
    )
    assert found.name == "python3 (42)"
    assert (found.maps("libtorch"), found.maps("librocprof-sys")) == (True, False)
    assert goes_on(found, tmp_path)
    assert not goes_on(dataclasses.replace(found, began_boot_ns=7), tmp_path)


@pytest.mark.parametrize(
    ("environ", "threads", "waits"),
    [
        (b"HOME=/\0", ("python3",), False),
        (b"ROCP_TOOL_ATTACH=0\0", ("python3",), False),
        (b"XROCP_TOOL_ATTACH=1\0", ("python3",), False),
        (b"ROCP_TOOL_ATTACH=1\0", ("python3",), True),
        (b"ROCP_TOOL_ATTACH=ON\0", ("python3",), True),
        (b"HOME=/\0", ("python3", "rocp-bg-attach"), True),  # a runtime that always waits
    ],
)
def test_whether_a_process_waits_for_tools(
    tmp_path: Path, environ: bytes, threads: tuple[str, ...], waits: bool
) -> None:
    found = look(42, proc(tmp_path, environ=environ, threads=threads))
    if waits:
        require_attachable(found)
        return
    with pytest.raises(Unavailable, match="without ROCP_TOOL_ATTACH=1") as refused:
        require_attachable(found)
    assert "profharness run --attachable" in refused.value.hint


@pytest.mark.parametrize(
    ("target", "us", "message", "way_out"),
    [
        (
            dataclasses.replace(TARGET, tracer=9),
            US,
            "is traced by process 9 already",
            "end that one first",
        ),
        (
            dataclasses.replace(TARGET, owner=0),
            US,
            "belongs to user 0, and you are user 1000",
            "as root",
        ),
        (TARGET, US, "(ptrace_scope is 1)", "kernel.yama.ptrace_scope=0"),
        (TARGET, dataclasses.replace(US, scope=2), "(ptrace_scope is 2)", "--cap-add SYS_PTRACE"),
        (TARGET, dataclasses.replace(US, scope=3), "(ptrace_scope is 3)", "until the next boot"),
        (
            TARGET,
            dataclasses.replace(US, scope=0),
            "does not let you trace python3 (42)",
            "as root",
        ),
        (TARGET, dataclasses.replace(US, scope=None), "does not let you trace", "as root"),
        (
            dataclasses.replace(TARGET, owner=0),
            dataclasses.replace(US, may_trace=True),
            "does not let you",
            "as root",
        ),
    ],
)
def test_each_refusal_of_the_kernel_says_why_and_the_way_out(
    target: Target, us: Ourselves, message: str, way_out: str
) -> None:
    with pytest.raises(Unavailable) as refused:
        require_reachable(dataclasses.replace(target, reachable=False), us)
    assert message in refused.value.message
    assert way_out in refused.value.hint
    assert refused.value.exit_code == 3


def test_what_the_kernel_allows_is_not_refused_by_us() -> None:
    """A process may let others trace it, whatever Yama says of the rest."""
    require_reachable(TARGET, US)
    with pytest.raises(Unavailable, match="runs in a container"):
        require_reachable(dataclasses.replace(TARGET, other_files=True), US)


def test_a_container_is_seen_by_its_files(tmp_path: Path) -> None:
    found = look(42, proc(tmp_path, mounts=("mnt:[1]", "mnt:[2]")))
    assert found.other_files


@pytest.mark.parametrize(
    ("caps", "scope", "expected"),
    [
        (0, "1", (False, 1)),
        (1 << 19, "2", (True, 2)),
        (1 << 18, None, (False, None)),
        ((1 << 41) - 1, "0", (True, 0)),
    ],
)
def test_our_own_rights(
    tmp_path: Path, caps: int, scope: str | None, expected: tuple[bool, int | None]
) -> None:
    found = ourselves(proc(tmp_path, caps=caps, scope=scope))
    assert (found.may_trace, found.scope) == expected


def test_processes_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no process 77 here"):
        look(77, proc(tmp_path / "a"))
    with pytest.raises(UsageError, match="42 is a thread of process 40"):
        look(42, proc(tmp_path / "b", status="Tgid:\t40\n"))
    with pytest.raises(UsageError, match="there is no process 42"):
        look(42, proc(tmp_path / "c", status="State:\tZ (zombie)\n"))


def test_a_real_process_and_its_thread() -> None:
    found = look(os.getpid())
    assert found.owner == os.geteuid()
    assert found.reachable  # its own memory
    assert not found.other_files
    assert goes_on(found)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with pytest.raises(UsageError, match=f"is a thread of process {os.getpid()}"):
            look(thread.native_id or 0)
    finally:
        done.set()
        thread.join()


def test_a_process_that_has_ended_does_not_go_on() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = look(process.pid)
    assert goes_on(found)
    process.communicate(b"\n")
    assert not goes_on(found)
