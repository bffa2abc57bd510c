"""Kernels, copies and fills as one GpuRenderStageEvent each: the typed model of HIP and CUDA work.

Trace processor splits overlapping work of a queue over as many tracks as it needs, so every record
keeps its exact time, zero length included. What is equal for all launches of a kernel (registers,
static shared memory) is interned with its name; grid, workgroup, `device` and `stream` stand in
each launch, by the argument names that Perfetto's GPU plugins look for. The operator that launched
a kernel is interned with its name too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL
from profharness.trace.kernel_figures import KernelFigures
from profharness.trace.model import I64, Copies, Kernels, Strings, Trace
from profharness.writers.counter_args import CounterArgs
from profharness.writers.figure_args import LAUNCH
from profharness.writers.gpus import STAGES, Gpus, specification
from profharness.writers.groups import Groups, Ints, group_rows
from profharness.writers.interning import by_frequency, entry, intern_codes
from profharness.writers.output import Output
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import Field, Message, Same, integers, packets
from profharness.writers.protobuf.schema import (
    NEEDS_STATE,
    ComputeKernel,
    Interned,
    Launch,
    Packet,
    RenderStage,
)
from profharness.writers.protobuf.varints import Mask
from profharness.writers.tracks import Process, Registry, state_packets

CHUNK = 1 << 14  # rows encoded at a time: about 4 MB of slots, which stays in the processor's cache
_KERNEL, _COPY, _FILL = 1, 2, 3
_ARGS = (
    "device",
    "stream",
    "registers_per_thread",
    "shared_mem_static",
    "shared_mem_dynamic",
    "accum_vgpr",
    "sgpr",
    "scratch_bytes",
    "bytes",
    "operator",
)
_GRAPH = "graph"
# few traces have graphs by number: their argument is named where it is used, behind all counters
_ARG_IID = {name: iid for iid, name in enumerate(_ARGS, 1)} | {_GRAPH: 1 << 14}
_STATIC = (
    ("registers_per_thread", "vgpr"),
    ("shared_mem_static", "lds_bytes"),
    ("accum_vgpr", "accum_vgpr"),
    ("sgpr", "sgpr"),
    ("scratch_bytes", "scratch_bytes"),
)


@dataclass(frozen=True)
class DeviceWriter:
    """What both tables of device work need to be written. Event numbers up to `base` belong to
    other parts of the file; `figures` are what is told of the kernels.
    """

    trace: Trace
    registry: Registry
    gpus: Gpus
    out: Output
    base: int = 0
    figures: KernelFigures | None = None

    def write_kernels(self, process: I64, queue: I64) -> None:
        """All kernels; `process` and `queue` are positions per row. Event numbers are row + 1 after
        the base.
        """
        kernels = self.trace.kernels
        counters = CounterArgs.of(self.trace.counters, self.trace.strings)
        for owner, rows in _by_owner(kernels, process):
            part = kernels if len(rows) == len(kernels) else kernels.take(rows)
            names = intern_codes(Interned.EVENT_NAMES, part.name, self.trace.strings)
            operator = operator_names(part, self.trace)
            kinds = _kernel_kinds(part, operator)
            iids = by_frequency(kinds.sizes())
            interned = [
                *names.entries,
                *_kernel_entries(part, operator, (kinds, iids), self.trace.strings),
                *(
                    entry(Interned.COMPUTE_ARG_NAMES, len(_ARGS) + number, name)
                    for number, name in enumerate(counters.names, 1)
                ),
            ]
            if (part.graph > 0).any():
                interned.append(entry(Interned.COMPUTE_ARG_NAMES, _ARG_IID[_GRAPH], _GRAPH))
            figures = None if self.figures is None else self.figures.take(rows)
            if figures is not None:
                interned += LAUNCH.labels()
            shape = self._begin(owner, part.device, queue[rows], interned)
            columns = _KernelColumns(
                part, rows, rows + self.base + 1, names.iid, iids[kinds.of], counters, figures
            )
            self._chunks(len(part), shape, queue[rows], columns)

    def write_copies(self, process: I64, queue: I64) -> None:
        """All copies and fills; their event numbers follow those of the kernels."""
        copies = self.trace.copies
        fill = self.trace.strings.find("fill")
        for owner, rows in _by_owner(copies, process):
            part = copies.take(rows)
            names = intern_codes(
                Interned.EVENT_NAMES,
                np.where(part.name == NULL, part.kind, part.name),
                self.trace.strings,
            )
            shape = self._begin(owner, part.device, queue[rows], names.entries)
            stage = np.where((part.kind == fill) & (fill != NULL), _FILL, _COPY)
            self._chunks(
                len(part),
                shape,
                queue[rows],
                _CopyColumns(
                    part, rows + self.base + len(self.trace.kernels) + 1, names.iid, stage
                ),
            )

    def _begin(
        self, owner: int, device: npt.NDArray[np.int32], queue: I64, interned: Sequence[bytes]
    ) -> _Shape:
        """Write the interned data of a new sequence of this process."""
        process = self.registry.processes[owner]
        sequence = self.registry.sequence()
        used = [self.gpus.queues[i] for i in np.unique(queue)]
        common = [
            self.gpus.context(process, [int(d) for d in np.unique(device)]),
            *(specification(iid, name, category) for iid, (name, category) in enumerate(STAGES, 1)),
            *(q.specification() for q in used),
            *(entry(Interned.COMPUTE_ARG_NAMES, _ARG_IID[name], name) for name in _ARGS),
        ]
        for packet in state_packets(sequence, process.machine, [*common, *interned]):
            self.out.write(packet)
        return _Shape(process, sequence)

    def _chunks(
        self, rows: int, shape: _Shape, queue: I64, columns: _KernelColumns | _CopyColumns
    ) -> None:
        number = np.asarray([q.number for q in self.gpus.queues], np.int64)
        gpu = np.asarray([q.gpu for q in self.gpus.queues], np.int64)
        stream = np.asarray([q.stream for q in self.gpus.queues], np.int64)
        step = columns.at_once
        for at in range(0, rows, step):
            chunk = slice(at, min(at + step, rows))
            here = queue[chunk]
            place = _Place(number[here], gpu[here], stream[here])
            self.out.write(packets(shape.fields(place, columns, chunk), chunk.stop - at).data)


@dataclass(frozen=True)
class _Place:
    """Interned queue number, GPU and stream number per row."""

    queue: I64
    gpu: I64
    stream: I64


@dataclass(frozen=True)
class _Shape:
    """What is equal in all packets of one process."""

    process: Process
    sequence: int

    def fields(
        self, place: _Place, columns: _KernelColumns | _CopyColumns, rows: slice
    ) -> tuple[Field, ...]:
        fixed = (
            wire.integer(Packet.SEQUENCE, self.sequence)
            + wire.integer(Packet.SEQUENCE_FLAGS, NEEDS_STATE)
            + self.process.machine.stamp()
        )
        launch = Message(
            RenderStage.LAUNCH,
            (
                *columns.launch(rows),
                argument("device", place.gpu),
                argument("stream", place.stream),
            ),
        )
        event = (
            *columns.event(rows),
            Same(wire.integer(RenderStage.CONTEXT, self.process.context)),
            integers(RenderStage.GPU_ID, place.gpu),
            integers(RenderStage.HW_QUEUE_IID, place.queue),
            launch,
        )
        return (
            integers(Packet.TIMESTAMP, columns.table.start_ns[rows]),
            Same(fixed),
            Message(Packet.GPU_RENDER_STAGE_EVENT, event),
        )


@dataclass(frozen=True)
class _KernelColumns:
    """Kernels of one sequence; `row` is their place in the whole table."""

    table: Kernels
    row: I64
    event_id: I64
    name: I64
    kind: I64
    counters: CounterArgs
    figures: KernelFigures | None

    @property
    def at_once(self) -> int:
        return self.counters.rows_at_once(CHUNK)

    def event(self, rows: slice) -> Iterator[Field]:
        yield integers(RenderStage.EVENT_ID, self.event_id[rows])
        yield integers(RenderStage.DURATION, self.table.dur_ns[rows])
        yield Same(wire.integer(RenderStage.STAGE_IID, _KERNEL))
        yield integers(RenderStage.KERNEL_IID, self.kind[rows])
        yield integers(RenderStage.NAME_IID, self.name[rows])

    def launch(self, rows: slice) -> Iterator[Field]:
        table = self.table
        yield from _triple(
            Launch.GRID_SIZE,
            table.workgroup_count_x[rows],
            table.workgroup_count_y[rows],
            table.workgroup_count_z[rows],
        )
        yield from _triple(
            Launch.WORKGROUP_SIZE,
            table.workgroup_size_x[rows],
            table.workgroup_size_y[rows],
            table.workgroup_size_z[rows],
        )
        dynamic = table.lds_dynamic_bytes[rows]
        if (dynamic > 0).any():
            yield argument("shared_mem_dynamic", dynamic, dynamic > 0)
        graph = table.graph[rows]
        if (graph > 0).any():
            yield argument(_GRAPH, graph, graph > 0)
        if self.figures is not None:
            yield from LAUNCH.fields(self.figures, rows)
        yield from self.counters.fields(self.row[rows], len(_ARGS) + 1)


@dataclass(frozen=True)
class _CopyColumns:
    """Copies and fills of one sequence."""

    table: Copies
    event_id: I64
    name: I64
    stage: I64

    @property
    def at_once(self) -> int:
        return CHUNK

    def event(self, rows: slice) -> Iterator[Field]:
        yield integers(RenderStage.EVENT_ID, self.event_id[rows])
        yield integers(RenderStage.DURATION, self.table.dur_ns[rows])
        yield integers(RenderStage.STAGE_IID, self.stage[rows])
        yield integers(RenderStage.NAME_IID, self.name[rows])

    def launch(self, rows: slice) -> Iterator[Field]:
        size = self.table.bytes[rows]
        if (size >= 0).any():
            yield argument("bytes", size, size >= 0)


def argument(name: str, values: I64, present: Mask | None = None) -> Field:
    """A launch argument with an integer value."""
    return Message(
        Launch.ARGS,
        (Same(wire.integer(Launch.ARG_NAME_IID, _ARG_IID[name])), integers(Launch.ARG_INT, values)),
        present,
    )


def _by_owner(table: Kernels | Copies, process: I64) -> Iterator[tuple[int, I64]]:
    """Rows of each process and source: one packet sequence each."""
    groups = group_rows(table.source, process)
    if len(groups) == 1:
        yield int(process[0]), np.arange(len(table))
        return
    order = np.argsort(groups.of, kind="stable")
    for rows in np.split(order, np.cumsum(groups.sizes())[:-1]) if len(groups) else ():
        yield int(process[rows[0]]), rows


def operator_names(records: Kernels | Copies, trace: Trace) -> Ints:
    """The name of the operator that launched each record, NULL for none."""
    if not len(trace.ops):
        return np.full(len(records), NULL, np.int32)
    return np.where(records.op == NULL, NULL, trace.ops.name[records.op])


def _kernel_kinds(kernels: Kernels, operator: Ints) -> Groups:
    """Rows that share name, static resources and operator. No dynamic shared memory is static too;
    an amount stands per launch.
    """
    dynamic = np.where(kernels.lds_dynamic_bytes == 0, 1, 0)
    static = (getattr(kernels, column) for _, column in _STATIC)
    return group_rows(kernels.name, *static, dynamic, operator)


def _kernel_entries(
    kernels: Kernels, operator: Ints, numbered: tuple[Groups, I64], strings: Strings
) -> Iterator[bytes]:
    """InternedComputeKernel entries of the kinds and their numbers, the most frequent kernel
    first.
    """
    kinds, iids = numbered
    for kind in np.argsort(iids):
        row = kinds.first[kind]
        fields = wire.integer(1, int(iids[kind])) + wire.text(
            ComputeKernel.NAME, strings[int(kernels.name[row])]
        )
        figures = [(arg, int(getattr(kernels, column)[row])) for arg, column in _STATIC]
        if kernels.lds_dynamic_bytes[row] == 0:
            figures.append(("shared_mem_dynamic", 0))
        for arg, value in figures:
            if value != NULL:
                fields += _static_argument(arg, wire.integer(Launch.ARG_INT, value))
        if operator[row] != NULL:
            name = strings[int(operator[row])]
            fields += _static_argument("operator", wire.text(Launch.ARG_TEXT, name))
        yield wire.blob(Interned.COMPUTE_KERNELS, fields)


def _static_argument(name: str, value: bytes) -> bytes:
    return wire.blob(ComputeKernel.ARGS, wire.integer(Launch.ARG_NAME_IID, _ARG_IID[name]) + value)


def _triple(number: int, *axes: npt.NDArray[np.int32]) -> Iterator[Field]:
    """A Dim3 where all three axes are known."""
    known = (axes[0] > 0) & (axes[1] > 0) & (axes[2] > 0)
    if known.any():
        yield Message(
            number,
            [
                integers(axis, values)
                if known.all()
                else integers(axis, np.where(known, values, 0))
                for axis, values in enumerate(axes, 1)
            ],
            None if known.all() else known,
        )
