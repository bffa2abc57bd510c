"""The process that reads and sets caps, one act per process; its answer is one line of JSON.

    list WAY SYSFS   the caps that one way knows
    read FILE        the caps that the packages of the file have now
    set FILE UW      give them this cap; only for the process that the file names, while it lives
    restore FILE     give them their old caps and strike the file out; `--left`: only where the
                     process that the file names has ended

`set` and `restore` hold the lock of the file, so that no cap is set after the old ones are back.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Sequence
from functools import cache
from typing import Any

from profharness.telemetry.caps import store, ways
from profharness.telemetry.caps.records import (
    Restored,
    Saved,
    encode_caps,
    encode_restored,
)
from profharness.telemetry.caps.restoring import restore

_PR_SET_PDEATHSIG = 1
_STILL_RUNS = "the run that set them is still there"


class RefusedError(Exception):
    """Nothing was changed; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Exit status 0 with an answer, also where that says `why` not."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what a library prints
    try:
        answer = _answer(arguments)
    except Exception as error:  # noqa: BLE001  what a vendor's library says is the answer
        answer = {"why": str(error) or type(error).__name__}
    os.write(answers, json.dumps(answer).encode() + b"\n")
    return 0


def _answer(arguments: Sequence[str]) -> dict[str, Any]:
    match arguments:
        case ["list", way, sysfs]:
            caps, why = ways.caps_of(way, sysfs)
            return {"caps": encode_caps(caps), "why": why}
        case ["read", file]:
            saved = _there(file)
            opened = _Opened(saved)
            return {"caps": {old.key: opened(old.way).read(old.key) for old in saved.old}}
        case ["set", file, cap_uw]:
            _set(file, int(cap_uw))
            return {}
        case ["restore", file, *rest]:
            return encode_restored(_restore(file, left="--left" in rest))
    raise RefusedError(f"no such act: {' '.join(arguments)}")


def _Opened(saved: Saved) -> Any:  # noqa: N802  makes one
    return cache(lambda name: ways.open_way(name, saved.sysfs))


def _there(file: str) -> Saved:
    saved = store.read(file)
    if saved is None:
        raise RefusedError("the old caps are set again already: nothing changes them any more")
    return saved


def _set(file: str, cap_uw: int) -> None:
    """Dies with the process that it works for, and does nothing where that is not its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    with store.locked(file):
        saved = _there(file)
        if os.getppid() != saved.pid or store.is_ended(saved):
            raise RefusedError("the caps belong to another process")
        if cap_uw not in saved.planned_uw:
            raise RefusedError(f"{cap_uw / 1e6:g} W is not what was planned")
        opened = _Opened(saved)
        for old in saved.old:
            ways.set_and_read(opened(old.way), old.key, cap_uw)


def _restore(file: str, *, left: bool) -> Restored:
    with store.locked(file):
        saved = store.read(file)
        if saved is None:
            return Restored()
        if left and not store.is_ended(saved):
            raise RefusedError(_STILL_RUNS)
        restored = restore(file, saved, _Opened(saved))
        _record(saved, restored)
        return restored


def _record(saved: Saved, restored: Restored) -> None:
    """Tell it in the run directory too, where that is still there."""
    if not saved.record:
        return
    try:
        handle = os.open(
            saved.record,
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o666,
        )
    except OSError:
        return
    os.write(handle, json.dumps(encode_restored(restored)).encode() + b"\n")
    os.close(handle)
