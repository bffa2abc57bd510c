"""Plans of N processes by M cores beside one another: which is best, and what the others reach of
it, with intervals (docs/metrics.md#plans).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import PointSummary
from profharness.stats.estimate import Estimate


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One measured plan: items/s with the ends of the 95 % interval, and its share of the best
    plan's rate; the best one has 1 there, without ends.
    """

    point: str
    backend: str
    batch_size: int | None
    processes: int
    cores_per_process: int
    throughput: Estimate
    of_best: Estimate


class Plans(msgspec.Struct, frozen=True, kw_only=True):
    """The plans of a scan, the fastest first. `overlaps_best` are the points that may be as fast:
    where there are any, no plan is proven best.
    """

    best: str
    overlaps_best: tuple[str, ...]
    plans: tuple[Plan, ...]


def compare_plans(points: Sequence[PointSummary]) -> Plans | None:
    """None where the points do not differ in their cores per process, or fewer than two have a
    rate.
    """
    measured = sorted(
        (point for point in points if point.throughput and point.state == "ok"),
        key=lambda point: -(point.throughput or 0.0),
    )
    if len({point.cores_per_process for point in points} - {None}) < 2 or len(measured) < 2:
        return None
    best = measured[0]
    plans = tuple(_plan(point, best) for point in measured)
    return Plans(
        best=best.point,
        overlaps_best=tuple(
            plan.point
            for plan in plans[1:]
            if plan.of_best.high is None or plan.of_best.high >= 1.0
        ),
        plans=plans,
    )


def _plan(point: PointSummary, best: PointSummary) -> Plan:
    return Plan(
        point=point.point,
        backend=point.backend,
        batch_size=point.batch_size,
        processes=point.processes or 0,
        cores_per_process=point.cores_per_process or 0,
        throughput=_rate(point),
        of_best=Estimate(value=1.0) if point is best else _share(_rate(point), _rate(best)),
    )


def _rate(point: PointSummary) -> Estimate:
    low, high = throughput_ends(point) or (None, None)
    return Estimate(value=point.throughput, low=low, high=high)


def _share(rate: Estimate, best: Estimate) -> Estimate:
    """The quotient of independent estimates: their distances to the ends, as logarithms, added in
    squares (the delta method for log(a / b)); an end that is 0 leaves that side open.
    """
    if rate.value is None or best.value is None:
        return Estimate(value=None)
    value = rate.value / best.value
    down = _distance(rate.value, rate.low, best.value, best.high)
    up = _distance(rate.value, rate.high, best.value, best.low)
    return Estimate(
        value=value,
        low=None if down is None else value * math.exp(-down),
        high=None if up is None else value * math.exp(up),
    )


def _distance(rate: float, end: float | None, best: float, best_end: float | None) -> float | None:
    if not end or not best_end:
        return None
    return math.hypot(math.log(end / rate), math.log(best_end / best))
