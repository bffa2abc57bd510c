"""The samplers' files of a run, one for each host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profharness.rundir.foreign.inside import Found, Inside
from profharness.rundir.foreign.limits import HOST_BYTES, HOSTS

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = ".samples.bin"


def found_in(inside: Inside) -> Found:
    """The files that may be read, in order, and what is not read, with the reason.

    Each file is read and brought to the run's clock by itself. A run has one for each host, so that
    files beyond a number that grows with their size are left out (`HOSTS`, `HOST_BYTES`). Raises
    InputError where the run's folders cannot be looked through.
    """
    found = inside.found(f"telemetry/*{SAMPLES}")
    if len(found.paths) <= HOSTS:
        return found
    most = HOSTS + sum(map(_size, found.paths)) // HOST_BYTES
    more = len(found.paths) - most
    if more <= 0:
        return found
    from profharness.trace.model import Problem

    problem = Problem(
        "error",
        "telemetry",
        more,
        f"files of samplers are left out: a run whose telemetry is of this size has no more than "
        f"{most}",
    )
    return Found(found.paths[:most], (*found.refused, problem))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # whoever opens it says why
        return 0
