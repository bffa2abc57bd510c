"""With how many CPU threads the operators of a trace were recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from profharness.trace.model import INTRA_OP_THREADS, THREAD_VARIABLE, Source
from profharness.units import format_number

if TYPE_CHECKING:
    from profharness.rundir.manifest import Manifest

MOST_PER_CORE = 4
"""A file may name any number of threads: beyond so many for each core of this machine it is not
followed."""


@dataclass(frozen=True)
class RecordedThreads:
    """The number of threads of torch, None where it is not known; whether the `trace` says it (the
    hook of the torch layer writes it beside the trace) or what the `run` set; and what there is to
    say of it.
    """

    count: int | None = None
    told_by: Literal["", "trace", "run"] = ""
    notes: tuple[str, ...] = ()


def recorded_threads(
    sources: Iterable[Source], manifest: Manifest | None, environ: Mapping[str, str], cores: int
) -> RecordedThreads:
    """The threads of these sources, as all of them have them that tell it; else those that the run
    set. `environ` and `cores` are of this machine: variables that it lacks are named, and a number
    far beyond its cores is not taken.
    """
    told = [dict(source.details) for source in sources]
    counts = sorted({int(one[INTRA_OP_THREADS]) for one in told if INTRA_OP_THREADS in one})
    if not counts:
        count = _of_run(manifest)
        return RecordedThreads(count, "run" if count else "")
    if len(counts) > 1:
        least, most = format_number(counts[0]), format_number(counts[-1])
        text = f"the processes of the trace had {least} to {most} threads: choose with --threads"
        return RecordedThreads(notes=(text,))
    if counts[0] > MOST_PER_CORE * cores:
        there, here = format_number(counts[0]), format_number(cores)
        text = f"recorded with {there} threads, and here are {here} cores: torch chooses its own"
        return RecordedThreads(notes=(text,))
    return RecordedThreads(counts[0], "trace", tuple(_unset(told, environ)))


def cores_here() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _of_run(manifest: Manifest | None) -> int | None:
    if manifest is None or manifest.scan is None:
        return None
    found = manifest.scan.settings.get("threads")
    return found if isinstance(found, int) and found > 0 else None


def _unset(told: list[dict[str, str]], environ: Mapping[str, str]) -> Iterable[str]:
    """Variables that bind threads or let them wait otherwise here. Those that say how many there
    are matter no more.
    """
    set_there = sorted(
        {
            (name.removeprefix(THREAD_VARIABLE), text)
            for one in told
            for name, text in one.items()
            if name.startswith(THREAD_VARIABLE) and not name.endswith("_NUM_THREADS")
        }
    )
    unlike = [f"{name}={text}" for name, text in set_there if environ.get(name) != text]
    if unlike:
        yield f"recorded with {' '.join(unlike)}: set it here too for threads that behave alike"
