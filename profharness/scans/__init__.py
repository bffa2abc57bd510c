"""Scans: which points are measured, in which order, and what a worker's answer means. No loops, no processes.

The contract is `Scan`; members are listed literally in `SCANS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from profharness.environment import Environment
from profharness.manifest import PointRecord
from profharness.request import Request


@dataclass(frozen=True)
class Point:
    """One measurement to make. `key` names it in the protocol and on disk; repeats end in ~1, ~2 ..."""

    id: str
    backend: str
    batch_size: int | None = None
    repeat: int = 0
    params: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.id}~{self.repeat}" if self.repeat else self.id


@dataclass(frozen=True)
class PointOutput:
    """What the worker answered for one point, or why it gave no answer. Times in ns of CLOCK_MONOTONIC.

    `begun`: False where no worker came as far as this point, for a reason that holds for others as well.
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


@dataclass(frozen=True)
class WorkloadSpec:
    """A worker program (relative to wrappers/) and its static settings, written as JSON for it."""

    script: str
    settings: Mapping[str, object]


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
        """The points of the bare pass in order, repeats included."""


    def profiled(self, backend: str) -> tuple[Point, ...]:
        """The points of a layer pass for one backend: the same points, with few trials and no minimum time."""

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """The record of one finished point."""

    def workload(self, backend: str) -> WorkloadSpec:
        """The worker that serves this backend's points."""


def create(request: Request, environment: Environment) -> Scan:
    """The scan that the request names. Its settings were checked by `Request`."""
    from profharness.scans.batch import BatchScan

    return BatchScan.from_request(request, environment)


SCANS = ("particlenet",)
