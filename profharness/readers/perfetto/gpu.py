"""GPU events of a Perfetto trace (GpuRenderStageEvent) as kernels and copies, as our own writer and
other typed writers give them.

Grids are in workgroups. A stage called copy or fill makes a copy; everything else is a kernel.
Registers and static LDS stand in the interned kernel, the rest in the launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from profharness.readers.bytes.proto_scan import FIXED64, I64, LENGTH, VARINT, Fields, Mask, scan
from profharness.readers.perfetto.events import ARG_NAMES, CONTEXTS, KERNELS, NAMES, SPECIFICATIONS
from profharness.readers.perfetto.names import Interned
from profharness.readers.perfetto.packets import GPU_EVENT, GPU_INFO, SYSTEM_INFO, Packets
from profharness.trace.columns.build import per_text
from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL, concat
from profharness.trace.kernel_figures import FILL, OF_PEAK
from profharness.trace.model import F64, Copies, Counters, Device, Kernels, Stream, Strings

_ID, _DURATION, _CONTEXT, _GPU, _QUEUE, _STAGE, _KERNEL, _NAME, _LAUNCH = (
    1,
    2,
    5,
    11,
    13,
    14,
    19,
    20,
    21,
)
_GRID, _GROUP, _ARGS, _INT, _DOUBLE, _STATIC_ARGS, _CONTEXT_PID = 1, 2, 3, 3, 5, 5, 2
_FIGURES = {
    "registers_per_thread": "vgpr",
    "accum_vgpr": "accum_vgpr",
    "sgpr": "sgpr",
    "shared_mem_static": "lds_bytes",
    "shared_mem_dynamic": "lds_dynamic_bytes",
    "graph": "graph",
    "scratch_bytes": "scratch_bytes",
}
_CHUNK = 1 << 15
_LABELS = ("device", "stream", "bytes", *_FIGURES)
_COPY_STAGES = ("copy", "fill")
_STREAM_NAME = re.compile(r"(?:^|· )(?:stream|queue) (.+)$")
_QUEUE_OF_STREAM = re.compile(r"queue \d+ \((stream .+)\)$")
_DIRECTION = re.compile(r"([HDPA])to([HDPA])|\b(h2d|d2h|d2d|p2p|h2h)\b")


@dataclass(frozen=True, eq=False)
class GpuTables:
    """Device work and its places; `kernel_ids` and `copy_ids` are the events' ids, which launching
    calls name.
    """

    kernels: Kernels
    copies: Copies
    counters: Counters
    devices: tuple[Device, ...]
    streams: tuple[Stream, ...]
    kernel_ids: I64
    copy_ids: I64


@dataclass(frozen=True, eq=False)
class _Args:
    """Named figures of messages: the message, the name (code), and the value."""

    row: I64
    name: I64
    integer: I64
    figure: F64

    def column(self, name: int, rows: int) -> I64:
        out = np.full(rows, NULL, np.int64)
        chosen = (self.name == name) & (self.integer != NULL)
        out[self.row[chosen]] = self.integer[chosen]
        return out


@dataclass(frozen=True, eq=False)
class _File:
    """What the events of a file refer to; `times` are per packet."""

    packets: Packets
    interned: Interned
    times: I64
    strings: Strings


@dataclass(frozen=True, eq=False)
class _Part:
    """Some of a file's GPU events, without their places."""

    kernels: Kernels
    copies: Copies
    counters: Counters
    is_copy: Mask
    event: I64
    machine: I64
    gpu: I64
    pid: I64
    queue: I64


def read_gpu(packets: Packets, interned: Interned, times: I64, strings: Strings) -> GpuTables:
    """All GPU events; `times` are per packet. A part at a time, since what is scanned takes far
    more room than what is kept.
    """
    rows = packets.of_kind(GPU_EVENT)
    file = _File(packets, interned, times, strings)
    parts = [_part(file, rows[at : at + _CHUNK]) for at in range(0, max(len(rows), 1), _CHUNK)]
    is_copy, event, machine, gpu, pid, queue = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("is_copy", "event", "machine", "gpu", "pid", "queue")
    )
    places = _Places(file, (machine, gpu), (queue, pid))
    columns = {"device": places.device, "stream": places.stream, "host": places.host}
    kernels = concat([part.kernels for part in parts]).with_columns(
        **{name: column[~is_copy] for name, column in columns.items()}
    )
    copies = concat([part.copies for part in parts]).with_columns(
        **{name: column[is_copy] for name, column in columns.items()}
    )
    first = np.cumsum([0, *(len(part.kernels) for part in parts)])
    counters = concat(
        [
            part.counters.with_columns(kernel=part.counters.kernel + before)
            for part, before in zip(parts, first[:-1], strict=True)
        ]
    )
    return GpuTables(
        kernels, copies, counters, places.devices, places.streams, event[~is_copy], event[is_copy]
    )


def _part(file: _File, rows: I64) -> _Part:
    packets, interned, strings = file.packets, file.interned, file.strings
    fields, count = packets.payload(rows), len(rows)
    launch = fields.pick(_LAUNCH, LENGTH)
    inner = scan(packets.data, launch.start, launch.end)
    args = _args(packets, interned, inner.pick(_ARGS, LENGTH), launch.row, rows)
    given = {
        label: args.column(strings.find(label), count)
        if strings.find(label) != NULL
        else np.full(count, NULL, np.int64)
        for label in _LABELS
    }
    static = _static(packets, interned, rows, fields.last(_KERNEL, count), strings)
    stage = interned.names(rows, SPECIFICATIONS, fields.last(_STAGE, count))
    is_copy = np.isin(
        stage, [strings.find(name) for name in _COPY_STAGES if strings.find(name) != NULL]
    )
    pid = _pids(packets, interned.find(rows, CONTEXTS, fields.last(_CONTEXT, count)), interned)
    shared: dict[str, Any] = {
        "start_ns": file.times[rows],
        "dur_ns": np.maximum(fields.last(_DURATION, count), 0),
        "pid": pid,
        "name": interned.names(rows, NAMES, fields.last(_NAME, count)),
    }
    grid, group = (
        _dim3(packets, inner.pick(number, LENGTH), launch.row, count) for number in (_GRID, _GROUP)
    )
    has_grid = (grid > 0).all(axis=1)
    figures: dict[str, Any] = {
        column: np.where(given[label] != NULL, given[label], static[label])
        for label, column in _FIGURES.items()
    }
    kernels = Kernels.build(
        **shared,
        **figures,
        workgroups=np.where(has_grid, grid.prod(axis=1), NULL),
        source=0,
        workgroup_count_x=grid[:, 0],
        workgroup_count_y=grid[:, 1],
        workgroup_count_z=grid[:, 2],
        workgroup_size_x=group[:, 0],
        workgroup_size_y=group[:, 1],
        workgroup_size_z=group[:, 2],
    )
    copies = Copies.build(
        **shared, bytes=given["bytes"], kind=_copy_kinds(strings, shared["name"], stage), source=0
    )
    return _Part(
        kernels.take(~is_copy),
        copies.take(is_copy),
        _counters(args, ~is_copy, strings),
        is_copy,
        fields.last(_ID, count),
        packets.machine[rows],
        fields.last(_GPU, count),
        pid,
        interned.names(rows, SPECIFICATIONS, fields.last(_QUEUE, count)),
    )


def _args(packets: Packets, interned: Interned, given: Fields, launch: I64, rows: I64) -> _Args:
    inner = scan(packets.data, given.start, given.end)
    count = len(given.row)
    event = launch[given.row]
    integer, figure = np.full(count, NULL, np.int64), np.full(count, np.nan)
    whole, double = inner.pick(_INT, VARINT), inner.pick(_DOUBLE, FIXED64)
    integer[whole.row] = whole.value.view(np.int64)
    figure[double.row] = double.value.view(np.float64)
    return _Args(
        event, interned.names(rows[event], ARG_NAMES, inner.last(1, count)), integer, figure
    )


def _static(
    packets: Packets, interned: Interned, rows: I64, kernel: I64, strings: Strings
) -> dict[str, I64]:
    """Figures that stand in interned kernels, per event."""
    entry = interned.find(rows, KERNELS, kernel)
    used, place = np.unique(entry[entry != NULL], return_inverse=True)
    entries = scan(packets.data, interned.start[used], interned.end[used]).pick(
        _STATIC_ARGS, LENGTH
    )
    static_args = _args(packets, interned, entries, np.arange(len(used)), interned.packet[used])
    out = {}
    for label in _FIGURES:
        column = np.full(len(rows), NULL, np.int64)
        code = strings.find(label)
        if len(used) and code != NULL:
            column[entry != NULL] = static_args.column(code, len(used))[place]
        out[label] = column
    return out


def _dim3(packets: Packets, given: Fields, launch: I64, rows: int) -> I64:
    out = np.full((rows, 3), NULL, np.int64)
    inner = scan(packets.data, given.start, given.end)
    for axis in range(3):
        out[launch[given.row], axis] = inner.last(axis + 1, len(given.row), 1)
    return out


def _copy_kinds(strings: Strings, name: I64, stage: I64) -> I64:
    codes = {
        kind: strings.code(kind) for kind in ("h2d", "d2h", "d2d", "p2p", "h2h", "fill", "unknown")
    }
    by_name = per_text(strings, name, lambda text: codes.get(_direction(text), codes["unknown"]))
    return np.where(stage == codes["fill"], codes["fill"], by_name)


def _direction(name: str) -> str:
    match = _DIRECTION.search(name)
    if match is None:
        return ""
    return match[3] or f"{match[1]}2{match[2]}".lower().replace("a", "d")


def _counters(args: _Args, is_kernel: Mask, strings: Strings) -> Counters:
    """Hardware counters: launch arguments that are floating-point numbers, but for those that an
    analysis added.
    """
    position = np.cumsum(is_kernel) - 1
    told = [strings.find(name) for name in (FILL, OF_PEAK)]
    chosen = np.flatnonzero(
        ~np.isnan(args.figure)
        & is_kernel[args.row]
        & (args.name != NULL)
        & ~np.isin(args.name, told)
    )
    return Counters.build(
        len(chosen),
        kernel=position[args.row[chosen]],
        name=args.name[chosen],
        value=args.figure[chosen],
        source=0,
    )


def _pids(packets: Packets, context: I64, interned: Interned) -> I64:
    """The process of each event's context (an entry, NULL for none)."""
    pid = np.full(len(context), NULL, np.int64)
    named = context != NULL
    used, place = np.unique(context[named], return_inverse=True)
    if len(used):
        pid[named] = scan(packets.data, interned.start[used], interned.end[used]).last(
            _CONTEXT_PID, len(used), NULL
        )[place]
    return pid


class _Places:
    """Devices, streams and hosts of the events: by machine and gpu, and by queue and process."""

    def __init__(self, file: _File, where: tuple[I64, I64], lane: tuple[I64, I64]) -> None:
        named = hosts(file.packets)
        described = gpu_infos(file.packets, named)
        first, self.device = _distinct(where)
        pairs = [(int(where[0][row]), int(where[1][row])) for row in first]
        self.devices = tuple(
            described.get(pair, Device(index=str(pair[1]), host=named.get(pair[0], "")))
            for pair in pairs
        )
        code = {machine: file.strings.code(text) for machine, text in named.items()}
        self.host = np.array([code.get(machine, NULL) for machine, _ in pairs], np.int64)[
            self.device
        ]
        strings, pid = file.strings, lane[1]
        stream = per_text(strings, lane[0], lambda text: strings.code(_without_queue(text)))
        queue = np.where(lane[0] == NULL, NULL, stream)
        first, self.stream = _distinct((self.device, queue, pid))
        self.streams = tuple(
            Stream(
                int(self.device[row]), _stream_name(file.strings[int(queue[row])]), int(pid[row])
            )
            for row in first
        )


def _distinct(columns: Sequence[I64]) -> tuple[I64, I64]:
    """The first row of each distinct row, in order of the rows, and the place of each row among
    them.
    """
    _, first, place = np.unique(pack(columns), return_index=True, return_inverse=True)
    return first.astype(np.int64), place.astype(np.int64)


def _without_queue(queue: str) -> str:
    """What names the stream alone, which may have run on several hardware queues."""
    return _QUEUE_OF_STREAM.sub(r"\1", queue)


def _stream_name(queue: str) -> str:
    match = _STREAM_NAME.search(queue)
    return match[1] if match else queue


def hosts(packets: Packets) -> dict[int, str]:
    """Host names by machine, from the SystemInfo packets that state one."""
    rows = packets.of_kind(SYSTEM_INFO)
    names = packets.payload(rows).pick(17, LENGTH)
    return {
        int(packets.machine[rows[row]]): packets.data[start:end]
        .tobytes()
        .decode("utf-8", "replace")
        for row, start, end in zip(
            names.row.tolist(), names.start.tolist(), names.end.tolist(), strict=True
        )
    }


def gpu_infos(packets: Packets, named: dict[int, str]) -> dict[tuple[int, int], Device]:
    """Devices by machine and number, from the GpuInfo packets."""
    rows = packets.of_kind(GPU_INFO)
    gpus = packets.payload(rows).pick(1, LENGTH)
    inner = scan(packets.data, gpus.start, gpus.end)
    seen: dict[int, int] = {}
    devices = {}
    for position, row in enumerate(gpus.row.tolist()):
        machine = int(packets.machine[rows[row]])
        number = seen[machine] = seen.get(machine, NULL) + 1
        fields = inner.take(inner.row == position)
        texts = {
            int(n): packets.data[start:end].tobytes().decode("utf-8", "replace")
            for n, start, end in zip(
                fields.number.tolist(), fields.start.tolist(), fields.end.tolist(), strict=True
            )
            if n in (2, 3)
        }
        extra = _extra(packets, fields.pick(6, LENGTH))
        units = extra.get("compute units", "")
        devices[machine, number] = Device(
            index=extra.get("index in the tool", str(number)),
            host=named.get(machine, ""),
            identity=extra.get("identity", ""),
            name=texts.get(3, ""),
            vendor=texts.get(2, ""),
            compute_units=int(units) if units.isdecimal() else None,
        )
    return devices


def _extra(packets: Packets, given: Fields) -> dict[str, str]:
    inner = scan(packets.data, given.start, given.end)
    pairs: dict[int, dict[int, str]] = {}
    for row, number, start, end in zip(
        inner.row.tolist(),
        inner.number.tolist(),
        inner.start.tolist(),
        inner.end.tolist(),
        strict=True,
    ):
        pairs.setdefault(row, {})[number] = (
            packets.data[start:end].tobytes().decode("utf-8", "replace")
        )
    return {pair.get(1, ""): pair.get(2, "") for pair in pairs.values()}
