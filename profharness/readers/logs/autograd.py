"""The export of torch.autograd.profiler of before Kineto (`use_kineto=False`, torch 1.0 to 1.8 and
forks): operators of the process `CPU functions`, device time of the process `CUDA functions`.

An operator stands before what it launched. Where the profiler measured with events of CUDA, each
operator has one span on the device, which is named after it and holds those of the operators inside
of it; where CUPTI recorded, the spans are kernels. Times are µs since the profiler began, by a
clock that the file does not name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.decimals import microseconds
from profharness.readers.bytes.json_stream import EventStream
from profharness.readers.kineto.records import NOTHING, Number
from profharness.readers.kineto.values import integers
from profharness.readers.left_out import UNTIMED, left_out
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace import nesting
from profharness.trace.columns.build import Growing, Pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I64,
    Device,
    Kernels,
    Ops,
    Problem,
    Source,
    Stream,
    Strings,
    Trace,
)
from profharness.trace.wanted import Wanted

name = "torch-autograd"

_HOST, _DEVICE = "CPU functions", "CUDA functions"
_PROCESS = re.compile(rb'"pid"\s*:\s*"(?:CPU|CUDA) functions"')
_ARROWS = ("s", "f")
_COLUMNS = ("start", "dur", "name", "tid", "at")


class Event(msgspec.Struct, gc=False):
    """One event: a span (`X`), or an arrow from an operator to its kernel (`s` and `f`)."""

    ph: str = ""
    name: str | None = ""
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    pid: Number = NULL
    tid: Number = NULL


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """A list whose events are of one of the profiler's two processes."""
    return (
        head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and _PROCESS.search(head) is not None
    )


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one file: operators and kernels. Raises InputError when nothing in the file is
    usable.
    """
    return read_blocks(path, wanted=wanted)


def read_blocks(
    path: Path, *, wanted: Wanted = Wanted.ALL, block_bytes: int = BLOCK_BYTES
) -> Trace:
    """`read` with blocks of a size of your choice. The result does not depend on it."""
    rows = _Rows()
    stream = EventStream(path, Event, block_bytes)
    for batch in stream:
        rows.add(batch)
        del batch  # before the next is decoded
    operators, spans = rows.taken(_HOST), rows.taken(_DEVICE)
    is_outer = _holds_others(spans, operators["name"])
    kept = {name: column[~is_outer] for name, column in spans.items()}
    tids = list(rows.tids)
    numbers: Pool[str] = Pool()
    device = numbers.codes(tid if tid.isdigit() else "0" for tid in tids)
    streams: Pool[str] = Pool()
    queue = np.array([NULL if tid.isdigit() else streams[tid] for tid in tids], np.int64)
    kernels = Kernels.build(
        start_ns=kept["start"],
        dur_ns=kept["dur"],
        name=kept["name"],
        device=device[kept["tid"]] if tids else NULL,
        stream=queue[kept["tid"]] if tids else NULL,
        op=_launched_by(operators, kept) if wanted.host else NULL,
        source=0,
    )
    return Trace(
        sources=(Source(path=str(path), format=name, has_host_calls=False),),
        strings=rows.strings,
        devices=tuple(Device(index=number) for number in numbers),
        streams=tuple(Stream(numbers["0"], one.removeprefix("stream")) for one in streams),
        kernels=kernels,
        ops=_ops(operators) if wanted.host else Ops.empty(),
        problems=(*stream.problems(), *_problems(path, rows, int(is_outer.sum()))),
    )


class _Rows:
    """The rows of one file as they grow. `tids` are the threads of the device's process; `left_out`
    counts what became no row.
    """

    def __init__(self) -> None:
        self.strings = Strings()
        self.tids: Pool[str] = Pool()
        self.left_out: Counter[str] = Counter()
        self.untimed = 0
        self._tables = {process: Growing(*_COLUMNS) for process in (_HOST, _DEVICE)}
        self._names: Pool[str] = Pool(self.strings.code)
        self._events = 0

    def add(self, batch: Sequence[Event]) -> None:
        placed = list(enumerate(batch, self._events))
        self._events += len(batch)
        for process, table in self._tables.items():
            chosen = [(at, e) for at, e in placed if e.pid == process and e.ph == "X"]
            start = microseconds([e.ts for _, e in chosen])
            dur = microseconds([e.dur for _, e in chosen])
            valid = start.valid & dur.valid & (dur.ns >= 0)
            self.untimed += len(chosen) - int(valid.sum())
            chosen = list(compress(chosen, valid))
            events = [e for _, e in chosen]
            tids = (
                self.tids.codes(str(e.tid) for e in events)
                if process == _DEVICE
                else integers([e.tid for e in events])
            )
            table.add(
                len(events),
                start=start.ns[valid],
                dur=dur.ns[valid],
                name=self._names.codes(e.name or "" for e in events),
                tid=tids,
                at=[at for at, _ in chosen],
            )
        self.left_out.update(
            f"ph={e.ph}" if e.pid in self._tables else f"pid={e.pid}"
            for e in batch
            if (e.pid not in self._tables or e.ph != "X") and e.ph not in _ARROWS
        )

    def taken(self, process: str) -> dict[str, I64]:
        """The columns of a process, which are used up."""
        table = self._tables[process]
        return {column: table.take(column) for column in _COLUMNS}


def _holds_others(spans: dict[str, I64], operators: I64) -> npt.NDArray[np.bool_]:
    """Which spans are of an operator and hold one of an operator inside of it: their time is that
    one's.
    """
    nested = nesting.nest(spans["start"], spans["dur"], spans["tid"])
    holds = np.zeros(len(nested.parent), np.bool_)
    holds[nested.parent[nested.parent != NULL]] = True
    return holds & np.isin(spans["name"], operators)


def _launched_by(operators: dict[str, I64], spans: dict[str, I64]) -> I64:
    """The operator that stands last before each span; NULL where the span has the name of
    another.
    """
    row = np.searchsorted(operators["at"], spans["at"]) - 1
    if not len(operators["at"]):
        return row
    fits = (row >= 0) & (
        (operators["name"][row] == spans["name"]) | ~np.isin(spans["name"], operators["name"])
    )
    launched: I64 = np.where(fits, row, NULL)
    return launched


def _ops(operators: dict[str, I64]) -> Ops:
    start, dur, tid = operators["start"], operators["dur"], operators["tid"]
    return Ops.build(
        start_ns=start,
        dur_ns=dur,
        name=operators["name"],
        tid=tid,
        depth=nesting.nest(start, dur, tid).depth,
        source=0,
    )


def _problems(path: Path, rows: _Rows, outer: int) -> Iterator[Problem]:
    if rows.untimed:
        yield Problem("warning", str(path), rows.untimed, UNTIMED)
    if outer:
        yield Problem(
            "info",
            str(path),
            outer,
            "times of operators on the device hold those of operators inside of them: they count "
            "once, with the innermost",
        )
    yield from left_out(str(path), rows.left_out)
