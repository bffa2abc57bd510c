"""What a scan is: which points are measured, in which order, and what a worker's answer means. No
loops, no processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.levels import Level, LevelResult, Mode
from profharness.rundir.manifest import PointRecord


@dataclass(frozen=True)
class Point:
    """One measurement to make. `key` names it in the protocol and on disk; repeats end in ~1, ~2
    ...

    `mode`, `concurrency` and `rate` (requests/s) are the load on a server; `cores_per_process` is
    the M of a plan of N processes by M cores.
    """

    id: str
    backend: str
    batch_size: int | None = None
    mode: Mode | None = None
    concurrency: int | None = None
    rate: float | None = None
    processes: int | None = None
    cores_per_process: int | None = None
    repeat: int = 0
    params: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.id}~{self.repeat}" if self.repeat else self.id


class StreamOutput(msgspec.Struct, frozen=True):
    """One process of a point that several measured: where the kernel let it run, and its file of
    batches in the point's folder.
    """

    index: int
    pid: int
    cpus: tuple[int, ...]
    file: str
    device: str = ""
    batches: int = 0


@dataclass(frozen=True)
class PointOutput:
    """What the worker answered for one point, or why it gave no answer. Times in ns of
    CLOCK_MONOTONIC.

    `begun`: False where no worker came as far as this point, for a reason that holds for others as
    well. `level` is the load generator's report on a level, `result` what its requests say;
    `streams` are the processes of a point that several measured, each with a file of its batches in
    the point's folder; `execution` is what one execution of a command came to.
    """

    ok: bool
    error: str = ""
    trials_ns: tuple[int, ...] = ()
    starts_ns: tuple[int, ...] = ()
    items: int = 0
    warmup_ns: tuple[int, ...] = ()
    warmup_starts_ns: tuple[int, ...] = ()
    compile_ns: int | None = None
    cold_cache: bool | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    pid: int | None = None
    host: str = ""
    device: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    begun: bool = True
    level: Level | None = None
    result: LevelResult | None = None
    streams: tuple[StreamOutput, ...] = ()
    execution: ExecutionRecord | None = None


@dataclass(frozen=True)
class WorkloadSpec:
    """A worker program (relative to wrappers/) and its static settings, written as JSON for it."""

    script: str
    settings: Mapping[str, object]


@dataclass(frozen=True)
class ServerSpec:
    """What serves a target: one of our worker programs with its settings, a command with the URL
    that says when it is ready, or (neither) a server that runs already at `url`. `model` is the
    model's name there.
    """

    model: str
    worker: WorkloadSpec | None = None
    command: tuple[str, ...] = ()
    ready: str = ""
    urls: tuple[str, ...] = ()


class Scan(Protocol):
    """A source of points, and the worker that measures them."""

    @property
    def name(self) -> str: ...
    @property
    def item(self) -> str:
        """What one item of a batch is called: jet, event, image, item."""

    @property
    def backends(self) -> tuple[str, ...]: ...
    @property
    def points(self) -> tuple[Point, ...]:
        """The points of the bare pass in order, repeats included; those of an adaptive scan are not
        known before.
        """

    @property
    def adaptive(self) -> bool:
        """Whether results decide which points follow."""

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The next point of the bare pass, from the records that it has so far; None at its end."""

    def profiled(self, backend: str, done: Sequence[PointRecord] = ()) -> tuple[Point, ...]:
        """The points of a layer pass for one backend: the same points as in the bare pass (`done`),
        in less time each.
        """

    def server(self, backend: str) -> ServerSpec | None:
        """What serves this backend's points; None where the worker runs the model itself."""

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """The record of one finished point."""

    def workload(self, backend: str) -> WorkloadSpec:
        """The worker that serves this backend's points."""


def key_of(record: PointRecord) -> str:
    """The key of the point that the record is of."""
    return f"{record.id}~{record.repeat}" if record.repeat else record.id


def first_missing(points: Sequence[Point], done: Sequence[PointRecord]) -> Point | None:
    """`Scan.next` of a fixed sweep: the first of its points that has no record."""
    there = {key_of(record) for record in done}
    return next((point for point in points if point.key not in there), None)
