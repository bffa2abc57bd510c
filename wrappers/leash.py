"""Run a command that is to end with the process that started this one: `python leash.py -- COMMAND
...`.

profharness puts it around a server that the user named, which would otherwise outlive a killed
harness and keep its ports. The kernel sends its death signal when the thread that started us ends,
so the signal only makes us look whether that process is still there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under python -I
import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import List, NoReturn


PR_SET_PDEATHSIG = 1
LOOK = signal.SIGURG  # nobody sends it to a command, and it is ignored by default
GRACE_S = 4.0  # nothing of a run outlives its harness by five seconds


class StarterGoneError(Exception):
    """The process that started us has ended."""


def main(arguments: List[str]) -> NoReturn:
    """Run the command after `--` and end as it did, or with it once the starter has ended."""
    if len(arguments) < 2 or arguments[0] != "--":
        sys.exit("usage: leash.py -- COMMAND [ARGUMENTS ...]")
    starter = os.getppid()

    def look(*_: object) -> None:
        if os.getppid() != starter:
            raise StarterGoneError

    # the background job of a script (`profharness run ... &`) ignores SIGINT, and so would the
    # command, which profharness asks to end by SIGINT so that it still writes what it recorded
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = child.start(arguments[1:])
    try:
        signal.signal(LOOK, look)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(LOOK), 0, 0, 0)
        look()  # it may have gone before the kernel knew that we care
        returncode = process.wait()
    except StarterGoneError:
        signal.signal(LOOK, signal.SIG_IGN)
        returncode = _end(process)
    child.end_as(returncode)


def _end(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM, then SIGKILL, to the whole group where this process leads it; returns the
    child's return code.
    """
    _tell(process, signal.SIGTERM)  # this process outlives it, see child.py
    try:
        return process.wait(GRACE_S)
    except Exception:  # subprocess.TimeoutExpired, or a last signal: it is over either way
        _tell(process, signal.SIGKILL)
        return process.wait()


def _tell(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        if os.getpgrp() == os.getpid():
            os.killpg(0, number)
        else:
            process.send_signal(number)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile


if __name__ == "__main__":
    main(sys.argv[1:])
