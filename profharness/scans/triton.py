"""The served sweep: every target at every batch size, under every asked concurrency or rate
(docs/metrics.md#served-load).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.options.serving import DEFAULT_LEVELS
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import Point, first_missing
from profharness.scans.served import Load, OnServers, Service, service


@dataclass(frozen=True)
class TritonScan(OnServers):
    """A fixed sweep on servers, one after the other: small loads first; the first and the last
    level again at the end.
    """

    points: tuple[Point, ...]
    adaptive: bool = False

    @staticmethod
    def fits(request: Request) -> bool:
        """Whether a server stands between the load and the model."""
        return request.served

    @classmethod
    def from_request(
        cls,
        request: Request,
        environment: Environment,  # noqa: ARG003  levels do not depend on the device
    ) -> TritonScan:
        """Lay out the points. Raises UsageError where model file and backend do not fit."""
        found = service(request)
        return cls(request.name or request.scan, found, tuple(_laid_out(found, loads(request))))

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The first point of the sweep that is not done."""
        return first_missing(self.points, done)

    def profiled(
        self,
        backend: str,
        done: Sequence[PointRecord] = (),  # noqa: ARG002  the sweep is fixed
    ) -> tuple[Point, ...]:
        """The target's levels, short and without repeats."""
        return tuple(
            self.service.point(
                backend, point.batch_size or 1, Load(point.concurrency, point.rate), profiled=True
            )
            for point in self.points
            if point.backend == backend and not point.repeat
        )


def loads(request: Request) -> tuple[Load, ...]:
    """The asked levels from small to large; closed loops of 1, 2, 4 and 8 where none is asked."""
    if request.rate:
        return tuple(Load(rate=rate) for rate in sorted(request.rate))
    return tuple(Load(concurrency=level) for level in sorted(request.concurrency or DEFAULT_LEVELS))


def _laid_out(found: Service, levels: Sequence[Load]) -> list[Point]:
    """Target by target, since each has a server of its own; the drift of the repeats widens the
    intervals.
    """
    points: list[Point] = []
    for label in found.labels:
        own = [found.point(label, batch, load) for batch in found.batch_sizes for load in levels]
        points += [*own, *(replace(point, repeat=1) for point in (own[0], own[-1])[: len(own)])]
    return points
