"""What the host was in when it launched device work: the program's ranges, the modules of a model
and Python's call stack (docs/metrics.md#hotspots).

A device record belongs to the innermost span that is open at the start of its launching call, an
operator to the one open at its own start, on the same thread. A backward operator runs after the
modules have returned, and belongs to the module of its forward operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from profharness.analysis.operators.device_time import lasting
from profharness.analysis.operators.gradients import forward_of, is_node
from profharness.analysis.operators.nests import Nests, nests, nests_of, self_time
from profharness.analysis.operators.sums import Owners
from profharness.analysis.time.linking import link
from profharness.trace import nesting
from profharness.trace.columns.build import per_text
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Copies, Kernels, Marks, Strings, Trace

Mask = npt.NDArray[np.bool_]
SpanKind = Literal["range", "module", "stack"]

FRAME = "frame"
MODULE = "nn.Module: "
_ADDRESS = re.compile(r" object at 0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"#\d+\Z")
_LOGS = frozenset({"steps", "trials", "level", "host"})
"""Formats of a run's own logs. They repeat what the recorded file marks, and nothing belongs to
their marks, since no other record is of their source.
"""
_OWN = "profharness."
_PATHS = 48 << 20
"""Characters of all paths together: those of a model of 1,000 modules, or of 10,000 lines of code,
have a tenth. Paths beyond that name their own span alone, since each is as long as it is deep.
"""
_CUT = "…"
_HOOKS, _THREADING = "profharness_hooks/", "threading.py("


@dataclass(frozen=True, eq=False)
class Around:
    """The spans of one kind and what belongs to them, in groups with `names`.

    `group`, `start_ns` and `host_ns` are per span: its group, its start, and its own time on the
    host without the spans inside of it (a module's with that of its backward operators).
    `inclusive_ns` is per group the device time of its spans with what is nested in them. `frames`
    are the groups' own names without those around them, `holder` the group that each stands in,
    NULL for the outermost.
    """

    names: tuple[str, ...]
    frames: tuple[str, ...]
    holder: I64
    group: I64
    start_ns: I64
    host_ns: I64
    owners: Owners
    inclusive_ns: I64


def around(trace: Trace, kind: SpanKind) -> Around:
    """The spans of a trace that are of this kind; none where it recorded none."""
    spans = trace.marks.take(_rows_of(trace, kind))
    if kind == "stack":
        spans = _without_hooks(spans, trace)
    places = _Places.of(trace, spans, through_forward=kind == "module")
    tree = nests_of(places.nesting)
    paths = _names(spans, tree, trace.strings, kind)
    names, group = paths.names, paths.of_span
    host = self_time(spans.start_ns, spans.dur_ns, tree.parent)
    if kind == "module" and len(spans):
        host = _with_backward(host, places)
    kernels, copies = places.of_records(trace.kernels), places.of_records(trace.copies)
    device = np.zeros(len(spans), np.int64)
    for row, records in ((kernels, trace.kernels), (copies, trace.copies)):
        np.add.at(device, row[row != NULL], lasting(records)[row != NULL])
    inclusive = np.zeros(len(names), np.int64)
    np.add.at(inclusive, group, tree.with_inner(device))
    grouped = np.append(group, NULL)  # the last is for NULL
    owners = Owners(len(names), grouped[places.of_ops], grouped[kernels], grouped[copies])
    return Around(names, paths.frames, paths.holder, group, spans.start_ns, host, owners, inclusive)


def _rows_of(trace: Trace, kind: SpanKind) -> I64:
    """Marks of this kind; an instant holds nothing. A stack has no modules: those of twelve layers
    would make twelve stacks of one line of code. Marks that check the clock are no ranges.
    """
    marks, strings = trace.marks, trace.strings
    is_frame = (marks.kind == strings.find(FRAME)) & (marks.kind != NULL)
    if kind == "range":
        is_log = np.array([source.format in _LOGS for source in trace.sources], np.bool_)
        of_kind = ~is_frame & ~is_log[marks.source] & (marks.kind != strings.find("marker"))
    else:
        is_module = per_text(strings, marks.name, _is_module) == 1
        of_kind = is_frame & (is_module if kind == "module" else ~is_module)
    rows: I64 = np.flatnonzero(of_kind & (marks.dur_ns > 0))
    return rows


def _is_module(name: str) -> bool:
    return name.startswith(MODULE)


def _without_hooks(frames: Marks, trace: Trace) -> Marks:
    """Frames of the program's threads: not of those that our hooks began, in which nothing but
    `threading` holds a frame of theirs. Hooks that the program's own thread calls are kept.
    """
    is_hook = per_text(trace.strings, frames.name, lambda name: _HOOKS in name) == 1
    if not is_hook.any():
        return frames
    is_begun = per_text(trace.strings, frames.name, lambda name: name.startswith(_THREADING)) == 1
    thread = _Threads.of(frames, trace).spans
    tree = nests_of(nesting.nest(frames.start_ns, frames.dur_ns, thread))
    began = is_hook & ~tree.inside(~is_begun) & (tree.parent != NULL)
    return frames.take(~np.isin(thread, thread[began]))


@dataclass(frozen=True, eq=False)
class _Threads:
    """One number per thread, for spans, operators and host calls alike."""

    spans: I64
    ops: I64
    api: I64

    @classmethod
    def of(cls, spans: Marks, trace: Trace) -> _Threads:
        tables = (spans, trace.ops, trace.api)
        together = [
            np.concatenate([getattr(table, name) for table in tables])
            for name in ("source", "pid", "tid")
        ]
        number = coded(pack(together))[1]
        cuts = np.cumsum([len(table) for table in tables])[:-1]
        return cls(*np.split(number, cuts))


@dataclass(frozen=True, eq=False)
class _Places:
    """Where operators and device records of a trace stand among spans: rows of spans, NULL for
    none.

    `direct` is the innermost span around each operator. `forward` is that of the forward operator
    that a backward one belongs to, `node_start` when the backward node began; without forward
    operators they hold for nothing.
    """

    trace: Trace
    spans: Marks
    threads: _Threads
    nesting: nesting.Nesting
    direct: I64
    forward: I64
    node_start: I64

    @classmethod
    def of(cls, trace: Trace, spans: Marks, *, through_forward: bool) -> _Places:
        ops, threads = trace.ops, _Threads.of(spans, trace)
        nested = nesting.nest(spans.start_ns, spans.dur_ns, threads.spans)
        direct = _innermost(spans, threads.spans, nested, (ops.start_ns, threads.ops))
        forward = np.full(len(ops), NULL, np.int64)
        if through_forward and len(ops):
            made, node = forward_of(ops), nests(ops).nearest(is_node(ops))
            forward = np.append(direct, NULL)[made]
            return cls(trace, spans, threads, nested, direct, forward, ops.start_ns[node])
        return cls(trace, spans, threads, nested, direct, forward, ops.start_ns)

    @cached_property
    def of_ops(self) -> I64:
        """The span that each operator belongs to."""
        return self._belonging(self.direct, np.arange(len(self.trace.ops)))

    def of_records(self, records: Kernels | Copies) -> I64:
        """By the launching call; without one in the file, by the operator."""
        api, op = self.trace.api, records.op.astype(np.int64)
        rows = np.append(self.of_ops, NULL)[op]
        call = link(self.trace, records).api
        linked = np.flatnonzero(call != NULL)
        at = (api.start_ns[call[linked]], self.threads.api[call[linked]])
        innermost = _innermost(self.spans, self.threads.spans, self.nesting, at)
        rows[linked] = self._belonging(innermost, op[linked])
        return rows

    def _belonging(self, direct: I64, op: I64) -> I64:
        """The span of the forward operator instead, unless one was opened inside of the backward
        node, as where a forward pass is run again.
        """
        forward = np.append(self.forward, NULL)[op]
        since = np.append(self.node_start, 0)[op]
        inside = (direct != NULL) & (np.append(self.spans.start_ns, 0)[direct] >= since)
        return np.where((forward != NULL) & ~inside, forward, direct)


def _innermost(spans: Marks, thread: I64, nested: nesting.Nesting, at: tuple[I64, I64]) -> I64:
    return nesting.innermost(spans.start_ns, spans.dur_ns, thread, nested, at, with_end=False)


def _with_backward(host: I64, places: _Places) -> I64:
    """Each module's own time with the own time of its backward operators, which is taken off the
    module around them, if any.
    """
    ops, spans, threads = places.trace.ops, places.spans, places.threads
    start = np.concatenate((ops.start_ns, spans.start_ns))
    dur = np.concatenate((ops.dur_ns, spans.dur_ns))
    parent = nesting.nest(start, dur, np.concatenate((threads.ops, threads.spans))).parent
    own = self_time(start, dur, parent)
    total = host.copy()
    moved = np.flatnonzero(places.of_ops != places.direct)
    np.add.at(total, places.of_ops[moved], own[moved])
    held = moved[places.direct[moved] != NULL]
    np.subtract.at(total, places.direct[held], own[held])
    return np.maximum(total, 0)


@dataclass(frozen=True, eq=False)
class _Paths:
    """The groups' names, as `Around` has them, and the group of each span."""

    names: tuple[str, ...]
    frames: tuple[str, ...]
    holder: I64
    of_span: I64


def _names(spans: Marks, tree: Nests, strings: Strings, kind: SpanKind) -> _Paths:
    """The groups' names, and the group of each span: ranges by name, modules and frames by path."""
    texts: dict[str, int] = {}

    def place(text: str) -> int:
        shown = _ADDRESS.sub("", text)
        shown = shown.removeprefix(MODULE) if kind == "module" else shown
        return texts.setdefault(shown, len(texts))

    if kind == "range":
        key = [column.astype(np.int64) for column in (spans.name, spans.kind, spans.point)]
        first, of_span = first_rows(pack(key))
        distinct = zip(*(strings.decode(column[first]) for column in key), strict=True)
        number = [place(_range_name(*one)) for one in distinct]
        alone = np.full(len(texts), NULL, np.int64)
        return _Paths(tuple(texts), tuple(texts), alone, np.array(number, np.int64)[of_span])
    own = per_text(strings, spans.name, place)
    return _paths(own, tree, list(texts), kind)


def _range_name(name: str, kind: str, point: str) -> str:
    """Steps are one row, and so are the trials of a point, which our own marks number."""
    if name.startswith(_OWN):
        return f"{kind} {point}".rstrip()
    return _NUMBER.sub("", name) if kind == "step" else name


def _paths(own: I64, tree: Nests, texts: list[str], kind: SpanKind) -> _Paths:
    """The path of each span through those around it, and the paths' names: `Model_0/Linear_1` of
    modules; of frames the innermost first, `forward < __call__ < main`.
    """
    names: list[str] = []
    frames: list[str] = []
    holders: list[int] = []
    room = _PATHS
    path = np.full(len(own), NULL, np.int64)
    for rows in tree.levels:
        parent = tree.parent[rows]
        outer = np.where(parent == NULL, NULL, path[parent])
        first, number = first_rows(pack([outer, own[rows]]))
        path[rows] = number + len(names)
        new = zip(outer[first].tolist(), own[rows][first].tolist(), strict=True)
        for holder, at in new:
            outside = "" if holder == NULL else names[holder] if room > 0 else _CUT
            names.append(_path(outside, texts[at], kind))
            frames.append(texts[at])
            holders.append(holder)
            room -= len(names[-1])
    return _Paths(tuple(names), tuple(frames), np.array(holders, np.int64), path)


def _path(outer: str, own: str, kind: SpanKind) -> str:
    if not outer:
        return own
    return f"{own} < {outer}" if kind == "stack" else f"{outer}/{own}"
