"""GPUs and their queues as the file names them: GpuInfo, queue names and numbers, API of a
context.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, I64, Device, Trace
from profharness.writers.groups import group_rows
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.schema import Context, Gpu, Interned, Packet, StageSpec
from profharness.writers.tracks import Machine, Process, Registry

STAGES = (("kernel", StageSpec.COMPUTE), ("copy", StageSpec.OTHER), ("fill", StageSpec.OTHER))
_FIRST_QUEUE = len(STAGES) + 1  # stages and queues share one space of interned numbers
_PCI = re.compile(r"^(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
_NO_DEVICE = Device(index="", name="unknown device")
_HIP_NAMES = re.compile(r"amd|advanced micro|instinct|radeon|gfx\d|\bmi\d{2,3}", re.IGNORECASE)
_CUDA_NAMES = re.compile(
    r"nvidia|tesla|geforce|quadro|rtx|\b[abhlpv]\d{2,3}\b|\bt4\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Queue:
    """A stream of one process on one GPU, from one source, on one hardware queue where the tool
    tells. `stream` is the tool's number, else a position.
    """

    number: int
    gpu: int
    stream: int
    name: str
    process: int

    def specification(self) -> bytes:
        """Its entry among the interned GPU specifications."""
        return specification(self.number, self.name, StageSpec.OTHER)


def specification(iid: int, name: str, category: int) -> bytes:
    """An InternedGpuRenderStageSpecification entry."""
    return wire.blob(
        Interned.GPU_SPECIFICATIONS,
        wire.integer(1, iid)
        + wire.text(StageSpec.NAME, name)
        + wire.integer(StageSpec.CATEGORY, category),
    )


class Gpus:
    """Numbers for GPUs (per machine) and queues (over the whole file)."""

    def __init__(self, trace: Trace, registry: Registry) -> None:
        self._trace = trace
        self._registry = registry
        self._ids: dict[Machine, dict[int, int]] = {}
        self._numbers = np.array([_number(stream.name) for stream in trace.streams], np.int64)
        self._queues: dict[tuple[int, int, int, int, int], int] = {}
        self.queues: list[Queue] = []
        for position, device in enumerate(trace.devices):
            if device.host:
                self.gpu(registry.machine(device.host), position)

    def gpu(self, machine: Machine, device: int) -> int:
        """The gpu_id of a device on a machine."""
        ids = self._ids.setdefault(machine, {})
        return ids.setdefault(device, len(ids))

    def queue_rows(self, source: I32, process: I64, device: I32, stream: I32, queue: I64) -> I64:
        """For each row the position of its queue in `queues`: work of one stream that ran on
        several hardware queues is told apart.
        """
        is_both = (stream != NULL) & (queue == np.append(self._numbers, NULL)[stream])
        told = np.where(is_both, NULL, queue)  # the tool knows no stream, and gave the queue for it
        groups = group_rows(source, process, device, stream, told)
        columns = (source, process, device, stream, told)
        numbers = [self._queue(*(int(column[row]) for column in columns)) for row in groups.first]
        return np.asarray(numbers, np.int64)[groups.of]

    def packets(self, sequence: int) -> bytes:
        """One GpuInfo packet per machine."""
        out = b""
        for machine, ids in self._ids.items():
            listed = sorted(ids, key=ids.__getitem__)
            gpus = b"".join(wire.blob(Gpu.GPUS, _gpu_info(self._device(d), ids[d])) for d in listed)
            out += wire.packet(
                wire.blob(Packet.GPU_INFO, gpus),
                wire.integer(Packet.SEQUENCE, sequence),
                machine.stamp(),
            )
        return out

    def context(self, process: Process, devices: Sequence[int]) -> bytes:
        """The interned graphics context of a process whose work ran on these devices."""
        api = self._api([self._device(d) for d in devices])
        return wire.blob(
            Interned.GRAPHICS_CONTEXTS,
            wire.integer(1, process.context)
            + wire.integer(Context.PID, process.shown_pid)
            + wire.integer(Context.API, api),
        )

    def _device(self, position: int) -> Device:
        return self._trace.devices[position] if position >= 0 else _NO_DEVICE

    def _api(self, devices: Sequence[Device]) -> int:
        told = " ".join(f"{device.vendor} {device.name}" for device in devices)
        if _HIP_NAMES.search(told):
            return Context.HIP
        if _CUDA_NAMES.search(told):
            return Context.CUDA
        domains = {self._trace.strings.find(name) for name in ("hip", "hsa")} - {NULL}
        if domains and np.isin(self._trace.api.domain, list(domains)).any():
            return Context.HIP
        return (
            Context.CUDA
            if (self._trace.api.domain == self._trace.strings.find("cuda")).any()
            else Context.UNDEFINED
        )

    def _queue(self, source: int, process: int, device: int, stream: int, queue: int) -> int:
        key = (source, process, device, stream, queue)
        if key not in self._queues:
            owner = self._registry.processes[process]
            name, number = self._stream_name(stream, queue)
            self._queues[key] = len(self.queues)
            label = owner.place if len(self._trace.sources) > 1 else ""
            self.queues.append(
                Queue(
                    number=_FIRST_QUEUE + len(self.queues),
                    gpu=self.gpu(owner.machine, device),
                    stream=number,
                    name=f"{label} · {name}" if label else name,
                    process=process,
                )
            )
        return self._queues[key]

    def _stream_name(self, stream: int, queue: int) -> tuple[str, int]:
        if stream >= 0:
            text = self._trace.streams[stream].name
            number = _number(text)
            name = f"stream {text}" if queue == NULL else f"queue {queue} (stream {text})"
            return name, stream if number == NULL else number
        return (f"queue {queue}", queue) if queue != NULL else ("queue not recorded", 0)


def _number(text: str) -> int:
    """The number that a stream is called by; NULL for another name."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else NULL


def _gpu_info(device: Device, gpu: int) -> bytes:
    fields = wire.text(Gpu.NAME, f"{device.name or 'GPU'} #{gpu}")
    for number, value in ((Gpu.VENDOR, device.vendor), (Gpu.MODEL, device.name)):
        if value:
            fields += wire.text(number, value)
    if _PCI.match(device.identity):
        fields += wire.text(Gpu.PCI_BDF, device.identity)
    elif (uuid := _uuid(device.identity)) is not None:
        fields += wire.blob(Gpu.UUID, uuid.bytes)
    extra = {
        "index in the tool": device.index,
        "identity": device.identity,
        "compute units": "" if device.compute_units is None else str(device.compute_units),
    }
    for key, value in extra.items():
        if value:
            fields += wire.blob(Gpu.EXTRA_INFO, wire.text(1, key) + wire.text(2, value))
    return fields


def _uuid(identity: str) -> UUID | None:
    try:
        return UUID(identity.removeprefix("GPU-"))
    except ValueError:
        return None
