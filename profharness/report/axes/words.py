"""What the points and effects of a scan over axes are called, and the sentences on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profharness.analysis.axes.naming import setting_text, value_text
from profharness.analysis.axes.records import (
    AxesScan,
    AxisCurve,
    Effect,
    PointRate,
    Prediction,
)
from profharness.report.axes.caps import cap_sentences
from profharness.report.axes.required import figure_name, figure_value, required_text
from profharness.report.text.figures import estimate_text, interval_text, number_text
from profharness.rundir.executions.axes import POWER_CAP
from profharness.stats.estimate import Estimate
from profharness.units import THIN, format_share

CAPTION = "± (or a range): 95 % interval of the mean over the executions"
_MOST_NAMED = 4
_WORTH = 1.02
"""A proven effect below it is real, and nobody would change a setting for it."""


def axis_name(name: str) -> str:
    """As tables have it: a variable without its `env:`."""
    return name.removeprefix("env:")


def factor_text(factor: Estimate) -> str:
    """`1.50 x (1.45 to 1.54)`."""
    if factor.value is None:
        return ""
    if factor.low is None or factor.high is None:
        return f"{_times(factor.value)} x"
    return f"{_times(factor.value)} x ({_times(factor.low)} to {_times(factor.high)})"


def _times(value: float) -> str:
    return f"{value:.3g}" if value >= 10 else f"{value:.2f}"


def rate_text(scan: AxesScan, point: PointRate) -> str:
    """`2 287 ± 50 items/s`."""
    return f"{interval_text(point.throughput, point.low, point.high)} {scan.unit}"


def point_of(scan: AxesScan, name: str | None) -> PointRate | None:
    """The point of that name."""
    return next((point for point in scan.points if point.point == name), None)


def answer(scan: AxesScan) -> str:
    """The best point, whether it is proven, the recommended one, and what the axes are worth."""
    best = point_of(scan, scan.best)
    if best is None:
        if not scan.points:
            return "No point gave a rate."
        return f"None of {len(scan.points)} points keeps {required_text(scan.requires)}."
    parts = [f"Best is {rate_text(scan, best)} at {setting_text(best.parameters)}{_kept(scan)}."]
    if scan.overlaps_best:
        others = [point_of(scan, name) for name in scan.overlaps_best]
        named = "; ".join(
            setting_text(point.parameters) for point in others[:_MOST_NAMED] if point is not None
        )
        rest = len(others) - _MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        parts.append(f"It is not proven better than {named}{more}.")
    recommended = point_of(scan, scan.recommended)
    if recommended is not None and recommended is not best:
        parts.append(
            f"Recommended is {setting_text(recommended.parameters)}: "
            f"{rate_text(scan, recommended)}, within 5 % of the best with smaller values."
        )
    further = (*_promising(scan, best), *cap_sentences(scan), *front_sentences(scan))
    return " ".join([*parts, *worth(scan), *further])


def _promising(scan: AxesScan, best: PointRate) -> Iterator[str]:
    """The fastest setting that was not measured, where more is expected of it than of the best."""
    first = promising(scan, best)
    if first is not None:
        yield (
            f"Not measured, and expected to be faster: {setting_text(first.parameters)}, "
            f"{estimate_text(first.throughput)} {scan.unit}."
        )


def promising(scan: AxesScan, best: PointRate) -> Prediction | None:
    """Where more is expected than the best gave; None where nowhere, and where something is
    required, of which nothing is known there.
    """
    first = scan.expected[0] if scan.expected and not scan.requires else None
    if first is None or (first.throughput.value or 0.0) <= best.throughput:
        return None
    return first


def _kept(scan: AxesScan) -> str:
    return f" among points with {required_text(scan.requires)}" if scan.requires else ""


def worth(scan: AxesScan) -> Iterator[str]:
    """What the axes are worth, the proven ones first; then which of them depend on one another."""
    main = [effect for effect in scan.effects if len(effect.axes) == 1]
    proven = [effect for effect in main if effect.proven]
    if proven:
        named = ", ".join(
            f"{axis_name(effect.axes[0])} {factor_text(effect.factor)}" for effect in proven
        )
        yield f"Worth: {named}."
    left = [axis_name(effect.axes[0]) for effect in main if not effect.proven]
    if left and scan.noise is not None:
        yield f"No effect is proven of {', '.join(left)}."
    pairs = [effect for effect in scan.effects if len(effect.axes) == 2 and effect.proven]
    if pairs:
        largest = max(pairs, key=lambda effect: effect.factor.value or 1.0)
        yield dependence(largest)


def dependence(effect: Effect) -> str:
    """What one interaction says in a sentence."""
    first, second = effect.axes
    name = axis_name(first)
    return (
        f"{name} depends on {axis_name(second)}: {name} {value_text(effect.best[first])} over "
        f"{value_text(effect.worst[first])} gains {factor_text(effect.factor)} more at "
        f"{axis_name(second)} {value_text(effect.best[second])} than at "
        f"{value_text(effect.worst[second])}."
    )


def front_sentences(scan: AxesScan) -> Iterator[str]:
    """How many settings one has to choose between, where it is more than the best."""
    if scan.front is None or scan.best is None:
        return
    others = [one for one in scan.front.points if one.point != scan.best and one.certain]
    if not others:
        return
    count = "One other setting gives" if len(others) == 1 else f"{len(others)} other settings give"
    figures = [figure_title(name) for name in scan.front.figures[1:]]
    yield f"{count} less throughput for a better {' or '.join(figures)}."


def figure_title(name: str) -> str:
    """`latency p99`, `energy per item`."""
    known = {"memory_peak": "memory", "gpu_memory_used": "device memory"}
    return known.get(name, name.replace("_", " "))


def _latency_limit(scan: AxesScan) -> str:
    """What to do where no setting keeps a limit of latency; empty where the scan has none."""
    for name in (text.split()[0] for text in scan.requires):
        if not scan.points or not re.fullmatch(r"p\d+_ms", name):
            continue
        known = [point for point in scan.points if name in point.values]
        if not known:
            return (
                f"No point has a {figure_name(name)}, which takes more requests than were "
                "answered: measure longer (--time), or limit a lower percentile."
            )
        least = min(known, key=lambda point: point.values[name])
        return (
            f"The lowest {figure_name(name)} is {figure_value(name, least.values[name])}, at "
            f"{setting_text(least.parameters)}. Measure settings of less load (fewer clients, "
            "smaller batches), or raise the limit."
        )
    return ""


def next_step(scan: AxesScan) -> str:
    """What to change: values at the end of an axis, what limits the best, what is not worth
    measuring again.
    """
    best = point_of(scan, scan.best)
    if best is None:
        return _latency_limit(scan) or (
            "Look at what the executions said: points/bare/POINT/stdout.log in the run."
        )
    parts = [*_beyond(scan, best), *_limits(scan, best)]
    first = promising(scan, best)
    if first is not None:
        parts.insert(0, f"Measure {setting_text(first.parameters)}.")
    if scan.noise is None and best.low is None:
        more = "Search by more levels" if scan.design == "search" else "Repeat each point"
        option = "--search" if scan.design == "search" else "--repeats 3"
        parts.append(f"{more} to get intervals: {option}.")
    weak = [
        axis_name(effect.axes[0])
        for effect in scan.effects
        if len(effect.axes) == 1 and effect.factor.high is not None and effect.factor.high < _WORTH
    ]
    if weak:
        parts.append(f"Leave {', '.join(weak)} as it is: it is worth less than 2 %.")
    if scan.serve:
        parts.insert(0, f"Serve it so: `{scan.serve}`; served/ in the run has its config.pbtxt.")
    return " ".join(parts) or (
        f"Set {setting_text((point_of(scan, scan.recommended) or best).parameters)}."
    )


def _beyond(scan: AxesScan, best: PointRate) -> Iterator[str]:
    """Axes whose largest value is the best on the curve through the best point, and is proven
    better than the value before it, where anything tells the noise.
    """
    for curve in through_best(scan, best):
        if len(curve.levels) < 2 or curve.throughput[-1] != max(curve.throughput):
            continue
        if curve.recommended is not None and curve.recommended.at < curve.levels[-1]:
            continue
        if curve.points[-2] in scan.overlaps_best:
            continue
        if curve.axis == POWER_CAP:  # the highest cap is the device's own, most often
            continue
        yield (
            f"{axis_name(curve.axis)} still gains at {number_text(curve.levels[-1])}, the largest: "
            "scan beyond it."
        )


def _limits(scan: AxesScan, best: PointRate) -> Iterator[str]:
    curves = through_best(scan, best)
    curve = next((one for one in curves if one.limiter_text), None)
    if curve is not None:
        at = f"{axis_name(curve.axis)} {value_text(curve.limiter_at or 0.0)}"
        yield f"What limits it at {at}: {curve.limiter_text.rstrip('.')}."


def through_best(scan: AxesScan, best: PointRate) -> tuple[AxisCurve, ...]:
    """The curves on which the best point lies."""
    return tuple(curve for curve in scan.curves if best.point in curve.points)


def trust(scan: AxesScan) -> str:
    """What the figures rest on: executions, their noise, and how well a point is predicted."""
    executions = sum(point.executions for point in scan.points)
    measured = "executions" if scan.front is None else "levels"
    parts = [
        f"{executions} {measured} of {len(scan.points)} point{'s' * (len(scan.points) != 1)}"
        + ("" if scan.noise is None else f", which scatter by {format_share(scan.noise)}")
    ]
    if scan.left_out_error is not None:
        inside = sum(one.inside for one in scan.left_out)
        parts.append(
            "each point predicted from the others: median error "
            f"{format_share(scan.left_out_error)}, {inside} of {len(scan.left_out)} inside "
            "its 95 % interval"
        )
    if scan.effects_need and scan.points:
        parts.append(f"effects: {scan.effects_need}")
    return "; ".join(parts).replace(THIN, " ")


def series_heading(curve: AxisCurve) -> str:
    """`along workers, at batch 16`."""
    at = f", at {setting_text(curve.key)}" if curve.key else ""
    return f"along {axis_name(curve.axis)}{at}"


def levels_text(levels: Sequence[float]) -> str:
    """Levels with commas between them."""
    return ", ".join(f"{level:g}" for level in levels)
