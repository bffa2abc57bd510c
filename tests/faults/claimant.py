"""A process that holds a run directory a few times and says when: `claimant.py ROOT LOG SEED`.

Each line of LOG is one word and a pid: `in` while the directory is held, `out` before it is given
back, `named` for the process that a refusal named as the one that measures.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from pathlib import Path

from profharness.errors import UsageError
from profharness.rundir.claims import holder
from profharness.rundir.claims.holder import Claimant

HOLDS = 3
NAMED = re.compile(r"not ended: process (\d+) on .* measures in it")
PASSING = re.compile(r"process (\d+) on .* is about to take over")


def main(root: Path, log: Path, seed: int) -> int:
    """Hold the directory three times; 1 for a refusal in words that do not belong to it."""
    moments = random.Random(seed)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    held = 0
    while held < HOLDS:
        try:
            claim = holder.claim(root, Claimant(holder.identify(), lambda _: None))
        except UsageError as error:
            if found := NAMED.search(error.message):
                os.write(handle, f"named {found[1]}\n".encode())
            elif not PASSING.search(error.message):
                print(error.message, file=sys.stderr)
                return 1
            time.sleep(moments.uniform(0, 0.004))
            continue
        os.write(handle, f"in {os.getpid()}\n".encode())
        time.sleep(moments.uniform(0, 0.006))
        held += 1
        os.write(handle, f"out {os.getpid()}\n".encode())
        claim.release()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
