"""The records of one host thread as disjoint stretches: at each instant the innermost row that is
open, and the kind of time that it stands for.

Marks (ranges, Python frames, garbage collections), operators and host calls of a thread nest as
calls do. Marks that only give structure (steps, trials, points, phases) are left out: they say
nothing about what the host is in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.host import kinds
from profharness.analysis.host.kinds import HOLDING, Kind
from profharness.analysis.host.own_frames import is_own
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.call_names import is_call
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Source, Trace
from profharness.trace.nesting import innermost, nest

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MARKS, OPS, API = 0, 1, 2
"""The tables that rows come from, as `HostRows.table` counts them. Where rows of several tables
have the same start and length, the earlier table's is the outer one."""

_SHOWN_MARKS = ("range", "frame", "gc", "marker")


@dataclass(frozen=True, eq=False)
class HostRows:
    """What the host did, of all threads: marks, operators and calls in one table.

    `row` counts in the row's own table, `name` is the code of its name, `thread` a small number
    per (source, process, thread), and `kind` a `Kind`.
    """

    start: I64
    end: I64
    thread: I64
    table: I8
    row: I64
    name: I32
    kind: I8
    owners: I64
    """Recording, process and thread id of each number of `thread`: shape (threads, 3)."""
    recording: I64
    """The number of each source's recording: the files of one pass on one host tell of the same
    processes, other files each of their own."""
    of_hooks: Mask
    """Whether a row is a Python frame of profharness's own hooks."""
    native: Mask
    """Whether a row is a Python frame of a function in C, as `<built-in function print>`."""

    def __len__(self) -> int:
        return len(self.start)

    def owner(self, thread: int) -> tuple[int, int, int]:
        """Recording, process and thread id of a thread."""
        recording, pid, tid = (int(value) for value in self.owners[thread])
        return recording, pid, tid


@dataclass(frozen=True, eq=False)
class Timeline:
    """One thread's time in order, without overlap; between the stretches nothing is recorded.

    `kind` is the kind of the outermost row that holds for all inside of it (a DataLoader, a
    synchronisation, ...), else that of the innermost row. `holder` and `inner` are these two rows,
    counted in the `HostRows` that the timeline was made of; they are the same where nothing holds.
    """

    start: I64
    end: I64
    kind: I8
    holder: I64
    inner: I64

    def __len__(self) -> int:
        return len(self.start)

    def intervals(self) -> Intervals:
        return Intervals(self.start, self.end)


def host_rows(trace: Trace) -> HostRows:
    """Marks, operators and calls of a trace as one table; kept with the trace's marks."""
    others = (trace.ops, trace.api, trace.strings, trace.kernels, trace.copies)
    return trace.marks.kept("host_rows", others, lambda: _host_rows(trace))


def _host_rows(trace: Trace) -> HostRows:
    marks, ops, api = trace.marks, trace.ops, trace.api
    shown = [code for code in map(trace.strings.find, _SHOWN_MARKS) if code != NULL]
    of_marks = np.flatnonzero(np.isin(marks.kind, shown) & (marks.dur_ns > 0))
    of_ops = np.flatnonzero((ops.replay == NULL) & (ops.dur_ns > 0))
    of_calls = np.flatnonzero(is_call(trace.strings, api) & (api.dur_ns > 0))
    tables = ((marks, of_marks), (ops, of_ops), (api, of_calls))
    start = np.concatenate([table.start_ns[rows] for table, rows in tables])
    recording = recordings(trace.sources)
    owner = [
        recording[np.concatenate([table.source[rows] for table, rows in tables])],
        np.concatenate([table.pid[rows] for table, rows in tables]),
        np.concatenate([table.tid[rows] for table, rows in tables]),
    ]
    first, thread = first_rows(pack(owner))
    return HostRows(
        start,
        start + np.concatenate([table.dur_ns[rows] for table, rows in tables]),
        thread,
        np.repeat(np.array([MARKS, OPS, API], np.int8), [len(rows) for _, rows in tables]),
        np.concatenate([of_marks, of_ops, of_calls]).astype(np.int64),
        np.concatenate([table.name[rows] for table, rows in tables]),
        np.concatenate(
            [
                kinds.of_marks(trace.strings, marks)[of_marks],
                kinds.of_operators(trace)[of_ops],
                kinds.of_calls(trace.strings, api)[of_calls],
            ]
        ),
        np.stack([column[first] for column in owner], axis=1),
        recording,
        _frames(trace, of_marks, len(thread), is_own),
        _frames(trace, of_marks, len(thread), lambda name: name.startswith("<built-in ")),
    )


def _frames(trace: Trace, of_marks: I64, count: int, wanted: Callable[[str], bool]) -> Mask:
    """Which of so many rows, the first of them those of the marks, are wanted Python frames."""
    found = np.zeros(count, np.bool_)
    marks, frame = trace.marks, trace.strings.find("frame")
    frames = np.flatnonzero((marks.kind[of_marks] == frame) & (frame != NULL))
    names = marks.name[of_marks[frames]]
    codes = [code for code in np.unique(names).tolist() if wanted(trace.strings[code])]
    found[frames] = np.isin(names, codes)
    return found


def recordings(sources: Sequence[Source]) -> I64:
    """For each source the number of its recording (`HostRows.recording`)."""
    keys = [
        (source.pass_name, source.host, source.point) if source.pass_name else (str(place),)
        for place, source in enumerate(sources)
    ]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.int64)


def thread_of(rows: HostRows, source: int, pid: int, tid: int) -> int:
    """The number in `HostRows.thread` of a thread that a record of this source belongs to; NULL
    where it has no row that lasts.
    """
    owner = np.array([rows.recording[source], pid, tid])
    found = np.flatnonzero((rows.owners == owner).all(axis=1))
    return int(found[0]) if len(found) else NULL


def timeline(rows: HostRows, thread: int, within: Intervals | None = None) -> Timeline:
    """The stretches of one thread; only those that reach into a merged set of intervals, where it
    is given (cheaper where that is a small part of the trace). Stretches are not cut at its ends.
    """
    mine = np.flatnonzero(rows.thread == thread)
    if within is not None and len(mine):
        reach = intervals.meeting(Intervals(rows.start[mine], rows.end[mine]), within)
        mine = mine[reach]
    if not len(mine):
        empty = np.empty(0, np.int64)
        return Timeline(empty, empty, np.empty(0, np.int8), empty, empty)
    start, end = rows.start[mine], rows.end[mine]
    one = np.zeros(len(mine), np.int64)
    nesting = nest(start, end - start, one)
    borders = np.unique(np.concatenate((start, end)))
    inner = innermost(
        start,
        end - start,
        one,
        nesting,
        (borders, np.zeros(len(borders), np.int64)),
        with_end=False,
    )
    holder = _holders(rows.kind[mine], nesting.depth, nesting.parent)
    open_ = inner[:-1] != NULL
    inside = inner[:-1][open_]
    held_by = holder[inside]
    # what our hooks call in C is theirs
    above = nesting.parent[inside]
    by_hook = rows.native[mine[inside]] & (above != NULL) & rows.of_hooks[mine[above]]
    by_hook &= held_by == inside
    inside = np.where(by_hook, above, inside)
    held_by = np.where(by_hook, above, held_by)
    return Timeline(
        borders[:-1][open_],
        borders[1:][open_],
        rows.kind[mine][held_by],
        mine[held_by],
        mine[inside],
    )


def _holders(kind: I8, depth: I32, parent: I64) -> I64:
    """For each row the outermost row around it (or itself) that holds for all inside of it; a
    garbage collection holds before all others. Writing holds for Python alone, and only where
    nothing else does. Itself where there is none.
    """
    holds = np.isin(kind, np.array(HOLDING, np.int8))
    collects = kind == Kind.GARBAGE_COLLECTION
    writes = kind == Kind.WRITING
    may_write = writes | (kind == Kind.PYTHON)
    holder = np.where(holds, np.arange(len(kind)), NULL)
    writer = np.where(writes, np.arange(len(kind)), NULL)
    order = np.argsort(depth, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1):
        inner = level[parent[level] != NULL]
        above = holder[parent[inner]]
        takes = (above != NULL) & ~(collects[inner] & ~collects[above])
        holder[inner[takes]] = above[takes]
        above = writer[parent[inner]]
        takes = (above != NULL) & may_write[inner]
        writer[inner[takes]] = above[takes]
    holder = np.where(holder == NULL, writer, holder)
    return np.where(holder == NULL, np.arange(len(kind)), holder)


__all__ = [
    "API",
    "MARKS",
    "OPS",
    "HostRows",
    "Kind",
    "Timeline",
    "host_rows",
    "recordings",
    "thread_of",
    "timeline",
]
