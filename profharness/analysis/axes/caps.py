"""Throughput and energy per item along the power cap, at each setting of the other axes, and what
the cap costs and saves (docs/metrics.md#power-caps).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from profharness.analysis.axes.cap_cost import COST, CapSeries, cap_cost
from profharness.analysis.axes.records import AxesScan, CapCurve, CapPoint, PointRate
from profharness.analysis.records import Figure
from profharness.rundir.executions.axes import POWER_CAP
from profharness.stats.estimate import Estimate
from profharness.trace.model import F64

Metrics = Mapping[str, Mapping[str, Figure]]
"""The figures of each point by its name."""
_ITEMS = "items/s"


def cap_curves(scan: AxesScan, metrics: Metrics) -> tuple[CapCurve, ...]:
    """One per setting of the other axes, in the order of the design; those with the best point
    first. Empty without the axis.
    """
    if not any(axis.name == POWER_CAP for axis in scan.axes):
        return ()
    groups: dict[tuple[object, ...], list[PointRate]] = {}
    for point in scan.points:
        others = tuple(value for name, value in point.parameters.items() if name != POWER_CAP)
        groups.setdefault(others, []).append(point)
    found = [_curve(sorted(points, key=_cap), scan, metrics) for points in groups.values()]
    return tuple(sorted(found, key=lambda one: scan.best not in [at.point for at in one.points]))


def _cap(point: PointRate) -> float:
    return float(point.parameters[POWER_CAP])


def _curve(points: Sequence[PointRate], scan: AxesScan, metrics: Metrics) -> CapCurve:
    shown = tuple(
        CapPoint(
            cap_w=_cap(point),
            point=point.point,
            throughput=Estimate(value=point.throughput, low=point.low, high=point.high),
            power_w=_power_of(metrics.get(point.point, {})),
            energy_per_item=energy_of(point, scan.unit, metrics.get(point.point, {})),
        )
        for point in points
    )
    key = {name: value for name, value in points[0].parameters.items() if name != POWER_CAP}
    taken = [one for one in shown if one.energy_per_item.value is not None]
    least = min(taken, key=lambda one: one.energy_per_item.value or 0.0, default=None)
    made = CapCurve(
        key=key,
        points=shown,
        reference_w=shown[-1].cap_w,
        cost=COST,
        at_w=Estimate(value=None),
        saves=Estimate(value=None),
        needs="two caps that were measured",
        least_energy_w=None if least is None else least.cap_w,
    )
    return made if len(shown) < 2 else _with_cost(made, complete=len(taken) == len(shown))


def _with_cost(curve: CapCurve, *, complete: bool) -> CapCurve:
    """`complete`: every point has its energy."""
    power = [point.power_w for point in curve.points]
    series = CapSeries(
        np.array([point.cap_w for point in curve.points]),
        _values([point.throughput for point in curve.points]),
        _halves([point.throughput for point in curve.points]),
        _values(power) if complete else None,
        _halves(power) if complete else None,
    )
    cost = cap_cost(series, curve.cost, "|".join(map(str, curve.key.values())))
    return replace(
        curve, at_w=cost.at_w, saves=cost.saves, needs=_needs(cost.at_w, complete=complete)
    )


def _needs(at_w: Estimate, *, complete: bool) -> str:
    if at_w.value is None:
        return "a lower cap: even the lowest one costs less"
    return (
        "" if complete else "power over each point: longer executions, or telemetry of the device"
    )


def _values(estimates: Sequence[Estimate]) -> F64:
    return np.array([one.value for one in estimates], np.float64)


def _halves(estimates: Sequence[Estimate]) -> F64:
    """Half of each interval as a share of its value; NaN without one."""
    return np.array([_half(one) for one in estimates])


def _half(estimate: Estimate) -> float:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return math.nan
    return (estimate.high - estimate.low) / 2 / estimate.value


def energy_of(point: PointRate, unit: str, figures: Mapping[str, Figure]) -> Estimate:
    """J per item: as telemetry gives it where items were marked, else the mean power over the rate;
    the intervals of power and rate add up in squares. No value where power was not measured over
    the point.
    """
    power = _power_of(figures)
    if power.value is None or not point.throughput:
        return Estimate(value=None)
    counted = figures.get("energy_per_item") if unit == _ITEMS else None
    value = power.value / point.throughput
    if counted is not None and counted.value:
        value = float(counted.value)
    rate = _half(Estimate(value=point.throughput, low=point.low, high=point.high))
    half = math.hypot(rate, _half(power)) * value
    if math.isnan(half):
        return Estimate(value=value)
    return Estimate(value=value, low=value - half, high=value + half)


def _power_of(figures: Mapping[str, Figure]) -> Estimate:
    """The mean power over the point's executions; no value where it was not measured."""
    power = figures.get("power_w")
    if power is None or not power.value:
        return Estimate(value=None)
    return Estimate(value=float(power.value), low=power.low, high=power.high)
