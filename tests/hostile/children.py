"""One command line in a forked child of this process, with bounds on its time and memory; what it
said, how it ended, and what it took.

A fork costs a few milliseconds where a new program costs half a second, and every child begins as
the same process, which has imported everything and has read nothing.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_SECONDS = 5.0
MOST_MEMORY = 500 << 20
_WAITED = 20.0
"""Seconds after which a child that waits for something is ended. Its processor time alone counts up
to there, since a busy machine makes everybody wait.
"""
_PATIENCE = 100.0
_ADDRESSES = 2 << 30
_WRITTEN = 300 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Ended:
    """How a child ended: its status (minus the signal, as `subprocess` has it), what it wrote, its
    seconds of processor, whether it was ended because it waited too long, and how much more memory
    than its parent it held at most.
    """

    status: int
    out: bytes
    err: bytes
    seconds: float
    waited: bool
    memory: int


def import_all(lines: Sequence[Sequence[str]], folder: Path) -> None:
    """Import what these command lines import, which a child finds out."""
    listed = folder / "modules"
    pid = os.fork()
    if pid == 0:
        _quiet(folder / "out", folder / "err")
        os.chdir(folder)  # what `merge` writes belongs to no checkout
        for line in lines:
            _entry(line)
        listed.write_text("\n".join(sorted(sys.modules)))
        os._exit(0)
    os.waitpid(pid, 0)
    for name in listed.read_text().splitlines():
        if name not in sys.modules and not name.startswith(("__main__", "tests.")):
            try:
                importlib.import_module(name)
            except ImportError:
                continue  # a part of a module that is made at run time
    _load_tables()
    gc.collect()
    gc.freeze()  # else every child would copy the pages of all objects at its first collection


def _load_tables() -> None:
    """Our own tables of devices and formulas, which say nothing of any input."""
    from profharness.analysis.operators import table
    from profharness.node import devices

    table.own()
    devices.identify(name="no known device")


def run(line: Sequence[str], folder: Path, *, traceback: bool = False) -> Ended:
    """One command line, in `folder`. `traceback`: a fault of ours is raised instead of told."""
    out, err = folder / ".out", folder / ".err"
    before = _resident()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(line, folder, (out, err), traceback=traceback)
    descriptor = os.pidfd_open(pid)
    try:
        waited = _waits(pid, descriptor, began)
        if waited:
            os.killpg(pid, signal.SIGKILL) if _leads(pid) else os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
    finally:
        os.close(descriptor)
    seconds = used.ru_utime + used.ru_stime
    return Ended(
        os.waitstatus_to_exitcode(status),
        out.read_bytes() if out.exists() else b"",
        err.read_bytes() if err.exists() else b"",
        max(seconds, 0.0) if not waited else max(seconds, time.monotonic() - began),
        waited,
        max(0, used.ru_maxrss * 1024 - before),
    )


def _waits(pid: int, descriptor: int, began: float) -> bool:
    """Whether the child was still there after `_WAITED` seconds in which it could have run: the time
    in which others had the processor does not count, up to `_PATIENCE`.
    """
    while True:
        past = time.monotonic() - began
        left = _WAITED + min(_starved(pid), _PATIENCE) - past
        if left <= 0:
            return True
        if select.select([descriptor], [], [], max(left, 0.1))[0]:
            return False


def _starved(pid: int) -> float:
    """Seconds in which a process was ready and did not run; 0 where the system does not say it."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _leads(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _quiet(out: Path, err: Path) -> None:
    """Everything that is written goes to files, also what libraries write."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.close(nothing)


def _child(line: Sequence[str], folder: Path, files: tuple[Path, Path], *, traceback: bool) -> None:
    status = 70
    try:
        os.setpgid(0, 0)
        _quiet(*files)
        os.chdir(folder)
        _bound()
        if traceback:
            os.environ["PROFHARNESS_TRACEBACK"] = "1"
        status = _entry(line)
    except BaseException:  # noqa: BLE001  what escapes from the entry is what a user would see
        import traceback as tracebacks

        tracebacks.print_exc()
        status = 1
    finally:
        os._exit(status)


def _bound() -> None:
    """No core files, no endless loops, no file or memory that harms the machine."""
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE + _ADDRESSES
    seconds = int(MOST_SECONDS) + 2
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _WRITTEN),
        (resource.RLIMIT_AS, addresses),
    ):
        resource.setrlimit(what, (most, most if what == resource.RLIMIT_CORE else most + 5))


def _entry(line: Sequence[str]) -> int:
    """The program's own entry, with its arguments; what is left over is collected, so that what goes
    wrong then is said, too.
    """
    from profharness.__main__ import main

    sys.argv = ["profharness", *line]
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    return status
