"""What a batch size would take, from the other sizes of a scan: operator by operator, with an
interval, and beside what was measured where the scan has that size.

The point of the size itself is never used, so that the errors of measured sizes tell how far
forecasts of this scan can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.graph import graph_of
from profharness.analysis.critical.records import BatchForecast, StepForecast
from profharness.analysis.critical.rerun import rerun
from profharness.analysis.critical.resized import resized
from profharness.analysis.critical.scaling import (
    forecast,
    neighbours,
    power_law,
    share_of_larger,
)
from profharness.analysis.critical.scope import Scope
from profharness.analysis.critical.sites import SiteCosts, costs_of
from profharness.stats.bootstrap import Z95

F64 = npt.NDArray[np.float64]
_MEDIAN_TO_SIGMA = 1.4826
_OF_MEDIAN = 1.2533  # standard error of a median over that of a mean


@dataclass(frozen=True)
class ScanPoint:
    """A point of a scan: its batch size, what it shares with the points that it compares with, and
    its trials without a profiler, in ns.
    """

    size: int
    series: str = ""
    bare_ns: tuple[float, ...] = ()


@dataclass(frozen=True)
class Scan:
    """The points of a scan by name. `drift` is by how much points of a series that were measured
    again differ from their first time, as a share.
    """

    points: Mapping[str, ScanPoint] = field(default_factory=dict)
    drift: Mapping[str, float] = field(default_factory=dict)


NO_SCAN = Scan()


@dataclass(frozen=True, eq=False)
class _Measured:
    """One size as it was measured."""

    point: ScanPoint
    costs: SiteCosts


def scan_forecasts(
    found: Sequence[Scope], scan: Scan, asked: Sequence[int] = ()
) -> tuple[BatchForecast, ...]:
    """A forecast of each measured size, and of each that is asked for, by series and size; those
    that rest on too little are left out.
    """
    made: list[BatchForecast] = []
    for series, scopes in _series(found, scan).items():
        sizes = sorted(scopes)
        if len(sizes) < 2:
            continue
        costs = costs_of([scopes[size] for size in sizes])
        measured = [
            _Measured(scan.points[scopes[size].source.point], one)
            for size, one in zip(sizes, costs, strict=True)
        ]
        drift = scan.drift.get(measured[0].point.series, 0.0)
        every = (_of_size(series, size, measured, drift) for size in sorted({*sizes, *asked}))
        made.extend(_by_errors([one for one in every if one is not None]))
    return tuple(made)


def _by_errors(made: Sequence[BatchForecast]) -> list[BatchForecast]:
    """Forecasts of one series whose intervals are widened by the errors of its other sizes, of
    those that lie inside or outside of what they rest on as this one does where there are any.
    """
    widened = []
    for one in made:
        others = [other for other in made if other.size != one.size and other.traced.error]
        alike = [other for other in others if other.inside == one.inside] or others
        traced = [other.traced for other in alike]
        bare = [other.bare for other in alike if other.bare is not None]
        widened.append(
            msgspec.structs.replace(
                one,
                traced=_widened(one.traced, traced),
                bare=None if one.bare is None else _widened(one.bare, bare),
            )
        )
    return widened


def _widened(step: StepForecast, others: Sequence[StepForecast]) -> StepForecast:
    """The forecast with an interval wider by the root mean square of other sizes' errors."""
    errors = [other.error for other in others if other.error is not None]
    if not errors:
        return step
    off = float(np.sqrt(np.mean(np.square(errors))))
    return msgspec.structs.replace(
        step, low_ns=step.low_ns * max(1 - off, 0.0), high_ns=step.high_ns * (1 + off)
    )


def _series(found: Sequence[Scope], scan: Scan) -> dict[str, dict[int, Scope]]:
    """Scopes that differ in their batch size alone, by series and size."""
    made: dict[str, dict[int, Scope]] = {}
    for scope in found:
        point = scan.points.get(scope.source.point)
        if point is not None:
            rank = scope.source.rank
            series = point.series if rank is None else f"{point.series} rank {rank}".strip()
            made.setdefault(series, {}).setdefault(point.size, scope)
    return made


def _of_size(
    series: str, size: int, measured: Sequence[_Measured], drift: float
) -> BatchForecast | None:
    others = [one for one in measured if one.point.size != size]
    sizes = [one.point.size for one in others]
    places = neighbours(sizes, size)
    if places is None:
        return None
    low, high = (others[place] for place in places)
    pair = low.point.size, high.point.size
    step = _step_ns(low, high, size)
    own = next((one for one in measured if one.point.size == size), None)
    traced = _judged(
        step, _spread(low.costs.steps, high.costs.steps, size, pair), drift,
        None if own is None else own.costs.steps,
    )  # fmt: skip
    bare = _bare(step, (low, high), size, drift, own)
    return BatchForecast(
        size=size,
        series=series,
        rests_on=pair,
        inside=pair[0] < size < pair[1],
        traced=traced,
        bare=bare,
    )


def _step_ns(low: _Measured, high: _Measured, size: int) -> float:
    """A step at a size: the sum over sites, or the rerun of the nearer point where a device
    works.
    """
    pair = low.point.size, high.point.size
    host = _typical(low.costs), _typical(high.costs)
    made = forecast(pair, host[0], host[1], size)
    if not any(one.costs.device.any() for one in (low, high)):
        return float(made.sum())
    device = np.median(low.costs.device, axis=1), np.median(high.costs.device, axis=1)
    nearer = int(share_of_larger(pair, size) >= 0.5)
    base = (low, high)[nearer]
    graph = graph_of(base.costs.scope)
    changed = resized(
        graph,
        base.costs,
        _factor(made, host[nearer]),
        _factor(forecast(pair, device[0], device[1], size), device[nearer]),
    )
    window = rerun(graph, changed.cause, changed.lag).window_ns
    return float(np.median(base.costs.steps)) * window / graph.scope.window_ns


def _typical(costs: SiteCosts) -> F64:
    """The usual time of each site: its median over the steps, all together as long as the median
    step.
    """
    usual: F64 = np.median(costs.host, axis=1)
    whole = usual.sum()
    return usual * (np.median(costs.steps) / whole) if whole else usual


def _factor(new: F64, old: F64) -> F64:
    return np.where(old > 0, new / np.where(old > 0, old, 1), 1.0)


def _spread(low: F64, high: F64, size: int, pair: tuple[int, int]) -> tuple[F64, float]:
    """Other ways to draw a curve through two sizes, as whole steps; and the relative noise (95 %)
    of what lies on it.
    """
    ends = np.array([np.median(low)]), np.array([np.median(high)])
    ways = [forecast(pair, *ends, size), power_law(pair, *ends, size)]
    if size > pair[1]:
        ways.append(ends[1] * size / pair[1])
    elif size < pair[0]:
        ways.append(ends[0] * size / pair[0])
    else:
        small, large = pair
        ways.append(ends[0] + (ends[1] - ends[0]) * (size - small) / (large - small))
    part = share_of_larger(pair, size)
    return np.concatenate(ways), float(np.hypot((1 - part) * noise(low), part * noise(high)))


def noise(steps: F64) -> float:
    """The half width of the 95 % interval of the median, as a share of it."""
    middle = float(np.median(steps))
    sigma = _MEDIAN_TO_SIGMA * float(np.median(np.abs(steps - middle)))
    return Z95 * _OF_MEDIAN * sigma / np.sqrt(len(steps)) / middle if middle else 0.0


def _judged(step: float, spread: tuple[F64, float], drift: float, own: F64 | None) -> StepForecast:
    """A forecast with its interval, and beside what was measured."""
    ways, of_ends = spread
    by = float(np.hypot(of_ends, drift))
    low, high = min(step, float(ways.min())), max(step, float(ways.max()))
    middle = None if own is None else float(np.median(own))
    off = 0.0 if own is None else float(np.hypot(noise(own), drift))
    return StepForecast(
        forecast_ns=step,
        low_ns=low * max(1 - by, 0.0),
        high_ns=high * (1 + by),
        measured_ns=middle,
        measured_low_ns=None if middle is None else middle * max(1 - off, 0.0),
        measured_high_ns=None if middle is None else middle * (1 + off),
        error=None if not middle else step / middle - 1,
    )


def _bare(
    step: float, ends: tuple[_Measured, _Measured], size: int, drift: float, own: _Measured | None
) -> StepForecast | None:
    """The same without the profiler: the forecast times what the profiler made of both sizes."""
    plain = [np.array(one.point.bare_ns) for one in ends]
    if not all(len(trials) for trials in plain):
        return None
    pair = ends[0].point.size, ends[1].point.size
    ratio = [
        np.log(np.median(trials) / np.median(one.costs.steps))
        for trials, one in zip(plain, ends, strict=True)
    ]
    part = share_of_larger(pair, size)
    spared = float(np.exp((1 - part) * ratio[0] + part * ratio[1]))
    trials = None if own is None or not own.point.bare_ns else np.array(own.point.bare_ns)
    return _judged(step * spared, _spread(plain[0], plain[1], size, pair), drift, trials)
