"""Asks the process that reads and sets caps, one act at a time. What it says against an act is an
exception.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from profharness.measure.caps.planning import Asked
from profharness.telemetry.caps import ways
from profharness.telemetry.caps.records import Cap, Restored, decode_caps, decode_restored
from profharness.telemetry.caps.starting import command

PATIENCE_S = 20.0


class CapError(Exception):
    """An act was not done; the message says why."""


def ask(*words: str) -> dict[str, Any]:
    """The answer of one act. Raises CapError, also where the process died of a library."""
    try:
        done = subprocess.run(
            command(*words),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise CapError(f"no answer within {PATIENCE_S:g} s") from error
    except (OSError, msgspec.DecodeError) as error:
        raise CapError("the process that sets caps died: the library does not fit") from error
    if why := answer.get("why"):
        raise CapError(str(why))
    return answer


def found(sysfs: str) -> Asked:
    """What each way knows; amdsmi is not asked where every cap of hwmon may be set."""
    answers: list[tuple[str, tuple[Cap, ...], str]] = []
    for name in ways.NAMES:
        if name == ways.Amdsmi.name and answers[0][1] and not any(c.why_not for c in answers[0][1]):
            continue
        try:
            answers.append((name, decode_caps(ask("list", name, sysfs)["caps"]), ""))
        except CapError as error:
            answers.append((name, (), str(error)))
    return Asked(tuple(answers))


def now(file: Path) -> dict[str, int]:
    """The caps (µW) that the packages of the file have. Raises CapError."""
    caps: dict[str, int] = ask("read", str(file))["caps"]
    return caps


def set_cap(file: Path, cap_uw: int) -> None:
    """Give the packages of the file this cap. Raises CapError."""
    ask("set", str(file), str(cap_uw))


def restore(file: Path, *, left: bool = False) -> Restored:
    """Give them their old caps; `left`: only where the process that changed them has ended. Raises
    CapError.
    """
    return decode_restored(ask("restore", str(file), *(("--left",) if left else ())))
