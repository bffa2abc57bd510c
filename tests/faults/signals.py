"""SIGTERM, SIGINT, or both one after the other for the harness of a scan at a random moment: all of
it ends, also where a script around the workload swallows signals.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

from tests.faults.outcome import Outcome
from tests.faults.scans import Kept, Scan, at_random, judged, too_late

_LONGEST_S = 3.0
_GRACE_S = 25.0  # the worker's, and what the server around it may take
_AT_ONCE_S = 12.0


def of_sigterm(folder: Path, random: Random) -> Outcome:
    """The grace time ends it."""
    return _ended(folder, random, signal.SIGTERM)


def of_sigint(folder: Path, random: Random) -> Outcome:
    """As Ctrl-C does."""
    return _ended(folder, random, signal.SIGINT)


def of_second(folder: Path, random: Random) -> Outcome:
    """A second signal does not wait for the grace time."""
    return _ended(folder, random, signal.SIGTERM, random.choice([signal.SIGTERM, signal.SIGINT]))


def _ended(folder: Path, random: Random, *signals: int) -> Outcome:
    scan = Scan(folder, served=random.random() < 0.3, wrapped=random.random() < 0.5)
    started = scan.start()
    if not at_random(started, random, _LONGEST_S):
        return too_late(started)
    began = time.monotonic()
    for number in signals:
        if time.monotonic() > began and number is not signals[0]:
            time.sleep(1.2)  # the same signal within a second is taken for one
        if started.process.poll() is None:
            os.kill(started.process.pid, number)
    limit = _GRACE_S if len(signals) == 1 else _AT_ONCE_S
    faults = [] if started.ended(limit) else [f"the scan did not end within {limit:g} s"]
    status = started.process.returncode
    # between two passes nobody is there to pass the signal on to: the harness ends by it itself
    ends = (0, 1, *(128 + number for number in signals), *(-number for number in signals))
    if not faults and status not in ends:
        faults.append(f"the scan ended with {status}")
    return judged(started, Kept.of(scan.root), *faults)
