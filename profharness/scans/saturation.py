"""The saturation scan: how many clients one server carries. Levels follow from results; nothing is
fixed before (docs/metrics.md#knee).

For each target and batch size: closed loops along a ladder and around the knee, then open loops
(Poisson) at 70, 80, 90 and 100 % of the throughput that the knee stands for, then the level of the
knee once more, whose drift widens the intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.options.serving import SATURATION
from profharness.rundir.latency_limit import LatencyLimit, limits_kept, parse_latency_limit
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import Point, key_of
from profharness.scans.search import LADDER, STORM, Rules, Seen, next_level
from profharness.scans.served import Load, OnServers, service

OPEN_SHARES = (0.7, 0.8, 0.9, 1.0)
_NEAR = 0.05  # of the best throughput: the knee is where this much is reached


@dataclass(frozen=True)
class SaturationScan(OnServers):
    """A search per target and batch size, one after the other."""

    rules: Rules
    limit: LatencyLimit | None
    points: tuple[Point, ...] = ()
    adaptive: bool = True

    @staticmethod
    def fits(request: Request) -> bool:
        """Whether levels are to be searched on a server."""
        return request.served and request.scan == SATURATION

    @classmethod
    def from_request(
        cls,
        request: Request,
        environment: Environment,  # noqa: ARG003  levels do not depend on the device
    ) -> SaturationScan:
        """Raises UsageError where model file and backend do not fit."""
        ladder = tuple(sorted(request.concurrency)) or tuple(
            level * request.clients_per_job for level in LADDER
        )
        return cls(
            request.name or request.scan,
            service(request),
            Rules(ladder=ladder),
            parse_latency_limit(request.latency_limit),
        )

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The next level of the first search that has not come to its end."""
        return next(
            (
                point
                for label in self.backends
                for batch in self.service.batch_sizes
                if (point := self._next(label, batch, done)) is not None
            ),
            None,
        )

    def _next(self, label: str, batch: int, done: Sequence[PointRecord]) -> Point | None:
        own = [record for record in done if record.backend == label and record.batch_size == batch]
        closed = [record for record in own if record.mode == "closed" and not record.repeat]
        level = next_level([self._seen(record) for record in closed], self.rules)
        if level is not None:
            return self.service.point(label, batch, Load(concurrency=level))
        there = {key_of(record) for record in own}
        return next(
            (point for point in self._checks(label, batch, closed) if point.key not in there), None
        )

    def _checks(self, label: str, batch: int, closed: Sequence[PointRecord]) -> Iterator[Point]:
        """What follows the search; nothing where no level was sound."""
        sound = [record for record in closed if (seen := self._seen(record)).sound and seen.kept]
        if not sound:
            return
        best = max(_throughput(record) for record in sound)
        for share in OPEN_SHARES:
            yield self.service.point(label, batch, Load(rate=float(f"{share * best / batch:.4g}")))
        knee = min(
            (record for record in sound if _throughput(record) >= (1 - _NEAR) * best),
            key=lambda record: record.concurrency or 0,
        )
        yield self.service.point(label, batch, Load(concurrency=knee.concurrency), repeat=1)

    def _seen(self, record: PointRecord) -> Seen:
        result = record.result
        if result is None or record.state != "ok":
            return Seen(record.concurrency or 0, 0.0, storm=True)
        kept = limits_kept(self.limit, result.percentiles_ms, result.latency_ms)
        return Seen(
            record.concurrency or 0,
            result.throughput,
            result.throughput_sem or 0.0,
            kept=kept is not False,
            storm=result.failed_share > STORM,
        )

    def profiled(self, backend: str, done: Sequence[PointRecord] = ()) -> tuple[Point, ...]:
        """The levels that the bare pass had, short and without repeats."""
        return self.service.replayed(backend, done)


def _throughput(record: PointRecord) -> float:
    return record.result.throughput if record.result is not None else 0.0
