"""The harness's own trials.csv: one row per trial or warm-up trial of a point, on
CLOCK_MONOTONIC.
"""

from __future__ import annotations

import re
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.foreign.border import DAMAGED
from profharness.rundir.foreign.limits import LINES_BYTES, WHOLE
from profharness.rundir.foreign.small_files import read_file
from profharness.trace.model import ClockDomain, Marks, Problem, Source, Strings, Trace

COLUMNS = ("trial", "kind", "start_monotonic_ns", "dur_ns", "items")
_ROW = re.compile(r"([0-9]{1,19}),(warmup|trial),(-?[0-9]{1,19}),([0-9]{1,19}),([0-9]{1,19})")


def read(path: Path, *, point: str) -> Trace:
    """Marks of kinds warmup and trial, named by their number, all with the point's code.

    The time from the first start to the last end is a mark of kind point. A cut last row is dropped
    and counted. Raises InputError when the file is missing or has other columns.
    """
    try:
        text = read_file(path, LINES_BYTES, text=True).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})", "the run directory may be incomplete"
        ) from error
    head, *lines = text.splitlines() or [""]
    if tuple(head.split(",")) != COLUMNS:
        raise InputError(
            f"{path}: not a trials file (its columns are {head.split(',') if head else 'missing'})",
            f"expected {', '.join(COLUMNS)}",
        )
    good = [match.groups() for match in map(_ROW.fullmatch, lines) if match and _fits(match)]
    strings = Strings()
    starts = [int(row[2]) for row in good]
    durations = [int(row[3]) for row in good]
    items = [int(row[4]) for row in good]
    if max(sum(durations), sum(items)) > WHOLE:
        raise InputError(f"{path}: its trials last longer than any run", DAMAGED)
    names = [f"{row[1]} {row[0]}" for row in good]
    kinds = [row[1] for row in good]
    kept = [at for at, kind in enumerate(kinds) if kind == "trial"]
    if kept:
        first, last = starts[kept[0]], max(starts[at] + durations[at] for at in kept)
        starts, durations = [*starts, first], [*durations, last - first]
        names, kinds = [*names, point], [*kinds, "point"]
        items = [*items, sum(items[at] for at in kept)]
    marks = Marks.build(
        len(starts),
        start_ns=starts,
        dur_ns=durations,
        name=strings.codes(names),
        kind=strings.codes(kinds),
        point=strings.code(point),
        items=items,
        source=0,
    )
    dropped = len(lines) - len(good)
    problems = (
        (
            Problem(
                "warning", str(path), dropped, "rows of trials.csv were cut or damaged and left out"
            ),
        )
        if dropped
        else ()
    )
    source = Source(
        path=str(path), format="trials", clock=ClockDomain.MONOTONIC, has_host_calls=False
    )
    return Trace(sources=(source,), strings=strings, marks=marks, problems=problems)


def _fits(row: re.Match[str]) -> bool:
    """Whether the numbers of a trial can be added up without leaving 64 bits."""
    return all(abs(int(row[at])) <= WHOLE for at in (1, 3, 4, 5))
