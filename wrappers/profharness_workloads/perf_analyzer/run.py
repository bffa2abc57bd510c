"""One run of perf_analyzer: starts and watches it, reads its export while it writes, takes its CPU
time, and never leaves it running.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from typing import Callable, Iterator, List, Mapping, NamedTuple, Sequence

from profharness_workloads.loadgen.crew import LevelFailed
from profharness_workloads.perf_analyzer import files

LOOK_S = 0.05
END_S = 5.0
_CHUNK = 1 << 20


class Ran(NamedTuple):
    """How it ended, what it printed, the times of its requests (wall clock) and how far that clock
    is ahead of CLOCK_MONOTONIC.
    """

    status: int
    text: str
    times: files.Times
    cpu_ns: int
    wall_minus_monotonic_ns: int


def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    export: str,
    limit_s: float,
    still_wanted: Callable[[], None],
) -> Ran:
    """Run the command, whose export goes to the pipe `export`. Raises LevelFailed after
    `limit_s`.
    """
    deadline = time.monotonic() + limit_s
    before = _clock_difference_ns()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            list(argv),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        pipe = os.open(export, os.O_RDONLY | os.O_NONBLOCK)  # its writer opens it only at its end
        ended: List[int] = []
        try:
            times = files.times(_written(pipe, process.pid, ended, deadline, still_wanted))
        finally:
            os.close(pipe)
            if not ended:
                _end(process.pid)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    status, cpu_ns = ended
    process.returncode = status
    return Ran(status, text, times, cpu_ns, (before + _clock_difference_ns()) // 2)


def _written(
    pipe: int, pid: int, ended: List[int], deadline: float, still_wanted: Callable[[], None]
) -> Iterator[bytes]:
    """What comes through the pipe until the process has ended; `ended` then holds its status and
    CPU time.
    """
    while True:
        data = _read(pipe)
        if data:
            yield data
            continue
        if ended:
            return
        waited_pid, status, usage = os.wait4(pid, os.WNOHANG)
        if waited_pid:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            ended += [code, int((usage.ru_utime + usage.ru_stime) * 1e9)]
            continue  # what it wrote last may still be in the pipe
        still_wanted()
        if time.monotonic() > deadline:
            raise LevelFailed("perf_analyzer did not end in time")
        select.select([], [], [], LOOK_S)


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, _CHUNK)
    except BlockingIOError:
        return b""


def _end(pid: int) -> None:
    """Stop the process and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except OSError:
            return
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(LOOK_S)


def _clock_difference_ns() -> int:
    """Wall clock minus CLOCK_MONOTONIC, from the closest of a few pairs of readings."""
    best, difference = None, 0
    for _ in range(5):
        first = time.perf_counter_ns()
        wall = time.time_ns()
        second = time.perf_counter_ns()
        if best is None or second - first < best:
            best, difference = second - first, wall - (first + second) // 2
    return difference
