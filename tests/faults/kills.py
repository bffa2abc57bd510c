"""SIGKILL for one process of a scan at a random moment: the harness, the worker, the sampler, the
server, or the tool around a worker.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.faults.outcome import Outcome
from tests.faults.scans import Kept, Scan, Started, at_random, judged, too_late

_LONGEST_S = 3.0
_ENDS_S = 120.0
Victims = Callable[[Started], list[int]]


def of_harness(folder: Path, random: Random) -> Outcome:
    """Nothing of ours may outlive the harness by five seconds."""
    started = Scan(folder, served=random.random() < 0.3, tool=random.random() < 0.3).start()
    if not at_random(started, random, _LONGEST_S):
        return too_late(started)
    os.kill(started.process.pid, signal.SIGKILL)
    started.process.wait()
    return judged(started, Kept.of(started.scan.root))


def of_worker(folder: Path, random: Random) -> Outcome:
    """It costs the point that it was on."""
    return _killed(
        Scan(folder), lambda started: started.with_words("torch_worker.py"), random, (0, 1)
    )


def of_sampler(folder: Path, random: Random) -> Outcome:
    """It costs the telemetry from then on, and no point."""
    return _killed(Scan(folder), Started.sampler, random, (0,))


def of_server(folder: Path, random: Random) -> Outcome:
    """It costs the level that was on."""
    scan = Scan(folder, served=True)
    return _killed(scan, lambda started: started.with_words("stand_in_server.py"), random, (0, 1))


def of_tool(folder: Path, random: Random) -> Outcome:
    """It costs the point that its worker was on."""
    scan = Scan(folder, tool=True)
    return _killed(
        scan, lambda started: started.with_words("tests.fakes.stand_in_tools"), random, (0, 1)
    )


def _killed(scan: Scan, victims: Victims, random: Random, statuses: tuple[int, ...]) -> Outcome:
    """The scan must come to its own end, with one of these statuses."""
    started = scan.start()
    if not started.wait_for(lambda: victims(started)) or not at_random(
        started, random, _LONGEST_S / 2
    ):
        return too_late(started)
    live = victims(started)
    if not live:
        return too_late(started)
    before = Kept.of(scan.root)
    os.kill(random.choice(live), signal.SIGKILL)
    faults = [] if started.ended(_ENDS_S) else ["the scan did not end"]
    status = started.process.returncode
    if status not in statuses:
        faults.append(f"the scan ended with {status}, not one of {statuses}")
    return judged(started, before, *faults)
