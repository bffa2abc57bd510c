"""The tables of a trace from the rows of one Kineto file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from profharness.readers.bytes.zero_times import times_of_zero
from profharness.readers.kineto import allocator, counter_series
from profharness.readers.kineto import comms as kineto_comms
from profharness.readers.kineto import links as kineto_links
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.header import Header
from profharness.readers.kineto.links import Calls
from profharness.readers.kineto.places import Origin, Places
from profharness.readers.kineto.twins import twins
from profharness.readers.own.marks import parse_mark
from profharness.trace import nesting
from profharness.trace.columns.build import Growing, per_text
from profharness.trace.columns.table import NULL, concat
from profharness.trace.model import (
    I64,
    Allocations,
    Api,
    Copies,
    Counters,
    Device,
    Kernels,
    Marks,
    Ops,
    Samples,
    Stream,
    Strings,
)
from profharness.trace.wanted import Wanted

_DIRECTION = re.compile(r"\b([HDPA])to([HDPA])\b")
_KINDS = ("h2d", "d2h", "d2d", "p2p", "h2h")
_DOMAINS = (
    ("hip", "hip"),
    ("cuda", "cuda"),
    ("cu", "cuda_driver"),
    ("hsa_", "hsa"),
    ("nccl", "rccl"),
    ("rccl", "rccl"),
)


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of one file, and counts of what could not be known."""

    kernels: Kernels
    copies: Copies
    api: Api
    ops: Ops
    marks: Marks
    devices: tuple[Device, ...]
    streams: tuple[Stream, ...]
    has_calls: bool
    is_rocm: bool
    without_geometry: int
    swapped: int
    sizes_dropped: int
    twins: int
    counters: Counters
    counted: int
    samples: Samples
    allocations: Allocations
    unplaced: int
    unstated: int


def build_tables(rows: KinetoRows, header: Header, origin: Origin) -> Tables:
    """All tables. The rows' columns are used up."""
    strings = rows.strings
    shared = {
        "host": strings.code(origin.host) if origin.host else NULL,
        "source": 0,
        "rank": NULL if origin.rank is None else origin.rank,
    }
    calls, call_sizes, dynamic_lds = _calls(rows, origin)
    domain = _domains(strings, calls.name)
    api = _api(calls, rows, domain, shared) if rows.wanted.host else Api.empty()
    timed = len(rows.kernels)
    if len(rows.ranges):
        rows.ranges.add_kernels(rows.kernels, strings, api)
    ops, nested = _ops(rows, origin, shared)
    is_rocm = (
        header.is_rocm or rows.has_dispatch_kind or bool(np.any(domain == strings.find("hip")))
    )
    vendor = "amd" if is_rocm else "nvidia" if bool(np.any(domain == strings.find("cuda"))) else ""
    held = allocator.held(rows, is_rocm=is_rocm)
    rocm = kineto_links.Rocm(strings, header.most_threads) if is_rocm else None
    builder = _Builder(rows, origin, calls, Places(rows), shared)
    kernels, swapped = builder.kernels(ops, nested, dynamic_lds, rocm)
    copies, dropped = builder.copies(ops, nested, call_sizes, is_rocm=is_rocm)
    series = counter_series.samples(rows.series, origin.base_ns, builder.places.device)
    return Tables(
        kernels=kernels,
        copies=copies,
        api=api,
        ops=ops,
        marks=_marks(rows, origin, shared),
        devices=builder.places.devices(header, origin, vendor),
        streams=builder.places.streams(),
        has_calls=len(domain) > 0,
        is_rocm=is_rocm,
        without_geometry=0
        if rows.wanted is Wanted.TIMES
        else int((kernels.workgroups[:timed] == NULL).sum()),
        swapped=swapped,
        sizes_dropped=dropped if rows.wanted.host else 0,
        twins=twins(kernels if timed == len(kernels) else kernels.take(np.arange(timed))),
        counters=rows.ranges.counters(strings, timed),
        counted=len(rows.ranges),
        samples=concat([held.samples(strings, builder.places, origin), series]),
        allocations=held.allocations(ops, nested, builder.places, origin, shared["host"]),
        unplaced=held.unplaced,
        unstated=held.unstated,
    )


def _api(calls: Calls, rows: KinetoRows, domain: I64, shared: dict[str, int]) -> Api:
    return Api.build(
        start_ns=calls.start,
        dur_ns=calls.dur,
        name=calls.name,
        pid=calls.pid,
        tid=calls.tid,
        correlation=calls.correlation,
        domain=domain,
        kernel=rows.calls.take("kernel"),
        **shared,
    )


@dataclass(frozen=True, eq=False)
class _Builder:
    """What kernels and copies are built from."""

    rows: KinetoRows
    origin: Origin
    calls: Calls
    places: Places
    shared: dict[str, int]

    def _process(self, launch: I64) -> I64:
        """The launching process of each record; where the call is missing, the only process of the
        file that has calls.
        """
        pids = np.unique(self.calls.pid)
        sole = pids[0] if len(pids) == 1 else NULL
        return _of_call(self.calls.pid, launch, sole)

    def _ids(self, correlation: I64) -> I64:
        """Ids of launches. 0 stands for none (roctracer wrote it on every kernel of RCCL), unless
        one call alone carries it.
        """
        if not (correlation == 0).any() or np.count_nonzero(self.calls.correlation == 0) == 1:
            return correlation
        return np.where(correlation == 0, NULL, correlation)

    def _times(self, take: Callable[[str], I64]) -> dict[str, Any]:
        """Starts and lengths of what ran on a device. Kineto writes a time of 0, which it makes
        relative to the base, as a start of 0; without a length it is none.
        """
        start, dur = take("start"), take("dur")
        lost = times_of_zero(start, dur)
        start = start + self.origin.base_ns
        return {"start_ns": np.where(lost, NULL, start) if lost.any() else start, "dur_ns": dur}

    def kernels(
        self,
        ops: Ops,
        nested: nesting.Nesting,
        dynamic_lds: I64,
        rocm: kineto_links.Rocm | None,
    ) -> tuple[Kernels, int]:
        """The kernels, and how many of them state their geometry in exchanged places."""
        take, strings = self.rows.kernels.take, self.rows.strings
        correlation, external = self._ids(take("correlation")), take("external")
        launch = kineto_links.launching_calls(self.calls, strings, correlation)
        op = kineto_links.operators(ops, nested, self.calls, launch, (external, correlation))
        stated, of_op = take("collective"), self.rows.ops.take("collective")
        triples = kineto_links.parse_triples(list(self.rows.geometry))
        geometry = kineto_links.geometry(
            (take("grid"), take("block")), self.calls, launch, triples, rocm
        )
        device = self.places.device(take("device"))
        kernels = Kernels.build(
            **self._times(take),
            name=take("name"),
            device=device,
            stream=self.places.stream(device, take("stream")),
            pid=self._process(launch),
            tid=_of_call(self.calls.tid, launch, NULL),
            correlation=correlation,
            workgroups=geometry.workgroups,
            workgroup_count_x=geometry.count[:, 0],
            workgroup_count_y=geometry.count[:, 1],
            workgroup_count_z=geometry.count[:, 2],
            workgroup_size_x=geometry.size[:, 0],
            workgroup_size_y=geometry.size[:, 1],
            workgroup_size_z=geometry.size[:, 2],
            vgpr=take("registers"),
            lds_bytes=take("shared"),
            graph=take("graph"),
            lds_dynamic_bytes=_of_call(dynamic_lds, launch, NULL),
            op=op,
            collective=np.where(stated == NULL, _of_call(of_op, op, NULL), stated),
            **self.shared,
        )
        return kernels, geometry.swapped

    def copies(
        self, ops: Ops, nested: nesting.Nesting, call_sizes: I64, *, is_rocm: bool
    ) -> tuple[Copies, int]:
        """The copies, and how many sizes were dropped.

        roctracer stamps one byte where it does not know the size: one byte is kept only if the call
        asked for it.
        """
        take, strings = self.rows.copies.take, self.rows.strings
        correlation = self._ids(take("correlation"))
        launch = kineto_links.launching_calls(self.calls, strings, correlation)
        recorded, asked = take("bytes"), _of_call(call_sizes, launch, NULL)
        doubtful = (recorded == 1) & (asked != 1) & is_rocm
        size = np.where((recorded == NULL) | doubtful, asked, recorded)
        name, device = take("name"), self.places.device(take("device"))
        kind = _copy_kinds(strings, name, take("fill"))
        source, target = self._ends(
            strings,
            kind,
            device,
            (self.places.device(take("from_device")), self.places.device(take("to_device"))),
        )
        copies = Copies.build(
            **self._times(take),
            kind=kind,
            name=name,
            bytes=size,
            device=device,
            src_device=source,
            dst_device=target,
            stream=self.places.stream(device, take("stream")),
            pid=self._process(launch),
            correlation=correlation,
            op=kineto_links.operators(
                ops, nested, self.calls, launch, (take("external"), correlation)
            ),
            **self.shared,
        )
        return copies, int((doubtful & (size == NULL)).sum())

    @staticmethod
    def _ends(strings: Strings, kind: I64, device: I64, stated: tuple[I64, I64]) -> tuple[I64, I64]:
        """Source and target device: as stated, else by the direction; a copy between two devices
        that states none has none.
        """
        reads = np.isin(kind, [strings.find(k) for k in ("d2h", "d2d")])
        writes = np.isin(kind, [strings.find(k) for k in ("h2d", "d2d", "fill")])
        source = np.where(stated[0] != NULL, stated[0], np.where(reads, device, NULL))
        return source, np.where(stated[1] != NULL, stated[1], np.where(writes, device, NULL))


def _calls(rows: KinetoRows, origin: Origin) -> tuple[Calls, I64, I64]:
    take = rows.calls.take
    calls = Calls(
        start=take("start") + origin.base_ns,
        dur=take("dur"),
        name=take("name"),
        pid=take("pid"),
        tid=take("tid"),
        correlation=take("correlation"),
        grid=take("grid"),
        block=take("block"),
    )
    return calls, take("bytes"), take("shared")


def _ops(rows: KinetoRows, origin: Origin, shared: dict[str, int]) -> tuple[Ops, nesting.Nesting]:
    take = rows.ops.take
    start, dur, pid, tid = take("start") + origin.base_ns, take("dur"), take("pid"), take("tid")
    nested = nesting.nest(start, dur, nesting.threads(pid, tid))
    return Ops.build(
        start_ns=start,
        dur_ns=dur,
        pid=pid,
        tid=tid,
        depth=nested.depth,
        name=take("name"),
        external=take("external"),
        shapes=take("shapes"),
        dtype=take("types"),
        concrete=take("concrete"),
        strides=take("strides"),
        sequence=take("sequence"),
        forward_tid=take("forward_tid"),
        **shared,
    ), nested


def _marks(rows: KinetoRows, origin: Origin, shared: dict[str, int]) -> Marks:
    collectives = kineto_comms.codes(
        rows.strings, rows.spoken, origin.groups, rows.marks.take("spoken")
    )
    marks = marks_from(rows.marks, rows.strings, origin.base_ns, shared, collectives)
    if not len(rows.frames):
        return marks
    take = rows.frames.take
    frames = Marks.build(
        start_ns=take("start") + origin.base_ns,
        dur_ns=take("dur"),
        name=take("name"),
        kind=rows.strings.code("frame"),
        pid=take("pid"),
        tid=take("tid"),
        **shared,
    )
    together = concat([marks, frames])
    return together.take(np.lexsort((-together.dur_ns, together.start_ns)))


def marks_from(
    rows: Growing,
    strings: Strings,
    base_ns: int,
    shared: dict[str, int],
    collective: I64 | int = NULL,
) -> Marks:
    """Marks from columns start, dur, name, pid, tid; in order of their start, the longer first.
    `collective` are codes in the order of the rows.
    """
    names, row = np.unique(rows.take("name"), return_inverse=True)
    parsed = [parse_mark(strings[int(code)]) for code in names]
    label, kind, point, items = (
        np.array(column, np.int64)[row] if parsed else np.zeros(0, np.int64)
        for column in (
            [strings.code(m.label) for m in parsed],
            [strings.code(m.kind) for m in parsed],
            [strings.code(m.point) if m.point else NULL for m in parsed],
            [m.items for m in parsed],
        )
    )
    marks = Marks.build(
        start_ns=rows.take("start") + base_ns,
        dur_ns=rows.take("dur"),
        name=label,
        kind=kind,
        point=point,
        items=items,
        pid=rows.take("pid"),
        tid=rows.take("tid"),
        collective=collective,
        **shared,
    )
    return marks.take(np.lexsort((-marks.dur_ns, marks.start_ns)))


def _of_call(column: I64, launch: I64, otherwise: int) -> I64:
    """The call's value for linked records."""
    return (
        np.where(launch != NULL, column[launch], otherwise)
        if len(column)
        else np.full(len(launch), otherwise, np.int64)
    )


def _domains(strings: Strings, names: I64) -> I64:
    codes = {
        domain: strings.code(domain) for domain in ("runtime", *(domain for _, domain in _DOMAINS))
    }
    return per_text(
        strings,
        names,
        lambda text: codes[
            next((d for prefix, d in _DOMAINS if text.startswith(prefix)), "runtime")
        ],
    )


def _copy_kinds(strings: Strings, names: I64, fill: I64) -> I64:
    """Kinds from names as "Memcpy HtoD (Pinned -> Device)"; arrays (A) are device memory."""
    codes = {kind: strings.code(kind) for kind in (*_KINDS, "fill", "unknown")}
    return np.where(
        fill == 1, codes["fill"], per_text(strings, names, lambda text: codes[_direction(text)])
    )


def _direction(name: str) -> str:
    match = _DIRECTION.search(name)
    if match is None:
        return "unknown"
    kind = f"{match[1]}2{match[2]}".lower().replace("a", "d")
    return kind if kind in _KINDS else "unknown"
