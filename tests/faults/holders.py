"""`kill -9` of processes that hold a run directory, or are about to: what they held is taken over
by one other process, and never by two.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

from profharness.rundir.claims import holder
from profharness.rundir.claims.holder import Claimant
from tests import started
from tests.faults import claimant
from tests.faults.outcome import Outcome

CLAIMANTS = 5
VICTIMS = 2
_WITHIN_S = 60.0


def attempt(folder: Path, random: Random) -> Outcome:
    """Five processes hold one directory in turn, and two of them are killed."""
    root, log = folder / "run", folder / "log"
    root.mkdir()
    log.touch()
    program = str(Path(claimant.__file__))
    processes = [
        started.python(
            [sys.executable, program, str(root), str(log), str(random.getrandbits(30))],
            ("profharness.rundir.claims.holder",),
            cwd=folder,
        )
        for _ in range(CLAIMANTS)
    ]
    killed = _kill_some(processes, log, random)
    faults = [*_endings(processes, killed), *_overlaps(log, killed)]
    holder.claim(root, Claimant(holder.identify(), lambda _: None)).release()
    # a victim that had not written a word leaves an empty file, which goes after ten minutes
    left = [path.name for path in root.iterdir() if path.stat().st_size]
    faults += [f"{name} is left in the directory" for name in left]
    return Outcome(hit=len(killed) == VICTIMS, faults=tuple(faults))


def _kill_some(processes: list[subprocess.Popen[str]], log: Path, random: Random) -> set[int]:
    """Kill the first ones at random moments after the first directory was held; those that lived
    until then.
    """
    deadline = time.monotonic() + _WITHIN_S
    while not log.stat().st_size and time.monotonic() < deadline:
        time.sleep(0.001)
    killed = set[int]()
    for victim in processes[:VICTIMS]:
        time.sleep(random.uniform(0, 0.02))
        if victim.poll() is None:
            victim.kill()
            killed.add(victim.pid)
    return killed


def _endings(processes: list[subprocess.Popen[str]], killed: set[int]) -> list[str]:
    faults = []
    for process in processes:
        try:
            _, said = process.communicate(timeout=_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            faults.append("a process waited for a directory that nobody held")
            continue
        if process.pid not in killed and process.returncode:
            faults.append(f"a process ended with {process.returncode}: {said.strip()[-300:]}")
    return faults


def _overlaps(log: Path, killed: set[int]) -> list[str]:
    """Who held the directory while another one did, and who was named as its holder and never was
    (a killed one may not have come to say that it was).
    """
    faults, inside = [], 0
    events = [(word, int(pid)) for word, pid in map(str.split, log.read_text().splitlines())]
    held = {pid for word, pid in events if word == "in"}
    for word, pid in events:
        if word == "in":
            if inside and inside not in killed:
                faults.append(f"{pid} held the directory while {inside} did")
            inside = pid
        elif word == "out":
            inside = 0 if inside == pid else inside
        elif pid not in held | killed:
            faults.append(f"{pid} was named as the holder and never was")
    return faults
