"""py-spy's Chrome trace: begins and ends of Python's frames in microseconds since py-spy began.

The frames are marks of the kind `frame`, named as torch.profiler names them: `train.py(31): load`,
but with the line that ran in place of the function's first one. When py-spy began is in the file
beside it that our wrapper writes; a file without one is on a clock of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from profharness.errors import InputError
from profharness.findings import Severity
from profharness.readers.bytes.decimals import microseconds
from profharness.readers.bytes.json_stream import EventStream
from profharness.readers.bytes.limits import LEVELS
from profharness.readers.kineto.records import NOTHING, Number
from profharness.readers.kineto.values import integers
from profharness.readers.py_spy import beside as beside_files
from profharness.readers.py_spy.beside import Beside, Zero
from profharness.readers.py_spy.stacks import Frame, Stacks
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, ClockDomain, Marks, Problem, Source, Strings, Trace
from profharness.trace.parts.sampled import FORMAT, RATE, SAMPLES
from profharness.trace.places import named
from profharness.trace.wanted import Wanted
from profharness.units import format_ns

name = FORMAT

SPEEDSCOPE = b"speedscope.app/file-format-schema"
"""What the other form in which samples of py-spy are read (speedscope.py) names its schema by."""
_CATEGORY = re.compile(rb'"cat"\s*:\s*"py-spy"')
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_LIBRARY = re.compile(r".*/lib(?:64)?/python\d[\d.]*/")
_SENTENCES: dict[str, tuple[Severity, str]] = {
    "untimed": ("warning", "events have no readable time or thread and were left out"),
    "earlier": ("warning", "events are earlier than one before them on their thread: moved there"),
    "unbegun": ("warning", "frames end that never began: left out"),
    "other": ("warning", "frames end where another one was open: taken as its end"),
    "deep": ("warning", f"frames lie more than {LEVELS} deep: left out"),
    "cut": ("warning", "threads have frames without an end: they end with the file"),
}


class _Args(msgspec.Struct, gc=False):
    filename: str | None = ""
    line: Number = None


class Event(msgspec.Struct, gc=False):
    """One event: a frame begins (`B`) or ends (`E`); metadata name threads (`M`)."""

    ph: str = ""
    name: str | None = ""
    ts: msgspec.Raw = NOTHING
    pid: Number = NULL
    tid: Number = NULL
    args: _Args | None = None


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """A list whose events are of py-spy's category."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"[") and _CATEGORY.search(head) is not None


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one file: marks alone, one for each stretch of samples with a frame in it.
    Raises InputError when nothing in the file is usable.
    """
    return read_blocks(path, wanted=wanted)


def read_blocks(
    path: Path, *, wanted: Wanted = Wanted.ALL, block_bytes: int = BLOCK_BYTES
) -> Trace:
    """`read` with blocks of a size of your choice. The result does not depend on it."""
    beside, problems = beside_files.load(path)
    stacks = Stacks()
    stream = EventStream(path, Event, block_bytes)
    for batch in stream:
        _add(stacks, batch)
        del batch  # before the next is decoded
    zero = beside_files.zero_of(beside, stacks.last_ns)
    stacks.close(_ends(beside, zero), is_whole=not stream.damage)
    found = (*problems, *stream.problems(), *_problems(path, stacks, beside, zero))
    return trace_of(path, stacks, beside, found, wanted)


def trace_of(
    path: Path, stacks: Stacks, beside: Beside, problems: Sequence[Problem], wanted: Wanted
) -> Trace:
    """The trace of stacks that were played back, and what was odd about them. Raises InputError
    where there is none.
    """
    zero = beside_files.zero_of(beside, stacks.last_ns)
    if not stacks.owners:
        raise InputError(
            f"{path} holds no sample", "the program may have ended before py-spy took the first one"
        )
    strings = Strings()
    marks = _marks(stacks, strings, zero) if wanted.host else Marks.empty()
    return Trace(
        sources=(_source(path, stacks, beside, zero),),
        strings=strings,
        marks=marks,
        problems=(*problems, *_odd(path, stacks)),
    )


def _add(stacks: Stacks, batch: Sequence[Event]) -> None:
    events = [event for event in batch if event.ph in ("B", "E")]
    times = microseconds([event.ts for event in events])
    pids = integers([event.pid for event in events]).tolist()
    tids = integers([event.tid for event in events]).tolist()
    lines = integers([NULL if event.args is None else event.args.line for event in events])
    valid = times.valid & (times.ns >= 0)
    for event, ns, is_timed, pid, tid, line in zip(
        events, times.ns.tolist(), valid.tolist(), pids, tids, lines.tolist(), strict=True
    ):
        if not is_timed or tid == NULL:
            stacks.odd["untimed"] += 1
            continue
        file = "" if event.args is None else event.args.filename or ""
        frame = Frame(file, max(line, 0), event.name or "")
        stacks.add(event.ph == "B", ns, pid, tid, frame)


def _ends(beside: Beside, zero: Zero | None) -> dict[int, int]:
    """When threads ended, since time zero: in the middle between the two looks."""
    if zero is None:
        return {}
    return {tid: max((low + high) // 2 - zero.at_ns, 0) for tid, low, high in beside.ended}


def _marks(stacks: Stacks, strings: Strings, zero: Zero | None) -> Marks:
    """A mark per span, in the order of their starts, those around others first."""
    spans = stacks.spans
    start = np.array([span.start_ns for span in spans], np.int64)
    end = np.array([span.end_ns for span in spans], np.int64)
    order = np.lexsort((-end, start))
    folders = tuple(sorted(stacks.scripts, key=len, reverse=True))
    codes = np.array([strings.code(_shown(frame, folders)) for frame in stacks.frames], np.int64)
    number = np.array([span.frame for span in spans], np.int64)

    def column(values: list[int]) -> I64:
        ordered: I64 = np.array(values, np.int64)[order]
        return ordered

    return Marks.build(
        len(spans),
        start_ns=start[order] + (0 if zero is None else zero.at_ns),
        dur_ns=(end - start)[order],
        name=codes[number[order]],
        kind=strings.code("frame"),
        pid=column([span.owner.pid for span in spans]),
        tid=column([span.owner.tid for span in spans]),
        source=0,
    )


def _shown(frame: Frame, folders: Sequence[str]) -> str:
    """`train.py(31): load`: files by their place among Python's packages, or in the folder of the
    program.
    """
    file = frame.file
    for pattern in (_PACKAGES, _LIBRARY):
        if found := pattern.match(file):
            file = file[found.end() :]
            break
    else:
        folder = next((folder for folder in folders if file.startswith(folder)), "")
        file = file[len(folder) :]
    if not file:
        return frame.function
    return f"{file}({frame.line}): {frame.function}"


def _source(path: Path, stacks: Stacks, beside: Beside, zero: Zero | None) -> Source:
    pids = {owner.pid for owner in stacks.owners}
    details = (
        (RATE, "" if beside.rate_hz is None else str(beside.rate_hz)),
        (SAMPLES, "" if beside.samples is None else str(beside.samples)),
    )
    return Source(
        path=str(path),
        format=name,
        clock=ClockDomain.UNKNOWN if zero is None else ClockDomain.MONOTONIC,
        pid=next(iter(pids)) if len(pids) == 1 else beside.pid,
        has_host_calls=False,
        bound_ns=None if zero is None else zero.bound_ns,
        alignment=""
        if zero is None
        else f"py-spy's own start, known within {format_ns(zero.bound_ns)} by when it was started "
        "and when it had written its file",
        details=tuple((key, value) for key, value in details if value),
        names=named((pid, tid, text) for (pid, tid), text in stacks.names.items()),
    )


def _odd(path: Path, stacks: Stacks) -> Iterator[Problem]:
    for key, (severity, sentence) in _SENTENCES.items():
        if stacks.odd[key]:
            yield Problem(severity, str(path), stacks.odd[key], sentence)


def _problems(path: Path, stacks: Stacks, beside: Beside, zero: Zero | None) -> Iterator[Problem]:
    if beside.errors:
        yield Problem(
            "warning",
            str(path),
            beside.errors,
            "samples failed, and the stack before each was taken to last",
        )
    if beside.before_ns and zero is None:
        contradiction = "what was noted of py-spy's start contradicts the times in the file"
        yield Problem("warning", str(path), 1, f"{contradiction}: its clock is not known")
    pids = len({owner.pid for owner in stacks.owners})
    if zero is None and pids > 1:
        yield Problem(
            "info",
            str(path),
            pids,
            "processes were sampled, and py-spy draws the last stack of one that has ended to the "
            "end of its file: a long last line may be none",
        )
