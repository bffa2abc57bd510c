"""The hooks' log of steps: `steps-<pid>.jsonl`, one line per completed step on CLOCK_MONOTONIC.

A step lasts from the end of the one before it; the first one's start is unknown, so it gives no
row.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.limits import Nanoseconds, Whole
from profharness.readers.own.lines import lines_of, pid_of
from profharness.rundir.foreign.limits import WHOLE
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, ClockDomain, Marks, Problem, Source, Strings, Trace


class Line(msgspec.Struct, frozen=True):
    """Step `n` ended at `monotonic_ns`, having processed `items`; a source `mark` is the script's
    own word, and `backward` a backward pass of a script without an optimizer. Thread `tid` made it,
    which had taken `cpu_ns` of processor time by then.
    """

    n: Whole
    monotonic_ns: Nanoseconds
    items: Whole | None = None
    source: Literal["backward", "optimizer", "mark"] = "optimizer"
    tid: Whole = NULL
    cpu_ns: Whole = NULL


_LINE = msgspec.json.Decoder(Line)


def read(path: Path) -> Trace:
    """Marks of kind step. Where the script marks its steps itself, the optimizer's are left out.

    Raises InputError when the file cannot be read. Cut lines are counted as a problem.
    """
    chosen, damaged = _read(path)
    strings = Strings()
    ends = np.array([line.monotonic_ns for line in chosen], np.int64)
    items = np.array([NULL if line.items is None else line.items for line in chosen], np.int64)
    marks = Marks.build(
        max(len(chosen) - 1, 0),
        start_ns=ends[:-1],
        dur_ns=np.diff(ends),
        items=items[1:],
        kind=strings.code("step"),
        name=strings.codes(f"step {line.n}" for line in chosen[1:]),
        tid=np.array([line.tid for line in chosen[1:]], np.int64),
        cpu_ns=_spent(chosen),
        pid=pid_of(path),
        source=0,
    )
    problems = (
        (
            Problem(
                "warning",
                str(path),
                damaged,
                "lines of the log of steps were cut or damaged and left out",
            ),
        )
        if damaged
        else ()
    )
    source = Source(
        path=str(path),
        format="steps",
        clock=ClockDomain.MONOTONIC,
        pid=pid_of(path),
        has_host_calls=False,
        details=(("steps_by", chosen[0].source),) if chosen else (),
    )
    return Trace(sources=(source,), strings=strings, marks=marks, problems=problems)


def _spent(steps: list[Line]) -> I64:
    """What the thread of each step but the first took of its processor's time; NULL where another
    thread made the step before, or the log is of an earlier version.
    """
    spent = [
        after.cpu_ns - before.cpu_ns
        if before.tid == after.tid != NULL and 0 <= before.cpu_ns <= after.cpu_ns
        else NULL
        for before, after in pairwise(steps)
    ]
    return np.array(spent, np.int64)


def lines(path: Path) -> tuple[Line, ...]:
    """The steps as the log has them, the first one too; those that are cut are left out. Raises
    InputError as `read`.
    """
    return tuple(_read(path)[0])


def _read(path: Path) -> tuple[list[Line], int]:
    """The lines that count, and how many were damaged."""
    raw = lines_of(path)
    decoded: list[Line] = []
    for text in raw:
        try:
            line = _LINE.decode(text)
        except NOT_JSON:
            continue
        if max(abs(line.n), abs(line.monotonic_ns), abs(line.items or 0)) <= WHOLE:
            decoded.append(line)
    chosen = decoded
    for source in ("mark", "optimizer"):
        if told := [line for line in decoded if line.source == source]:
            chosen = told
            break
    latest = np.maximum.accumulate([line.monotonic_ns for line in chosen] or [0])
    in_order = [line for line, ns in zip(chosen, latest, strict=False) if line.monotonic_ns == ns]
    return in_order, len(raw) - len(decoded) + len(chosen) - len(in_order)
