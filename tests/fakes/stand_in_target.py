"""A program that runs on and launches a kernel every few milliseconds: something to attach to.

Its log (STAND_IN_TARGET_LOG) has a line per launch, CLOCK_BOOTTIME ns, and one with the word
`signal` for each signal that reaches it. It ends when the file beside its log, `LOG.stop`, appears,
and after two minutes. Anybody may trace it, as far as Yama goes; with ROCP_TOOL_ATTACH=1 it has the
thread that waits for AMD's tools.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from pathlib import Path

_PR_SET_PTRACER = 0x59616D61
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

log = Path(os.environ["STAND_IN_TARGET_LOG"])
stop = log.with_name(log.name + ".stop")


def _note(number: int, _frame: object) -> None:
    with log.open("a") as file:
        file.write(f"signal {number}\n")


def _wait_for_tools() -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("rocp-bg-attach")
    time.sleep(600)


for one in _SIGNALS:
    signal.signal(one, _note)
ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
if os.environ.get("ROCP_TOOL_ATTACH") == "1":
    threading.Thread(target=_wait_for_tools, daemon=True).start()
until = time.monotonic() + 120
while time.monotonic() < until and not stop.exists():
    with log.open("a") as writing:
        writing.write(f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\n")
    time.sleep(0.005)
