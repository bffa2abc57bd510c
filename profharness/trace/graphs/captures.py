"""What was launched into a graph while it was captured: calls between the begin and the end of a
stream's capture, which run nothing, and the operators around them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace import call_names, launches, nesting
from profharness.trace.columns.keys import coded, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Recorded:
    """A trace that captures graphs: `thread` is one number per operator's thread, `nested` how its
    operators nest.
    """

    trace: Trace
    thread: I64
    nested: nesting.Nesting

    def around(self, rows: I64) -> Mask:
        """Which operators are among these rows, or hold one of them on their thread."""
        found = np.zeros(len(self.thread), np.bool_)
        rows = np.unique(rows[rows != NULL])
        while len(rows):
            found[rows] = True
            rows = np.unique(self.nested.parent[rows])
            rows = rows[rows != NULL]
            rows = rows[~found[rows]]
        return found


@dataclass(frozen=True, eq=False)
class Capture:
    """One captured graph. Per launch, in the order of the calls: `kernel` is the code of the
    kernel's name in the strings of the trace (NULL where the call does not say it), `op` the row of
    the innermost operator around the call (NULL for none). `begin_ns` is when the capture began.
    """

    recorded: Recorded
    kernel: I64
    op: I64
    begin_ns: int

    def __len__(self) -> int:
        return len(self.kernel)

    @property
    def named(self) -> bool:
        """Whether any of its calls names its kernel."""
        return bool((self.kernel != NULL).any())


def captured_graphs(trace: Trace) -> tuple[Capture, ...]:
    """The graphs that a trace captures, in the order of their begins; those without a launch, or
    without an end in the trace, are left out.

    A launch belongs to the capture that its thread has open, or where its thread captures nothing
    (the autograd engine's), to the one that another thread of the process has open. What has a
    device record was not captured.
    """
    api, ops = trace.api, trace.ops
    columns = ((ops.source, api.source), (ops.pid, api.pid), (ops.tid, api.tid))
    threads = coded(pack([np.concatenate(pair) for pair in columns]))[1]
    of_ops, of_calls = threads[: len(ops)], threads[len(ops) :]
    nested = nesting.nest(ops.start_ns, ops.dur_ns, of_ops)
    recorded = Recorded(trace, of_ops, nested)
    launching = call_names.matching(trace.strings, api, call_names.LAUNCH)
    launching = launching & ~call_names.matching(trace.strings, api, call_names.GRAPH_LAUNCH)
    rows = np.flatnonzero(launching & ~_recorded(trace))
    rows = rows[np.argsort(api.start_ns[rows], kind="stable")]
    start, thread = api.start_ns[rows], of_calls[rows]
    op = nesting.innermost(
        ops.start_ns, ops.dur_ns, of_ops, nested, (start, thread), with_end=False
    )
    process = coded(pack([api.source, api.pid]))[1]
    begin, end = _windows(trace, of_calls)
    begin, end = begin[end != NULL], end[end != NULL]
    capturing = np.isin(thread, of_calls[begin])
    found = []
    for first, last in zip(begin.tolist(), end.tolist(), strict=True):
        mine = (start >= api.start_ns[first]) & (start < api.start_ns[last])
        mine &= np.where(capturing, thread == of_calls[first], process[rows] == process[first])
        if mine.any():
            kernel = api.kernel[rows[mine]].astype(np.int64)
            found.append(Capture(recorded, kernel, op[mine], int(api.start_ns[first])))
    return tuple(found)


def ran_nothing(trace: Trace) -> Mask:
    """Which operators ran nothing on a device, since they began while a graph was captured and all
    that they launched went into it.
    """
    nothing = np.zeros(len(trace.ops), np.bool_)
    if not call_names.matching(trace.strings, trace.api, call_names.CAPTURE_BEGIN).any():
        return nothing
    captures = captured_graphs(trace)
    for capture in captures:
        inside = trace.ops.start_ns >= capture.begin_ns
        nothing |= capture.recorded.around(capture.op) & inside
    if nothing.any():
        ran = np.concatenate((trace.kernels.op, trace.copies.op)).astype(np.int64)
        nothing &= ~captures[0].recorded.around(ran)
    return nothing


def captured_calls(trace: Trace) -> Mask:
    """Calls from the begin of a stream's capture on their thread up to its end; up to the thread's
    last call where it does not end in the trace.
    """
    api = trace.api
    captured = np.zeros(len(api), np.bool_)
    if not call_names.matching(trace.strings, api, call_names.CAPTURE_BEGIN).any():
        return captured
    thread = coded(pack([api.source, api.pid, api.tid]))[1]
    begin, end = _windows(trace, thread)
    order = np.lexsort((api.start_ns, thread))
    place = np.empty(len(api), np.int64)
    place[order] = np.arange(len(api))
    beyond = np.searchsorted(thread[order], thread[begin], side="right")
    change = np.zeros(len(api) + 1, np.int64)
    change[place[begin]] += 1
    np.add.at(change, np.where(end == NULL, beyond, place[end]), -1)
    captured[order] = np.cumsum(change[:-1]) > 0
    return captured


def _windows(trace: Trace, thread: I64) -> tuple[I64, I64]:
    """The calls that begin captures, in order of time, and those that end them on the same
    thread, NULL where none does in the trace.

    Captures inside of another one are part of it; an end without a begin ends nothing.
    """
    api = trace.api
    begin = call_names.matching(trace.strings, api, call_names.CAPTURE_BEGIN)
    rows = np.flatnonzero(begin | call_names.matching(trace.strings, api, call_names.CAPTURE_END))
    rows = rows[np.lexsort((api.start_ns[rows], thread[rows]))]
    first, last = [], []
    depth, of = 0, NULL
    for row, opens in zip(rows.tolist(), begin[rows].tolist(), strict=True):
        if thread[row] != of:
            depth, of = 0, int(thread[row])
        depth = max(depth + (1 if opens else -1), 0)
        if opens and depth == 1:
            first.append(row)
            last.append(NULL)
        elif not depth and last and thread[first[-1]] == of and last[-1] == NULL:
            last[-1] = row
    begins, ends = np.array(first, np.int64), np.array(last, np.int64)
    order = np.argsort(api.start_ns[begins], kind="stable")
    return begins[order], ends[order]


def _recorded(trace: Trace) -> Mask:
    """Which calls have a device record."""
    recorded = np.zeros(len(trace.api), np.bool_)
    for records in (trace.kernels, trace.copies):
        call = launches.join(trace, records).call
        recorded[call[call != NULL]] = True
    return recorded
