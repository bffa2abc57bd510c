"""A server's batches by kind: their number, tokens, and time on host and device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.batches.marks import STEP_RANGES, BatchMark, batch_of
from profharness.analysis.batches.records import Batches, BatchKind, BatchRow, SteadyBatches
from profharness.analysis.time.linking import link
from profharness.stats import intervals
from profharness.trace.columns.keys import coded, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Copies, Kernels, Marks, Trace
from profharness.trace.nesting import innermost, nest

_KINDS: tuple[BatchKind, ...] = ("prefill", "decode", "mixed")
_STEADY = 0.9
_PAUSE = 5
"""A pause of so many times the median time between the starts of batches ends a row of them."""


def batches(trace: Trace) -> Batches | None:
    """The batches of a trace; None where it has no marks of any. Where marks of both servers' kinds
    stand around the same work, those that count tokens are taken.
    """
    named = _named(trace)
    if not named:
        return None
    family = "execute" if any(one.family == "execute" for one in named.values()) else "step"
    codes = [code for code, one in named.items() if one.family == family]
    marks = trace.marks.take(np.flatnonzero(np.isin(trace.marks.name, codes)))
    marks = marks.take(np.argsort(marks.start_ns, kind="stable"))
    told = [named[code] for code in marks.name.tolist()]
    kind = np.array([_KINDS.index(one.kind) for one in told], np.int64)
    rows = []
    launched = _Launched.of(trace, marks, kind)
    for number, name in enumerate(_KINDS):
        members = [one for one in told if one.kind == name]
        if members:
            host_ns = int(marks.dur_ns[kind == number].sum())
            rows.append(_row(name, members, host_ns, launched.times(number)))
    return Batches(rows=tuple(rows), steady=_steady(marks, told))


def _named(trace: Trace) -> dict[int, BatchMark]:
    """By code, the names that stand for batches."""
    marks = trace.marks
    found = {}
    for code in np.unique(marks.name[marks.kind != trace.strings.find("frame")]).tolist():
        batch = None if code == NULL else batch_of(trace.strings[code])
        if batch is not None:
            found[code] = batch
    return found


@dataclass(frozen=True, eq=False)
class _Launched:
    """Device records that were launched inside of batches: the kind of batch (NULL for none), and
    the device and span of each.
    """

    kind: I64
    device: I64
    spans: intervals.Intervals

    @classmethod
    def of(cls, trace: Trace, marks: Marks, kind: I64) -> _Launched:
        tables = (trace.kernels, trace.copies)
        parts = [_kind_of(trace, table, marks, kind) for table in tables]
        device, start, dur = (
            np.concatenate([getattr(table, name).astype(np.int64) for table in tables])
            for name in ("device", "start_ns", "dur_ns")
        )
        return cls(np.concatenate(parts), device, intervals.lasting(start, np.maximum(dur, 0)))

    def times(self, kind: int) -> tuple[int, int]:
        """The time of all records of a kind, and that in which a device did any of them."""
        mine = self.kind == kind
        start, end = self.spans.start[mine], self.spans.end[mine]
        if not len(start):
            return 0, 0
        since = int(start.min())
        behind = coded(self.device[mine])[1] * (int(end.max()) - since + 1)
        busy = intervals.merge(intervals.of(start - since + behind, end - since + behind))
        return int((end - start).sum()), busy.total


def _kind_of(trace: Trace, table: Kernels | Copies, marks: Marks, kind: I64) -> I64:
    """The kind of the batch that each record was launched in: around the start of its call."""
    found = np.full(len(table), NULL, np.int64)
    call = link(trace, table).api
    linked = np.flatnonzero(call != NULL)
    if not len(linked):
        return found
    api, rows = trace.api, call[linked]
    columns = ((marks.source, api.source), (marks.pid, api.pid), (marks.tid, api.tid))
    thread = coded(pack([np.concatenate((one, other[rows])) for one, other in columns]))[1]
    of_marks, of_calls = thread[: len(marks)], thread[len(marks) :]
    nested = nest(marks.start_ns, marks.dur_ns, of_marks)
    around = innermost(
        marks.start_ns,
        marks.dur_ns,
        of_marks,
        nested,
        (api.start_ns[rows], of_calls),
        with_end=False,
    )
    found[linked] = np.append(kind, NULL)[around]
    return found


def _row(
    kind: BatchKind, members: Sequence[BatchMark], host_ns: int, device: tuple[int, int]
) -> BatchRow:
    return BatchRow(
        kind=kind,
        batches=len(members),
        sequences=sum(one.sequences for one in members) / len(members),
        prefill_tokens=_total(one.prefill_tokens for one in members),
        decode_tokens=_total(one.decode_tokens for one in members),
        host_ns=host_ns,
        device_ns=device[0],
        busy_ns=device[1],
        step_range=STEP_RANGES[members[0].family][kind],
    )


def _total(tokens: Iterator[int | None]) -> int | None:
    """The sum; None where one is not known."""
    listed = list(tokens)
    known = [count for count in listed if count is not None]
    return sum(known) if len(known) == len(listed) else None


def _steady(marks: Marks, told: Sequence[BatchMark]) -> SteadyBatches | None:
    """The longest row of full batches; None where no batch continues a sequence."""
    most = max(one.continued for one in told)
    if not most:
        return None
    start, end = marks.start_ns, marks.start_ns + marks.dur_ns
    between = np.diff(start)
    paused = between > _PAUSE * np.median(between) if len(between) else between > 0
    first, best = 0, (0, 0)
    for at, one in enumerate(told):
        full = one.continued >= _STEADY * most
        if not full or (at and paused[at - 1]):
            first = at if full else at + 1
        if full and at + 1 - first > best[1] - best[0]:
            best = first, at + 1
    members = told[best[0] : best[1]]
    tokens = [
        None
        if one.decode_tokens is None or (one.prefill_tokens is None and one.kind != "decode")
        else one.decode_tokens + (one.prefill_tokens or 0)
        for one in members
    ]
    return SteadyBatches(
        first=best[0],
        end=best[1],
        sequences=sum(one.sequences for one in members) / len(members),
        tokens=_total(iter(tokens)),
        span_ns=int(end[best[0] : best[1]].max() - start[best[0]]),
    )
