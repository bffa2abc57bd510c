"""The criterion on the curve: more of what a scan varies gives no more throughput
(docs/certificate.md#saturation).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.axes.records import AxesScan, AxisCurve, PointRate
from profharness.analysis.certificate.criterion import Reading, at_least
from profharness.analysis.certificate.subject import Subject
from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary
from profharness.stats.bootstrap import Z95
from profharness.stats.estimate import Figure
from profharness.units import format_share

DOUBLE = 2.0
"""How far beyond the point a curve without a fit has to go to show that it is flat."""
_UNSURE = frozenset({"poor-fit"})
_FALLS = "falls-after-peak"
_NO_LOAD = ("power-cap", "shape:")
"""Axes of which more is no more load: what the device may draw, and what one item is."""
_LONGER = "a longer measurement (--repeats, --trials, --min-seconds, --time)"
_ORDER = {"not met": 0, "not judged": 1, "met": 2}


@dataclass(frozen=True)
class Rate:
    """A throughput with the ends of its 95 % interval, the value itself where it has none."""

    value: float
    low: float
    high: float


def plateau(subject: Subject, threshold: float) -> Reading:
    """The throughput of the point over that of the plateau."""
    if not subject.is_scan:
        return Reading(
            "not applicable", "one execution of a command has no plateau to be compared with"
        )
    if subject.point is not None and subject.summary.axes is not None:
        return _over_axes(subject.summary.axes, subject.point, threshold)
    point, series = subject.point, subject.series
    if point is None or point.throughput is None or series is None:
        return Reading("not judged", "the point is on no curve of two levels or more")
    return _along(series, _rate(point, point.throughput), getattr(point, series.axis), threshold)


def _over_axes(scan: AxesScan, point: PointSummary, threshold: float) -> Reading:
    """The worst of what the curves through the point say, each along one axis, and of the point
    beside the fastest one.
    """
    measured = next((one for one in scan.points if one.point == point.point), None)
    if measured is None:
        return Reading("not judged", "the point was not measured")
    found = list(_readings(scan, measured, threshold))
    if not found:
        return Reading("not judged", "no axis of the scan is one of numbers that makes more load")
    return min(found, key=lambda one: (_ORDER[one.state], _share(one)))


def _share(reading: Reading) -> float:
    return 0.0 if reading.value is None else reading.value


def _readings(scan: AxesScan, measured: PointRate, threshold: float) -> Iterator[Reading]:
    rate = _of_setting(measured)
    for axis in scan.axes:
        if not axis.is_number or axis.name.startswith(_NO_LOAD):
            continue
        place = _place(scan, axis.name, measured.point)
        if place is None:
            yield Reading(
                "not judged",
                f"at the other values of the point, {axis.name} was measured at one value alone",
                needs=f"a scan over several values of {axis.name} there",
            )
            continue
        curve, level = place
        yield _along(curve, rate, level, threshold, f" along {axis.name}")
    if any(one.throughput > rate.value for one in scan.points):
        yield _beside_the_fastest(scan, rate, threshold)


def _place(scan: AxesScan, axis: str, point: str) -> tuple[AxisCurve, float] | None:
    """The curve along an axis that goes through the point, and where it does."""
    for curve in scan.curves:
        if curve.axis == axis and point in curve.points:
            return curve, curve.levels[curve.points.index(point)]
    return None


def _of_setting(measured: PointRate) -> Rate:
    if measured.low is None or measured.high is None:
        return Rate(measured.throughput, measured.throughput, measured.throughput)
    return Rate(measured.throughput, measured.low, measured.high)


def _beside_the_fastest(scan: AxesScan, rate: Rate, threshold: float) -> Reading:
    fastest = max(scan.points, key=lambda one: one.throughput)
    top = _of_setting(fastest)
    figure = Figure(value=top.value, unit="", low=top.low, high=top.high)
    what = f"the highest one measured, at {setting_text(fastest.parameters)}"
    return _compared(rate, figure, threshold, what)


def _rate(point: PointSummary, throughput: float) -> Rate:
    figure = point.metrics.get("throughput")
    if figure is None or figure.low is None or figure.high is None:
        return Rate(throughput, throughput, throughput)
    return Rate(throughput, float(figure.low), float(figure.high))


def _along(
    series: Series | AxisCurve, rate: Rate, level: float, threshold: float, where: str = ""
) -> Reading:
    """The rate at a level over the plateau of a curve. `where` names the curve in the sentence,
    empty where the scan has one axis.
    """
    found = _top(series, level)
    if found is None:
        return _open_end(series, where)
    top, source = found
    if top.low is None and top.high is None:
        return _open_end(series, where)
    compared = _compared(rate, top, threshold, f"the plateau{where}", source)
    if top.high is None and compared.state != "not met":
        open_end = _open_end(series, where)
        return replace(open_end, value=compared.value, high=compared.high, source=source)
    return compared


def _compared(rate: Rate, top: Figure, threshold: float, what: str, source: str = "") -> Reading:
    """The ratio with both intervals at their worst."""
    value = rate.value / (float(top.value) if top.value else 1.0)
    least, most = top.low, top.high
    low = None if not most else rate.low / float(most)
    high = None if least is None or least <= 0 else rate.high / float(least)
    state = at_least(threshold, value, low, high)
    told = f"the throughput is {format_share(value)} of {what}"
    if state != "not judged":
        return Reading(state, told, value, low, high, source)
    text = f"{told}; its interval reaches over the threshold"
    return Reading(state, text, value, low, high, source, _LONGER)


def _top(series: Series | AxisCurve, level: float) -> tuple[Figure, str] | None:
    """The throughput of the plateau with its interval: of a fitted curve its maximum; else, and
    where the curve falls again or does not describe the points, the highest level measured, if
    levels far enough beyond the point were.
    """
    kinds = {item.id for item in series.findings}
    if series.batch is not None and not kinds & (_UNSURE | {_FALLS}):
        top = series.batch.t_max
        if top.value is not None:
            figure = Figure(value=top.value, unit="", low=top.low, high=top.high)
            words = "the batch size" if series.axis == "batch_size" else series.axis
            return figure, f"maximum of the fitted curve over {words}"
    beyond = [at for at in series.levels if at > level and at >= DOUBLE * level]
    if not beyond and _FALLS not in kinds:
        return None
    best = max(range(len(series.levels)), key=lambda at: series.throughput[at])
    sem = series.throughput_sem[best] or 0.0
    rate = series.throughput[best]
    half = Z95 * sem
    figure = Figure(value=rate, unit="", low=rate - half, high=rate + half)
    return figure, f"highest throughput of the levels measured, at {series.levels[best]:g}"


def _open_end(series: Series | AxisCurve, where: str) -> Reading:
    largest = max(series.levels)
    needs = f"a scan over larger values of {series.axis}" if where else ""
    return Reading(
        "not judged",
        f"the plateau{where} lies beyond the scan, whose largest level is {largest:g}",
        needs=needs,
    )
