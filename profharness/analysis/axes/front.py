"""The settings of a server that none beats in throughput, latency, memory and energy at once: the
Pareto front, and who is not proven to be off it (docs/metrics.md#axes-front). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profharness.analysis.axes.records import Front, FrontPoint, PointRate
from profharness.stats.estimate import Estimate, Figure

LATENCIES = ("latency_p99", "latency_p95", "latency_p90", "latency_p50", "latency_mean")
"""The first that all points have."""
MEMORIES = ("gpu_memory_used", "memory_peak")
ENERGIES = ("energy_per_item",)
_TOLERANCE = 0.05
"""A figure without an interval is proven better only by more than this share: it was read once."""
Metrics = Mapping[str, Mapping[str, Figure]]
Row = Mapping[str, Estimate]


def front_of(points: Sequence[PointRate], metrics: Metrics) -> Front | None:
    """The front over the figures that all points have beside the throughput; None where there is no
    latency, which only a server has, or just one point.
    """
    latency = _common(points, metrics, LATENCIES)
    if len(points) < 2 or latency is None:
        return None
    others = [
        name
        for name in (
            latency,
            _common(points, metrics, MEMORIES),
            _common(points, metrics, ENERGIES),
        )
        if name is not None
    ]
    rows = {point.point: _row(point, metrics[point.point], others) for point in points}
    found = []
    for point in points:
        beaten = [
            name
            for name, row in rows.items()
            if name != point.point and _dominates(row, rows[point.point])
        ]
        proven = [name for name in beaten if _proven(rows[name], rows[point.point])]
        if not proven:
            figures = dict(rows[point.point])
            found.append(
                FrontPoint(
                    point=point.point,
                    parameters=point.parameters,
                    figures=figures,
                    certain=not beaten,
                )
            )
    found.sort(key=lambda one: (not one.certain, -(one.figures["throughput"].value or 0.0)))
    units = {name: metrics[points[0].point][name].unit for name in others}
    return Front(figures=("throughput", *others), units=units, points=tuple(found))


def _common(points: Sequence[PointRate], metrics: Metrics, names: Sequence[str]) -> str | None:
    for name in names:
        found = [metrics.get(point.point, {}).get(name) for point in points]
        if all(one is not None and one.value is not None for one in found):
            return name
    return None


def _row(
    point: PointRate, metrics: Mapping[str, Figure], names: Sequence[str]
) -> dict[str, Estimate]:
    rate = Estimate(value=point.throughput, low=point.low, high=point.high)
    return {"throughput": rate} | {name: _estimate(metrics[name]) for name in names}


def _estimate(figure: Figure) -> Estimate:
    return Estimate(value=figure.value, low=figure.low, high=figure.high)


def _dominates(one: Row, other: Row) -> bool:
    """Whether it is as good in every figure, and better in one."""
    pairs = [(_worth(name, one), _worth(name, other)) for name in one]
    return all(mine >= theirs for mine, theirs in pairs) and any(
        mine > theirs for mine, theirs in pairs
    )


def _proven(one: Row, other: Row) -> bool:
    """Whether it is better in some figure beyond the intervals of both."""
    return any(_beyond(name, one[name], other[name]) for name in one)


def _worth(name: str, row: Row) -> float:
    """More is better of the throughput, less of all else."""
    value = row[name].value or 0.0
    return value if name == "throughput" else -value


def _beyond(name: str, one: Estimate, other: Estimate) -> bool:
    better, worse = (one, other) if name == "throughput" else (other, one)
    return _low(better) > _high(worse)


def _low(estimate: Estimate) -> float:
    value = estimate.value or 0.0
    return value * (1 - _TOLERANCE / 2) if estimate.low is None else estimate.low


def _high(estimate: Estimate) -> float:
    value = estimate.value or 0.0
    return value * (1 + _TOLERANCE / 2) if estimate.high is None else estimate.high
