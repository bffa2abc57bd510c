"""The profile that onnxruntime writes at the end of a session: a list of events in whole
microseconds since its start.

Nodes are operators, never kernels, on any execution provider; `model_run` spans are ranges. Builds
with a GPU profiler add what ran on the device (onnxruntime_device.py). The absolute start is not in
the file: the sidecar has it where our hook made the file, else the clock is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import compress
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.decimals import microseconds
from profharness.readers.bytes.json_stream import EventStream
from profharness.readers.kineto.records import Number
from profharness.readers.kineto.values import integers
from profharness.readers.left_out import UNTIMED, left_out
from profharness.readers.logs.onnxruntime_device import DeviceArgs, DeviceRows, node_name
from profharness.readers.own import sidecar as sidecars
from profharness.readers.own.sidecar import Sidecar
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace import nesting
from profharness.trace.columns.build import Growing, Pool, text_pool
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I64,
    NODES,
    ClockDomain,
    Marks,
    Ops,
    Problem,
    Source,
    Strings,
    Trace,
)
from profharness.trace.wanted import Wanted

name = "onnxruntime"

MOST_EVENTS = 1_000_000
"""Events of the host that onnxruntime keeps of one session (`Profiler::global_max_num_events_`);
what ends later is not recorded. Records of the device are added behind that count.
"""
_CATEGORY = re.compile(rb'"cat"\s*:\s*"(?:Session|Node)"')
_RUN = "model_run"
_KERNEL = "Kernel"
_FENCES = ("_fence_before", "_fence_after")  # of older releases, around the kernel of each node
_NOTHING = msgspec.Raw(b"")


class NodeArgs(DeviceArgs, gc=False):
    """Arguments of a Node event, or of a record of the device. The shapes list holds one object per
    input: its element type and its dimensions.
    """

    op: str | None = msgspec.field(default="", name="op_name")
    provider: str | None = ""
    inputs: msgspec.Raw = msgspec.field(default=_NOTHING, name="input_type_shape")


class Event(msgspec.Struct, gc=False):
    """One event of the profile."""

    ph: str = ""
    cat: str | None = None
    name: str | None = ""
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING
    pid: Number = NULL
    tid: Number = NULL
    args: NodeArgs | None = None


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """A list whose events are of onnxruntime's categories."""
    return (
        head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and _CATEGORY.search(head) is not None
    )


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one file: nodes as `ops`, named by operator type, runs as `marks`, records of
    the device as `kernels` and `copies` of the nodes that launched them.

    `shapes` is the JSON text of the inputs' types and shapes. In a file whose sidecar has the role
    `marker`, the runs are markers, numbered in order. Raises InputError when nothing in the file is
    usable.
    """
    return read_blocks(path, wanted=wanted)


def read_blocks(
    path: Path, *, wanted: Wanted = Wanted.ALL, block_bytes: int = BLOCK_BYTES
) -> Trace:
    """`read` with blocks of a size of your choice. The result does not depend on it."""
    beside, problems = sidecars.load_or_report(path)
    rows = _Rows(Strings(), ops=wanted.host)
    stream = EventStream(path, Event, block_bytes)
    for batch in stream:
        rows.add(batch)
        del batch  # before the next is decoded
    base_ns = beside.start_ns or 0
    shared = {
        "host": rows.strings.code(beside.host) if beside.host else NULL,
        "source": 0,
        "rank": NULL if beside.rank is None else beside.rank,
    }
    marks = _marks(rows, base_ns, beside, shared)
    nodes = rows.nodes.take("node"), rows.nodes.take("at")
    worked = rows.device.tables(base_ns, rows.nodes_of, nodes, beside.host or "", shared)
    table = _ops(rows, base_ns, shared)
    pids = np.unique(np.concatenate((table.pid, marks.pid)))
    source = Source(
        path=str(path),
        format=name,
        clock=ClockDomain.UNKNOWN if beside.start_ns is None else ClockDomain.REALTIME,
        host=beside.host,
        rank=beside.rank,
        pid=int(pids[0]) if len(pids) == 1 else beside.pid,
        point=beside.point,
        has_host_calls=False,
        details=rows.details(),
    )
    return Trace(
        sources=(source,),
        strings=rows.strings,
        devices=worked.devices,
        streams=worked.streams,
        kernels=worked.kernels,
        copies=worked.copies,
        ops=table,
        marks=marks,
        problems=(*problems, *stream.problems(), *_problems(path, rows)),
    )


class _Rows:
    """The rows of one file as they grow, and counts of what was left out or repaired."""

    def __init__(self, strings: Strings, *, ops: bool) -> None:
        self.strings = strings
        self.wants_ops = ops
        self.nodes = Growing("start", "dur", "name", "pid", "tid", "shapes", "node", "at")
        self.runs = Growing("start", "dur", "pid", "tid")
        self.device = DeviceRows(strings)
        self.nodes_of: dict[str, dict[str, str]] = {}
        self.left_out: Counter[str] = Counter()
        self.untimed = 0
        self.of_host = 0
        self._events = 0
        self._names: Pool[str] = Pool(strings.code)
        self._texts = text_pool(strings)

    def add(self, batch: list[Event]) -> None:
        placed = list(enumerate(batch, self._events))
        self._events += len(batch)
        nodes = [
            (at, e)
            for at, e in placed
            if e.cat == "Node" and e.ph == "X" and not (e.name or "").endswith(_FENCES)
        ]
        worked = [(at, e) for at, e in placed if e.cat == _KERNEL and e.ph == "X"]
        runs = [
            (at, e) for at, e in placed if e.cat == "Session" and e.ph == "X" and e.name == _RUN
        ]
        self.of_host += sum(e.cat != _KERNEL for e in batch)
        self.left_out.update(
            f"{e.cat} {e.name}" if e.cat == "Session" else str(e.cat)
            for e in batch
            if (e.cat not in ("Node", _KERNEL) and e.name != _RUN) or e.ph != "X"
        )
        if fences := sum(e.cat == "Node" and (e.name or "").endswith(_FENCES) for e in batch):
            self.left_out["fences of nodes"] += fences
        if self.wants_ops and nodes:
            self._add(self.nodes, nodes, with_ops=True)
        if runs:
            self._add(self.runs, runs, with_ops=False)
        if worked:
            at, events, start, dur = self._timed(worked)
            args = [e.args or NodeArgs() for e in events]
            self.device.add([e.name or "" for e in events], args, start, dur, at)

    def details(self) -> tuple[tuple[str, str], ...]:
        """The execution providers that ran nodes, and the nodes of each by operator."""
        if not self.nodes_of:
            return ()
        counts = [
            (f"{NODES} {name}", Counter(nodes.values()).most_common())
            for name, nodes in sorted(self.nodes_of.items())
        ]
        return (
            ("providers", " ".join(sorted(self.nodes_of))),
            *((name, ", ".join(f"{op} {count}" for op, count in ops)) for name, ops in counts),
        )

    def _timed(self, placed: list[tuple[int, Event]]) -> tuple[list[int], list[Event], I64, I64]:
        """The events that have times: their places in the file, they, their starts and their
        durations. The others are counted.
        """
        events = [e for _, e in placed]
        start, dur = microseconds([e.ts for e in events]), microseconds([e.dur for e in events])
        valid = start.valid & dur.valid & (dur.ns >= 0)
        self.untimed += len(events) - int(valid.sum())
        at = [number for number, _ in compress(placed, valid)]
        return at, list(compress(events, valid)), start.ns[valid], dur.ns[valid]

    def _add(self, rows: Growing, placed: list[tuple[int, Event]], *, with_ops: bool) -> None:
        at, events, start, dur = self._timed(placed)
        columns: dict[str, npt.ArrayLike] = {
            "start": start,
            "dur": dur,
            "pid": integers([e.pid for e in events]),
            "tid": integers([e.tid for e in events]),
        }
        if with_ops:
            args = [e.args or NodeArgs() for e in events]
            for a, e in zip(args, events, strict=True):
                if a.provider:
                    self.nodes_of.setdefault(a.provider, {})[e.name or ""] = a.op or e.name or ""
            columns["name"] = self._names.codes(
                [a.op or e.name or "" for a, e in zip(args, events, strict=True)]
            )
            columns["shapes"] = self._texts.codes(map(bytes, [a.inputs for a in args]))
            columns["node"] = self.device.nodes.codes([node_name(e.name) for e in events])
            columns["at"] = at
        rows.add(len(events), **columns)


def _ops(rows: _Rows, base_ns: int, shared: dict[str, int]) -> Ops:
    take = rows.nodes.take
    start, dur, pid, tid = take("start") + base_ns, take("dur"), take("pid"), take("tid")
    nested = nesting.nest(start, dur, nesting.threads(pid, tid))
    return Ops.build(
        start_ns=start,
        dur_ns=dur,
        name=take("name"),
        pid=pid,
        tid=tid,
        depth=nested.depth,
        shapes=take("shapes"),
        **shared,
    )


def _marks(rows: _Rows, base_ns: int, beside: Sidecar, shared: dict[str, int]) -> Marks:
    """Runs as ranges in order of their start; those of a marker session as
    `profharness.marker:<i>`.
    """
    start = rows.runs.take("start") + base_ns
    order = np.argsort(start, kind="stable")
    if beside.role == "marker":
        label = [rows.strings.code(f"profharness.marker:{i}") for i in range(len(order))]
        kind = rows.strings.code("marker")
    else:
        label, kind = [rows.strings.code(_RUN)] * len(order), rows.strings.code("range")
    columns = {column: rows.runs.take(column)[order] for column in ("dur", "pid", "tid")}
    return Marks.build(
        len(order),
        start_ns=start[order],
        dur_ns=columns["dur"],
        name=np.array(label, np.int32),
        kind=kind,
        pid=columns["pid"],
        tid=columns["tid"],
        **shared,
    )


def _problems(path: Path, rows: _Rows) -> Iterator[Problem]:
    if rows.of_host >= MOST_EVENTS:
        yield Problem(
            "error",
            str(path),
            1,
            f"the profile is cut off at the {MOST_EVENTS:,} events that onnxruntime keeps of one "
            "session: what the host did later is missing; profile fewer runs",
        )
    if rows.untimed:
        yield Problem("warning", str(path), rows.untimed, UNTIMED)
    yield from left_out(str(path), rows.left_out)
