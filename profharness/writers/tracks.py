"""Who is who in the file: machines, processes, threads, track uuids and sequence ids.

A viewer folds processes of one machine that share a pid, and threads that share a tid. Records of
different hosts, passes, ranks or loose files are different processes here even if the numbers agree
(pids are reused, and start at 1 in every container), so a number that is taken on its machine is
replaced by a free one above the kernel's limit, and the real one stands in the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from profharness.rundir.shown.screen import one_line
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I32,
    I64,
    Api,
    Copies,
    HostSamples,
    Kernels,
    Marks,
    Ops,
    Source,
    Trace,
)
from profharness.writers.groups import group_rows
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.schema import STATE_CLEARED, Packet, Track

_FIRST_STAND_IN = 5_000_000  # Linux pids end at 2**22
_PID_LIMIT = 1 << 31
# tables whose rows belong to processes
HostRows = Kernels | Copies | Api | Ops | Marks | HostSamples
_UNKNOWN_SOURCE = Source(path="", format="")
_OF_THE_LOAD = ("requests", "level")  # formats of what a load generator wrote


@dataclass(frozen=True)
class Machine:
    """A node; the reference host has id 0 and its packets name no machine."""

    host: str
    id: int

    def stamp(self) -> bytes:
        """The packet field that says which machine a packet is from."""
        return wire.integer(Packet.MACHINE_ID, self.id) if self.id else b""


@dataclass(frozen=True)
class ProcessKey:
    """What makes a process; `source` is NULL inside a pass, where one pid is one process over all
    sources.
    """

    host: str
    pass_name: str
    rank: int
    pid: int
    source: int


@dataclass(frozen=True)
class Process:
    """A process as the file shows it: `shown_pid` is unique on its machine, and `place` is its name
    without what it was recorded as: pass, file and rank.
    """

    key: ProcessKey
    machine: Machine
    shown_pid: int
    uuid: int
    context: int
    name: str
    place: str
    labels: tuple[str, ...]

    def descriptor(self) -> bytes:
        """Its TrackDescriptor fields."""
        process = wire.integer(Track.PID, self.shown_pid) + wire.text(Track.PROCESS_NAME, self.name)
        process += b"".join(wire.text(Track.PROCESS_LABELS, label) for label in self.labels)
        return wire.integer(Track.UUID, self.uuid) + wire.blob(Track.PROCESS, process)


@dataclass
class _Numbers:
    """Ids in use on one machine; pids and tids share one space, as in Linux."""

    taken: set[int] = field(default_factory=set)
    next_free: int = _FIRST_STAND_IN

    def claim(self, wanted: int) -> int:
        if 0 < wanted < _PID_LIMIT and wanted not in self.taken:
            self.taken.add(wanted)
            return wanted
        while self.next_free in self.taken:
            self.next_free += 1
        self.taken.add(self.next_free)
        return self.next_free


class Registry:
    """Hands out every id of one file, each once, in the order in which they are asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        hosts = dict.fromkeys(source.host for source in trace.sources)
        hosts.update(dict.fromkeys(device.host for device in trace.devices if device.host))
        self._reference = reference_host(trace)
        self._clients = {
            (source.pass_name, source.pid)
            for source in trace.sources
            if source.format in _OF_THE_LOAD and source.pass_name
        }
        self._machines = {self._reference: Machine(self._reference, 0)}
        for host in hosts:
            self.machine(host)
        self._recorded = {
            (
                source.pass_name,
                _scope(source, position),
                source.host,
                entry.pid,
                entry.tid,
            ): entry.name
            for position, source in enumerate(trace.sources)
            for entry in source.names
        }
        self._processes: dict[ProcessKey, int] = {}
        self.processes: list[Process] = []
        self._numbers: dict[int, _Numbers] = {}
        self._uuids = 0
        self._sequences = 0

    def machine(self, host: str) -> Machine:
        """The machine of a host name; records without one belong to the reference host."""
        if not host:
            host = self._reference
        if host not in self._machines:
            self._machines[host] = Machine(host, len(self._machines) + 1)
        return self._machines[host]

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(self._machines.values())

    def uuid(self) -> int:
        """A track uuid that nothing else has."""
        self._uuids += 1
        return self._uuids

    def sequence(self) -> int:
        """A packet sequence id; interned names and track order belong to one sequence."""
        self._sequences += 1
        return self._sequences

    def process_rows(self, table: HostRows) -> I64:
        """For each row the position of its process in `processes`, made where it is new."""
        groups = group_rows(table.source, table.host, table.rank, table.pid)
        keys = [
            self._key(
                *(int(column[row]) for column in (table.source, table.host, table.rank, table.pid))
            )
            for row in groups.first
        ]
        return np.asarray([self._process(key) for key in keys], np.int64)[groups.of]

    def source_rows(self, source: I32) -> I64:
        """Like `process_rows` for records that only know their source."""
        groups = group_rows(source)
        keys = [self._key(int(source[row]), NULL, NULL, NULL) for row in groups.first]
        return np.asarray([self._process(key) for key in keys], np.int64)[groups.of]

    def thread_descriptor(self, process: Process, tid: int) -> tuple[int, bytes]:
        """A new thread track: its uuid and TrackDescriptor fields. Ask once per thread."""
        uuid = self.uuid()
        shown = (
            process.shown_pid if tid == process.key.pid else self._space(process.machine).claim(tid)
        )
        name = self._called(process.key, tid) if tid != NULL else ""
        name = name or (f"thread {tid}" if tid != NULL else "thread (not recorded)")
        thread = (
            wire.integer(Track.PID, process.shown_pid)
            + wire.integer(Track.TID, shown)
            + wire.text(Track.THREAD_NAME, name)
        )
        fields = (
            wire.integer(Track.UUID, uuid)
            + wire.integer(Track.PARENT_UUID, process.uuid)
            + wire.blob(Track.THREAD, thread)
        )
        return uuid, fields

    def _key(self, source: int, host: int, rank: int, pid: int) -> ProcessKey:
        origin = self._trace.sources[source] if source >= 0 else _UNKNOWN_SOURCE
        return ProcessKey(
            host=self._trace.strings[host] or origin.host,
            pass_name=origin.pass_name,
            rank=_first_known(rank, origin.rank),
            pid=_first_known(pid, origin.pid),
            source=_scope(origin, source),
        )

    def _process(self, key: ProcessKey) -> int:
        if key not in self._processes:
            self._processes[key] = len(self.processes)
            machine = self.machine(key.host)
            shown = self._space(machine).claim(key.pid)
            labels = [f"host {machine.host}"] if machine.host else []
            if shown != key.pid:
                labels.append(
                    f"pid {key.pid} on its host" if key.pid != NULL else "pid not recorded"
                )
            self.processes.append(
                Process(
                    key,
                    machine,
                    shown,
                    self.uuid(),
                    len(self.processes) + 1,
                    self._name(key),
                    self._place(key) or "process",
                    tuple(labels),
                )
            )
        return self._processes[key]

    def _name(self, key: ProcessKey) -> str:
        """Where the process belongs, on which host where there are several, and what it was
        recorded as; its number where nothing else is known.
        """
        host = key.host if len(self._machines) > 1 else ""
        called = self._called(key, NULL) if key.pid != NULL else ""
        parts = [part for part in (self._place(key), host, called) if part]
        if not parts and key.pid != NULL:
            parts.append(f"process {key.pid}")
        return " · ".join(parts) or "process"

    def _place(self, key: ProcessKey) -> str:
        """Pass, file and rank of a process; empty where there is one of each."""
        parts = [key.pass_name, self._role(key)] if key.pass_name else []
        if key.source >= 0 and len(self._trace.sources) > 1:
            parts.append(PurePath(self._trace.sources[key.source].path).name)
        if key.rank != NULL:
            parts.append(f"rank {key.rank}")
        return " · ".join(part for part in parts if part)

    def _called(self, key: ProcessKey, tid: int) -> str:
        """What a source calls this process, or a thread of it; empty where none does."""
        name = self._recorded.get((key.pass_name, key.source, key.host, key.pid, tid), "")
        return one_line(name)

    def _role(self, key: ProcessKey) -> str:
        """Of a served pass: whether the process is of the load or of the server, which alone is
        under layers; empty of other passes.
        """
        if key.pid == NULL or all(name != key.pass_name for name, _ in self._clients):
            return ""
        return "client" if (key.pass_name, key.pid) in self._clients else "server"

    def _space(self, machine: Machine) -> _Numbers:
        return self._numbers.setdefault(machine.id, _Numbers())


def reference_host(trace: Trace) -> str:
    """The host whose clock the trace runs on: that of rank 0, else of the first source that names
    one.
    """
    named = [source for source in trace.sources if source.host]
    leading = [source for source in named if source.rank == 0]
    return (leading or named or [_UNKNOWN_SOURCE])[0].host


def track_packet(sequence: int, machine: Machine, fields: bytes) -> bytes:
    """A TrackDescriptor packet."""
    return wire.packet(
        wire.blob(Packet.TRACK_DESCRIPTOR, fields),
        wire.integer(Packet.SEQUENCE, sequence),
        machine.stamp(),
    )


def child_track(
    uuid: int, parent: int, name: str, rank: int | None = None, *, ordered: bool = False
) -> bytes:
    """TrackDescriptor fields of a named track; siblings of one name are drawn as one. `ordered`
    sorts its children.
    """
    fields = wire.integer(Track.UUID, uuid) + wire.text(Track.NAME, name)
    if parent:
        fields += wire.integer(Track.PARENT_UUID, parent)
    if rank is not None:
        fields += wire.integer(Track.SIBLING_ORDER_RANK, rank)
    if ordered:
        fields += wire.integer(Track.CHILD_ORDERING, Track.EXPLICIT)
    return fields


def state_packets(
    sequence: int, machine: Machine, interned: Sequence[bytes], per_packet: int = 2000
) -> Iterator[bytes]:
    """The first packets of a sequence: state cleared once, then every interned entry (InternedData
    fields).
    """
    stamp = wire.integer(Packet.SEQUENCE, sequence) + machine.stamp()
    yield wire.packet(
        stamp,
        wire.integer(Packet.SEQUENCE_FLAGS, STATE_CLEARED),
        wire.blob(Packet.INTERNED_DATA, b"".join(interned[:per_packet])),
    )
    for at in range(per_packet, len(interned), per_packet):
        yield wire.packet(
            stamp, wire.blob(Packet.INTERNED_DATA, b"".join(interned[at : at + per_packet]))
        )


def _scope(source: Source, position: int) -> int:
    """Where numbers of processes hold: inside of a pass, else of one source."""
    return NULL if source.pass_name else position


def _first_known(row: int, source: int | None) -> int:
    if row != NULL:
        return row
    return NULL if source is None else source
