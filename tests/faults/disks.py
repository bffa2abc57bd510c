"""A run folder that takes no more from a random moment on: full, over its quota, limited in the size
of files (`ulimit -f`), read-only, or gone. A command of that run goes on to its own end with its own
status; a scan's finished points stay, and it is resumed once there is room.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tests.fakes.disk import Disk
from tests.faults.outcome import Outcome
from tests.faults.scans import Kept, Scan, at_random, judged, too_late

_LONGEST_S = 2.0
_ENDS_S = 120.0
_LINES = 4000
# prints for about two seconds, more than pipes hold, and ends with a status of its own
_COMMAND = f"""
import sys, time
for number in range({_LINES}):
    print("x" * 60, flush=number % 100 == 0)
    time.sleep(0.0005)
print("last", flush=True)
sys.exit(7)
"""


def of_full(folder: Path, random: Random) -> Outcome:
    """ENOSPC."""
    return _refused(folder, random, errno.ENOSPC)


def of_quota(folder: Path, random: Random) -> Outcome:
    """EDQUOT."""
    return _refused(folder, random, errno.EDQUOT)


def of_read_only(folder: Path, random: Random) -> Outcome:
    """EROFS."""
    return _refused(folder, random, errno.EROFS)


def of_limit(folder: Path, random: Random) -> Outcome:
    """`ulimit -f` for the harness of a command: EFBIG, and SIGXFSZ where nobody ignores it."""
    process = _command(folder, {})
    if not _passes_time(process, folder, random):
        return _over(process)
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (random.randrange(1, 60_000), hard))
    return _own_end(process)


def of_vanished(folder: Path, random: Random) -> Outcome:
    """Somebody removes the run folder of a command."""
    process = _command(folder, {})
    if not _passes_time(process, folder, random):
        return _over(process)
    shutil.rmtree(folder / "run", ignore_errors=True)
    return _own_end(process)


def _refused(folder: Path, random: Random, number: int) -> Outcome:
    disk = Disk(folder / "run", number, folder)
    if random.random() < 0.5:
        process = _command(folder, dict(disk.env))
        if not _passes_time(process, folder, random):
            return _over(process)
        disk.switch.touch()
        return _own_end(process)
    started = Scan(folder, env=disk.env).start()
    if not at_random(started, random, _LONGEST_S):
        return too_late(started)
    disk.switch.touch()
    before = Kept.of(started.scan.root)
    faults = [] if started.ended(_ENDS_S) else ["the scan did not end"]
    if started.process.returncode not in (0, 1):
        faults.append(f"the scan ended with {started.process.returncode}")
    disk.switch.unlink()
    return judged(started, before, *faults)


def _command(folder: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    words = ["run", "--json", "--telemetry", "cpu", "-o", str(folder / "run"), "--"]
    return subprocess.Popen(
        [sys.executable, "-m", "profharness", *words, sys.executable, "-c", _COMMAND],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _passes_time(process: subprocess.Popen[str], folder: Path, random: Random) -> bool:
    """Whether the command still runs a random time after it began to print."""
    log = folder / "run" / "points" / "bare" / "rank0" / "stdout.log"
    while process.poll() is None and not log.exists():
        time.sleep(0.01)
    time.sleep(random.uniform(0, _LONGEST_S))
    return process.poll() is None and b"last" not in (log.read_bytes() if log.exists() else b"")


def _over(process: subprocess.Popen[str]) -> Outcome:
    process.communicate(timeout=_ENDS_S)
    return Outcome(hit=False)


def _own_end(process: subprocess.Popen[str]) -> Outcome:
    """The command's status and all of its output came through."""
    _, said = process.communicate(timeout=_ENDS_S)
    faults = []
    if process.returncode != 7:
        faults.append(f"the command's status 7 became {process.returncode}: {said[-300:]}")
    if said.count("x" * 60) != _LINES or "last\n" not in said:
        faults.append("output of the command is missing")
    faults += [f"somebody said {word!r}" for word in ("Traceback", "itself failed") if word in said]
    return Outcome(hit=True, faults=tuple(faults))
