"""Host-side spans of a trace in one form, with the track that each belongs to.

Calls, ops and user ranges of a thread nest on its track. Points, trials, steps and requests stand
under "Benchmark" of their process, one track per kind, side by side where they overlap. Lines of
Python that samples saw stand on a track beside their thread's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.build import per_text
from profharness.trace.columns.column import compact, concat_columns, repeated, taken
from profharness.trace.columns.stacks import Frame, frames_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, HostSamples, Marks, Strings, Trace
from profharness.trace.parts.sampled import step_width_ns, told_since
from profharness.writers.groups import Groups, Ints, group_rows
from profharness.writers.lanes import Events, flat_lanes, nested_lanes, order_events
from profharness.writers.selection import span
from profharness.writers.tracks import Registry

API, OPS, MARKS, REQUESTS, SAMPLED = range(5)
BENCHMARK_KINDS = (
    "point",
    "warmup",
    "trial",
    "step",
    "phase",
    "request",
    "execution",
    "range",
    "marker",
    "path",
)
_THREAD_KINDS = ("range", "marker", "frame", "gc")
_FRAME_CATEGORIES = ("module", "python_function")
SAMPLED_LINE = "sampled_line"
_MODULE = "nn.Module: "  # as torch begins the names of its modules' calls


@dataclass(frozen=True)
class Spans:
    """Spans as columns: `table` and `row` say where the rest stands; names are codes into
    `strings`.

    `place` is the thread id or, on benchmark tracks, the position of the kind in BENCHMARK_KINDS.
    """

    strings: Strings
    table: Ints
    row: Ints
    process: Ints
    place: Ints
    start: I64
    dur: I64
    name: Ints
    category: Ints

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ints) -> Spans:
        """The spans at these positions."""
        return Spans(self.strings, *(taken(column, rows) for column in self.columns()))

    def columns(self) -> tuple[Any, ...]:
        return (
            self.table,
            self.row,
            self.process,
            self.place,
            self.start,
            self.dur,
            self.name,
            self.category,
        )


@dataclass(frozen=True)
class Laned:
    """Spans with their events in writing order and the track of each; `tracks.first` is a span of
    each track.
    """

    spans: Spans
    events: Events
    lane: I64
    tracks: Groups


def thread_spans(trace: Trace, registry: Registry, api_process: I64) -> Spans:
    """Calls, ops, and ranges of known threads."""
    strings = Strings(trace.strings.texts)
    marks = np.flatnonzero(_on_thread(trace))
    named = trace.marks.take(marks)
    op = strings.code("op")
    parts = (
        _part(
            API,
            np.arange(len(trace.api)),
            api_process,
            trace.api.tid,
            span(trace.api),
            trace.api.name,
            trace.api.domain,
        ),
        _part(
            OPS,
            np.arange(len(trace.ops)),
            registry.process_rows(trace.ops),
            trace.ops.tid,
            span(trace.ops),
            trace.ops.name,
            np.full(len(trace.ops), op),
        ),
        _part(
            MARKS,
            marks,
            registry.process_rows(named),
            named.tid,
            span(named),
            named.name,
            _thread_categories(strings, named),
        ),
    )
    return Spans(strings, *(concat_columns(column) for column in zip(*parts, strict=True)))


def _thread_categories(strings: Strings, marks: Marks) -> Ints:
    """The kind of each mark; of Python's frames whether they are a module's call."""
    frames = np.flatnonzero(marks.kind == strings.find("frame"))
    if not len(frames):
        return marks.kind
    module, function = (strings.code(category) for category in _FRAME_CATEGORIES)
    category = marks.kind.copy()
    category[frames] = per_text(
        strings,
        marks.name[frames],
        lambda name: module if name.startswith(_MODULE) else function,
    )
    return category


def benchmark_spans(trace: Trace, registry: Registry) -> Spans:
    """Points, trials, steps, phases, requests, and ranges of no known thread."""
    strings = Strings(trace.strings.texts)
    codes = [strings.code(kind) for kind in BENCHMARK_KINDS]
    marks = np.flatnonzero(~_on_thread(trace))
    named = trace.marks.take(marks)
    kind = np.full(len(strings) + 1, BENCHMARK_KINDS.index("range"))
    kind[codes] = np.arange(len(codes))
    requests = trace.requests
    served = np.where(requests.ok == 0, strings.code("failed request"), strings.code("request"))
    owner = registry.source_rows(requests.source)
    parts = (
        _part(
            MARKS,
            marks,
            registry.process_rows(named),
            kind[named.kind],
            span(named),
            named.name,
            named.kind,
        ),
        _part(
            REQUESTS,
            np.arange(len(requests)),
            owner,
            np.full(len(requests), BENCHMARK_KINDS.index("request")),
            span(requests),
            served,
            np.full(len(requests), strings.code("request")),
        ),
    )
    return Spans(strings, *(concat_columns(column) for column in zip(*parts, strict=True)))


@dataclass(frozen=True)
class SampledSpans:
    """Lines of Python as spans, and the usual distance of the samples in ns by the position of the
    process and the thread id.
    """

    spans: Spans
    widths: Mapping[tuple[int, int], int]


def sampled_spans(trace: Trace, registry: Registry) -> SampledSpans:
    """What samples of Python's lines say, as one span for each line of a stack and for as long as
    samples in a row saw it: from the sample before the first to the last of them. Where the sampler
    paused there is no span.
    """
    table, strings = trace.host_samples, Strings(trace.strings.texts)
    process = registry.process_rows(table)
    known = np.flatnonzero(table.stack != NULL)
    order = known[np.lexsort((table.at_ns[known], table.tid[known], process[known]))]
    groups = group_rows(process[order], table.tid[order])
    found: list[tuple[int, int, int, int, int]] = []  # process, thread, start, end, name
    widths: dict[tuple[int, int], int] = {}
    for group in range(len(groups)):
        rows = order[groups.of == group]
        owner = int(process[rows[0]]), int(table.tid[rows[0]])
        if len(rows) > 1 and (width := step_width_ns(table.at_ns[rows])):
            widths[owner] = width
            lines = _sampled_lines(table, rows, strings)
            found += ((*owner, start, end, name) for start, end, name in lines)
    columns = np.array(found, np.int64).reshape(-1, 5).T
    start, end = columns[2], columns[3]
    category = np.full(len(found), strings.code(SAMPLED_LINE))
    part = _part(
        SAMPLED,
        np.arange(len(found)),
        columns[0],
        columns[1],
        (start, end - start),
        columns[4],
        category,
    )
    return SampledSpans(Spans(strings, *part), widths)


def _sampled_lines(
    table: HostSamples, rows: I64, strings: Strings
) -> Iterator[tuple[int, int, int]]:
    """Start, end and name of the lines of one thread, those around others first where they begin
    together. `rows` are its samples in order of time.
    """
    at, stack = table.at_ns[rows], table.stack[rows]
    since = told_since(at, table.delay_ns[rows])
    frames = {
        code: frames_of(strings[code])[::-1] for code in np.unique(stack).tolist()
    }  # the outermost first
    names = {frame: strings.code(_line(frame)) for one in frames.values() for frame in one}
    open_lines: list[tuple[int, Frame]] = []
    spans: list[tuple[int, int, int, int]] = []  # start, minus end, depth, name: outer ones first
    until = int(at[0])

    def close(depth: int) -> None:
        while len(open_lines) > depth:
            start, frame = open_lines.pop()
            if until > start:
                spans.append((start, -until, len(open_lines), names[frame]))

    for start, end, code in zip(since.tolist(), at[1:].tolist(), stack[1:].tolist(), strict=True):
        if start > until:
            close(0)
        shared = 0
        for (_, here), frame in zip(open_lines, frames[code], strict=False):
            if here != frame:
                break
            shared += 1
        close(shared)
        open_lines += ((start, frame) for frame in frames[code][shared:])
        until = end
    close(0)
    return ((start, -end, name) for start, end, _, name in sorted(spans))


def _line(frame: Frame) -> str:
    """`train.py:31 tokenise`."""
    return f"{PurePosixPath(frame.file).name}:{frame.line} {frame.function}".rstrip()


def lay_out(spans: Spans, lanes: Callable[[Events, I64, I64], I64]) -> Laned:
    """Events in order of process, place and time, and tracks: one per process, place and lane."""
    place = group_rows(spans.process, spans.place).of
    events = order_events(place, spans.start, spans.dur)
    lane = lanes(events, spans.start, spans.dur)
    return Laned(spans, events, compact(lane), group_rows(place, lane))


def nested(events: Events, start: I64, dur: I64) -> I64:
    """Lanes that keep nesting."""
    return nested_lanes(events, start, dur)


def flat(events: Events, start: I64, dur: I64) -> I64:  # noqa: ARG001  it is called as `nested` is
    """Lanes without nesting."""
    return flat_lanes(events)


def _on_thread(trace: Trace) -> npt.NDArray[np.bool_]:
    kinds = {trace.strings.find(kind) for kind in _THREAD_KINDS} - {NULL}
    on_thread: npt.NDArray[np.bool_] = np.isin(trace.marks.kind, list(kinds)) & (
        trace.marks.tid != NULL
    )
    return on_thread


def _part(
    table: int, rows: I64, process: I64, place: Ints, times: tuple[I64, I64], *codes: Ints
) -> tuple[Any, ...]:
    """The columns of `Spans`, as narrow as their values allow: there are several spans per
    kernel.
    """
    columns = (
        repeated(table, np.int8, len(rows)),
        rows.astype(np.int32),
        np.asarray(process, np.int32),
        place,
        *times,
        *codes,
    )
    return tuple(compact(np.asarray(column)) for column in columns)
