"""Which lines and functions of Python the host was in, from the stacks that py-spy samples
(docs/metrics.md#python-lines). What the hook beside torch samples names what the host did
(`python_lines`).

Samples lie at equal distances, so that the time between them is their count. A thread's shares are
of its own time: threads that wait for each other would else hide each other. Where the process
logged steps, only the time from the first to the last of them counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profharness.analysis.host.line_records import By, LineRow, LineTable, LineThread
from profharness.analysis.host.own_frames import cut_out, is_own
from profharness.stats.proportion import wilson
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.trace.parts.sampled import FORMAT, RATE, is_sampled

_NAME = re.compile(r"(.*)\((\d{1,9})\): (.*)\Z", re.DOTALL)
_WAITING = re.compile(
    r"(?:threading|selectors|subprocess|queue|socket|asyncio/\w+|concurrent/futures/\w+"
    r"|multiprocessing/(?:connection|popen_\w+|queues|synchronize|pool)"
    r"|torch/distributed/elastic/\w+/(?:\w+/)?\w+)\.py"
)


class _Place(NamedTuple):
    file: str
    line: int
    function: str


class _ThreadKey(NamedTuple):
    source: int
    rank: int
    pid: int
    tid: int


@dataclass(eq=False)
class _Sums:
    """Times of one thread by place: innermost, and anywhere in the stack. Not frozen only because
    it grows.
    """

    own: Counter[_Place] = field(default_factory=Counter)
    inclusive: Counter[_Place] = field(default_factory=Counter)

    def add(self, spans: Iterable[tuple[int, int, _Place]]) -> None:
        """Spans in the order of their starts, those around others first. What is recursive counts
        once.
        """
        stack: list[tuple[int, _Place]] = []
        depth: Counter[_Place] = Counter()
        for start, end, place in spans:
            while stack and stack[-1][0] <= start:
                depth[stack.pop()[1]] -= 1
            inside = min(end, stack[-1][0]) if stack else end
            if stack:
                self.own[stack[-1][1]] -= inside - start
            self.own[place] += inside - start
            if not depth[place]:
                self.inclusive[place] += inside - start
            depth[place] += 1
            stack.append((inside, place))

    @property
    def total(self) -> int:
        return self.own.total()


def line_table(trace: Trace, by: By = "line", pass_name: str | None = None) -> LineTable | None:
    """The table of all sampled threads; None where the trace holds no samples of Python."""
    sampled = [
        position
        for position, source in enumerate(trace.sources)
        if source.format == FORMAT and pass_name in (None, source.pass_name)
    ]
    marks = trace.marks
    rows = np.flatnonzero(is_sampled(trace) & np.isin(marks.source, sampled))
    if not len(rows):
        return None
    rate = _rate(trace, sampled)
    places = {
        code: _place(trace.strings[code], by) for code in np.unique(marks.name[rows]).tolist()
    }
    found = [_thread(trace, key, of_key, places, rate) for key, of_key in _by_thread(trace, rows)]
    ordered = sorted((one for one in found if one is not None), key=_order)
    passes = {trace.sources[position].pass_name for position in sampled}
    return LineTable(
        by=by,
        pass_name=(passes.pop() or None) if len(passes) == 1 else None,
        rate_hz=rate,
        threads=tuple(thread for thread, _ in ordered),
        rows=tuple(row for _, rows_of in ordered for row in rows_of),
    )


def sampled_stacks(trace: Trace, table: LineTable) -> Trace:
    """The frames alone of the threads whose rows are shown, in their window of steps or the whole
    of it: what a flame graph of the samples draws.
    """
    marks, rows = trace.marks, np.flatnonzero(is_sampled(trace))
    chosen = {(row.pid, row.tid) for row in table.shown}
    kept, starts, ends = [], [], []
    for key, of_key in _by_thread(trace, rows):
        if (key.pid, key.tid) not in chosen:
            continue
        low, high, _ = _steps(trace, key) or (0, np.iinfo(np.int64).max, NULL)
        start = np.maximum(marks.start_ns[of_key], low)
        end = np.minimum(marks.start_ns[of_key] + marks.dur_ns[of_key], high)
        own = _of_hooks(trace, of_key)
        inside = end > start
        start, end, _ = cut_out(start[inside], end[inside], own[inside])
        others = ~own[inside] & (end > start)
        kept.append(of_key[inside][others])
        starts.append(start[others])
        ends.append(end[others])
    if not kept:
        return Trace(sources=trace.sources, strings=trace.strings)
    start, end = np.concatenate(starts), np.concatenate(ends)
    frames = marks.take(np.concatenate(kept)).with_columns(start_ns=start, dur_ns=end - start)
    return Trace(sources=trace.sources, strings=trace.strings, marks=frames)


def without_samples(trace: Trace) -> Trace:
    """The trace without the frames of samples, which have a picture of their own."""
    sampled = is_sampled(trace)
    return replace(trace, marks=trace.marks.take(~sampled)) if sampled.any() else trace


def _rate(trace: Trace, sampled: list[int]) -> int | None:
    """The rate that all sources agree on."""
    rates = {dict(trace.sources[position].details).get(RATE, "") for position in sampled}
    text = rates.pop() if len(rates) == 1 else ""
    return int(text) if text.isdecimal() else None


def _place(name: str, by: By) -> _Place:
    match = _NAME.match(name)
    if match is None:
        return _Place("", 0, name)
    return _Place(match[1], int(match[2]) if by == "line" else 0, match[3])


def _by_thread(trace: Trace, rows: I64) -> Iterator[tuple[_ThreadKey, I64]]:
    marks = trace.marks
    columns = (marks.source, marks.rank, marks.pid, marks.tid)
    order = np.lexsort((-marks.dur_ns[rows], marks.start_ns[rows], *(c[rows] for c in columns)))
    rows = rows[order]
    keys = np.stack([column[rows].astype(np.int64) for column in columns], axis=1)
    borders = np.flatnonzero((np.diff(keys, axis=0) != 0).any(axis=1)) + 1
    for part in np.split(rows, borders):
        yield _ThreadKey(*(int(column[part[0]]) for column in columns)), part


def _thread(
    trace: Trace, key: _ThreadKey, rows: I64, places: dict[int, _Place], rate: int | None
) -> tuple[LineThread, list[LineRow]] | None:
    """One thread and its rows; None where its samples lie outside of the steps."""
    marks, steps = trace.marks, _steps(trace, key)
    window = None if steps is None else steps[:2]
    start, end = marks.start_ns[rows], marks.start_ns[rows] + marks.dur_ns[rows]
    if window is not None:
        start, end = np.maximum(start, window[0]), np.minimum(end, window[1])
    kept, own = end > start, _of_hooks(trace, rows)
    start, end, hooks_ns = cut_out(start[kept], end[kept], own[kept])
    others = ~own[kept] & (end > start)
    names = [places[code] for code in marks.name[rows[kept][others]].tolist()]
    sums = _Sums()
    sums.add(zip(start[others].tolist(), end[others].tolist(), names, strict=True))
    if not sums.total:
        return None
    known_rank = key.rank if steps is None or key.rank != NULL else steps[2]
    rank = None if known_rank == NULL else known_rank
    named = {(one.pid, one.tid): one.name for one in trace.sources[key.source].names}
    thread_name = named.get((key.pid, key.tid), "")
    waiting = sum(ns for place, ns in sums.own.items() if _WAITING.fullmatch(place.file))
    thread = LineThread(
        rank=rank,
        process=named.get((key.pid, NULL), ""),
        pid=key.pid,
        thread=thread_name,
        tid=key.tid,
        is_main=key.tid == key.pid or thread_name == "MainThread",
        from_steps=window is not None,
        waits=2 * waiting >= sums.total,
        ns=sums.total,
        hooks_ns=hooks_ns,
        samples=None if rate is None else _samples(sums.total, rate),
    )
    return thread, sorted(_rows(thread, sums, rate), key=_row_order)


def _of_hooks(trace: Trace, rows: I64) -> npt.NDArray[np.bool_]:
    """Whether each of these frames is one of profharness's own hooks."""
    names = trace.marks.name[rows]
    own = [code for code in np.unique(names).tolist() if is_own(trace.strings[code])]
    return np.isin(names, own)


def _samples(ns: int, rate: int) -> int:
    return round(ns * rate / 1_000_000_000)


def _rows(thread: LineThread, sums: _Sums, rate: int | None) -> Iterator[LineRow]:
    for place, inclusive in sums.inclusive.items():
        own = sums.own[place]
        low: float | None = None
        high: float | None = None
        hits = None if rate is None else _samples(own, rate)
        if hits is not None and thread.samples:
            low, high = wilson(min(hits, thread.samples), thread.samples)
        share = own / sums.total
        yield LineRow(
            file=place.file,
            line=place.line or None,
            function=place.function,
            rank=thread.rank,
            pid=thread.pid,
            tid=thread.tid,
            self_ns=own,
            inclusive_ns=inclusive,
            share=share,
            share_low=None if low is None else min(low, share),
            share_high=None if high is None else max(high, share),
            inclusive_share=inclusive / sums.total,
            samples=hits,
        )


def _steps(trace: Trace, key: _ThreadKey) -> tuple[int, int, int] | None:
    """From the first to the last step of the thread's process in its pass, and the rank of these;
    None without steps.
    """
    marks, source = trace.marks, trace.sources[key.source]
    same_pass = np.array([one.pass_name == source.pass_name for one in trace.sources], np.bool_)
    rows = np.flatnonzero(
        (marks.kind == trace.strings.find("step"))
        & (marks.kind != NULL)
        & (marks.pid == key.pid)
        & same_pass[marks.source]
    )
    if not len(rows):
        return None
    start = marks.start_ns[rows]
    end = start + marks.dur_ns[rows]
    return int(start.min()), int(end.max()), int(marks.rank[rows].max())


def _order(found: tuple[LineThread, list[LineRow]]) -> tuple[bool, bool, bool, int, int, int]:
    """Threads of processes with steps, main threads and those that do not wait come first, then by
    falling time.
    """
    thread = found[0]
    return (
        thread.waits,
        not thread.is_main,
        not thread.from_steps,
        -thread.ns,
        thread.pid,
        thread.tid,
    )


def _row_order(row: LineRow) -> tuple[int, int, str, int, str]:
    return -row.self_ns, -row.inclusive_ns, row.file, row.line or 0, row.function
