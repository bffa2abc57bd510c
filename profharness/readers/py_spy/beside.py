"""What wrappers/py_spy.py wrote beside py-spy's trace: where its time zero lies on
CLOCK_MONOTONIC, its rate, and when threads ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.limits import Nanoseconds, Whole
from profharness.readers.own.sidecar import SUFFIX
from profharness.rundir.foreign.limits import SIDECAR_BYTES
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import read_file
from profharness.trace.model import Problem

VERSION = 1
_MOST_HZ = 1_000_000


class Beside(msgspec.Struct, frozen=True):
    """Version 1. Times are CLOCK_MONOTONIC (ns): just before py-spy was started, when it was seen
    to have begun (by its threads, or by its word that it samples), and when its word that the file
    is written arrived; 0 where nobody saw it.
    `ended` has of each thread that ended when it was last there, and when it first was not.
    """

    v: int
    pid: Whole | None = None
    before_ns: Nanoseconds = 0
    after_ns: Nanoseconds = 0
    wrote_ns: Nanoseconds = 0
    rate: Whole | None = None
    samples: Whole | None = None
    errors: Whole | None = None
    ended: tuple[tuple[Whole, Nanoseconds, Nanoseconds], ...] = ()

    @property
    def rate_hz(self) -> int | None:
        """Samples a second of each thread; None where nobody said."""
        return self.rate if self.rate and self.rate <= _MOST_HZ else None


@dataclass(frozen=True)
class Zero:
    """py-spy's time zero on CLOCK_MONOTONIC, within `bound_ns` to both sides."""

    at_ns: int
    bound_ns: int


def load(path: Path) -> tuple[Beside, list[Problem]]:
    """The record beside a trace, and what is wrong with it; an empty one where there is none."""
    beside = path.with_name(path.name + SUFFIX)
    try:
        found = msgspec.json.decode(read_file(beside, SIDECAR_BYTES), type=Beside)
        check_numbers(found, str(beside))
    except FileNotFoundError:
        return Beside(VERSION), []
    except (OSError, InputError, *NOT_JSON) as error:
        return Beside(VERSION), [
            Problem("warning", str(path), 1, f"{beside.name} cannot be read: {error}")
        ]
    if found.v > VERSION:
        newer = f"{beside.name} is of version {found.v}, newer than {VERSION}: update profharness"
        return Beside(VERSION), [Problem("warning", str(path), 1, newer)]
    return found, []


def zero_of(beside: Beside, last_ns: int) -> Zero | None:
    """Where time zero lies. py-spy takes it when it has been started, and before it has threads;
    its last time (`last_ns` after zero) is before it says that the file is written. None where
    nothing was noted, or the notes contradict each other.
    """
    latest = [at for at in (beside.after_ns, beside.wrote_ns - last_ns) if at > 0]
    if not beside.before_ns or not latest:
        return None
    width = min(latest) - beside.before_ns
    return None if width < 0 else Zero(beside.before_ns + width // 2, width - width // 2)
