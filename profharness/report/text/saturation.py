"""The curves of a scan as `profharness saturation` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from profharness.analysis.curves.knee import MARGIN, devices_of
from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Series
from profharness.analysis.curves.saturation import recommend_within_latency
from profharness.analysis.records import Estimate, PointSummary
from profharness.report.table import Column, Table, row_of
from profharness.report.text.figures import quantity_text
from profharness.report.text.labels import series_name
from profharness.report.text.listing import listing
from profharness.report.text.measured.curves import fit_holds, still_rising
from profharness.rundir.latency_limit import LatencyLimit
from profharness.rundir.shown.screen import lines_text
from profharness.units import format_number

NO_JOBS = "--jobs needs a series over concurrency or processes; this one varies the batch size"


def saturation_text(
    curves: tuple[Series, ...],
    jobs: int | None = None,
    limit: LatencyLimit | None = None,
    points: tuple[PointSummary, ...] = (),
) -> str:
    """Every series: the recommended level first, then the curve's figures, then findings; last,
    where there are several, the best of them.
    """
    lines = []
    points_of_each = members(points, curves, blank_is_any=True)
    for curve, of_curve in zip(curves, points_of_each, strict=True):
        lines.append(series_name(curve).replace(", ", " / ") or "all rows")
        lines += listing(series_table(curve, jobs, limit, of_curve), indent=2)
        lines.append("")
    return lines_text([*lines, *_best_of(curves)]).rstrip("\n") + "\n"


def series_table(
    curve: Series,
    jobs: int | None = None,
    limit: LatencyLimit | None = None,
    points: Sequence[PointSummary] = (),
) -> Table:
    """What one series says, each row with its label. `points` are those of the series."""
    rows = (*_curve_rows(curve, jobs), *_limited(curve, limit, points), *_findings(curve))
    return Table(
        series_name(curve), (Column(width=11), Column()), tuple(row_of(*row) for row in rows)
    )


def _best_of(curves: tuple[Series, ...]) -> Iterator[str]:
    """The best of several models or backends, for each batch size that they were served at."""
    for batch in dict.fromkeys(curve.key.get("batch_size", "") for curve in curves):
        group = [
            curve
            for curve in curves
            if curve.key.get("batch_size", "") == batch and curve.throughput
        ]
        if len({curve.key.get("backend", "") for curve in group}) > 1:
            best = max(group, key=lambda curve: max(curve.throughput))
            yield (
                f"best{f' at batch {batch}' if batch else ''}: {best.key.get('backend', '')}, "
                f"{format_number(max(best.throughput))} {best.unit} at "
                f"{best.axis.replace('_', ' ')} "
                f"{best.levels[best.throughput.index(max(best.throughput))]:g}"
            )


def _curve_rows(curve: Series, jobs: int | None) -> Iterator[tuple[str, str]]:
    if curve.recommended is not None:
        best = max(
            (
                rate
                for at, rate in zip(curve.levels, curve.throughput, strict=True)
                if at not in curve.flagged
            ),
            default=max(curve.throughput),
        )
        note = f" ({curve.recommended_note})" if curve.recommended_note else ""
        yield (
            "recommended",
            (
                f"{curve.axis.replace('_', ' ')} {curve.recommended.at:g}: "
                f"{format_number(curve.recommended.throughput)} {curve.unit}, "
                "within 5 % of the best "
                f"{format_number(best)}{note}"
            ),
        )
    if curve.batch is not None and fit_holds(curve):
        yield (
            "curve",
            (
                f"approaches T_max {_estimate(curve.batch.t_max)} {curve.unit}, "
                f"90 % from batch {_estimate(curve.batch.b90)}; "
                f"bends at batch h {_estimate(curve.batch.b_half)}, "
                f"sharpness p {_estimate(curve.batch.p, 2)}, where 1 is the softest"
            ),
        )
    if curve.usl is not None and fit_holds(curve):
        yield (
            "USL",
            (
                f"one alone gives lambda {_estimate(curve.usl.lambda_, 2)} {curve.unit}, "
                f"queueing sigma {_estimate(curve.usl.sigma, 4)}, "
                f"crosstalk kappa {_estimate(curve.usl.kappa, 6)}, peak "
                f"{'at ' if curve.usl.n_peak.value is not None else ''}"
                f"{_estimate(curve.usl.n_peak)}"
            ),
        )
    told = fit_holds(curve) and (curve.batch is not None or curve.usl is not None)
    if curve.fitted_note and (told or curve.axis != "batch_size"):
        yield "", curve.fitted_note
    if curve.axis != "batch_size" and curve.knee is not None:
        yield from _knee(curve, jobs)
    elif jobs is not None:
        yield "devices", NO_JOBS


def _findings(curve: Series) -> Iterator[tuple[str, str]]:
    for item in curve.findings:
        yield item.severity, f"{item.id}: {item.message}; {item.advice}"


def _limited(
    curve: Series, limit: LatencyLimit | None, points: Sequence[PointSummary]
) -> Iterator[tuple[str, str]]:
    if limit is None:
        return
    latency = np.array(
        [np.nan if value is None else value for value in _latencies(curve, limit.name, points)]
    )
    within = recommend_within_latency(
        np.array(curve.levels), np.array(curve.throughput), latency, limit.limit_ms, curve.flagged
    )
    name = "" if limit.name == "mean" else f"{limit.name.replace('_', '.')} "
    yield (
        f"within {name}{limit.limit_ms:g} ms",
        "no level"
        if within is None
        else (
            f"{curve.axis.replace('_', ' ')} {within.at:g}: "
            f"{format_number(within.throughput)} {curve.unit}"
        ),
    )


def _latencies(curve: Series, name: str, points: Sequence[PointSummary]) -> list[float | None]:
    """The mean or a percentile at each level, in ms."""
    if name == "mean":
        return list(curve.latency_ms)
    figures = {getattr(point, curve.axis): point.metrics.get(f"latency_{name}") for point in points}
    level_figures = [figures.get(int(level)) for level in curve.levels]
    return [
        None if figure is None or figure.value is None else float(figure.value)
        for figure in level_figures
    ]


def _knee(curve: Series, jobs: int | None) -> Iterator[tuple[str, str]]:
    assert curve.knee is not None
    least, most = (
        ("at least ", "at most ") if still_rising(curve) else ("", "")
    )  # then the knee is bounded from below only
    knee = Estimate(value=curve.knee.n, low=curve.knee.low, high=curve.knee.high)
    of = f" of {curve.clients_per_job} clients each" if curve.clients_per_job > 1 else ""
    per_device = (
        ""
        if curve.jobs_per_device is None
        else (
            f"; {least}{curve.jobs_per_device} "
            f"{'job' if curve.jobs_per_device == 1 else 'jobs'}{of} per device "
            f"({100 * MARGIN:.0f} % below)"
        )
    )
    if curve.no_plan:
        per_device = f"; no number of jobs, since {curve.no_plan}"
    yield "knee", f"{least if curve.knee.n is not None else ''}{_estimate(knee, 1)}{per_device}"
    yield from _needs(curve)
    devices = None if jobs is None else devices_of(curve, jobs)
    if devices is not None and not curve.no_plan:
        yield "devices", f"{most}{_estimate(devices)} for {jobs} jobs"


def _needs(curve: Series) -> Iterator[tuple[str, str]]:
    """CPU cores and network per device at the knee."""
    capacity = curve.capacity
    if capacity is None or (capacity.server_cores is None and capacity.network_bytes_per_s is None):
        return
    parts = (
        []
        if capacity.server_cores is None
        else [f"{format_number(capacity.server_cores, 2)} CPU cores of the server"]
    )
    parts += (
        []
        if capacity.network_bytes_per_s is None
        else [f"{quantity_text(capacity.network_bytes_per_s, 'B/s')} over the network"]
    )
    yield "per device", f"{', '.join(parts)} (at concurrency {capacity.at:g})"


def _estimate(estimate: Estimate, digits: int = 0) -> str:
    """`value (low to high)`; an end without bound is open."""

    def text(value: float | None) -> str:
        return "open" if value is None else format_number(value, digits)

    if estimate.value is None:
        return f"above {text(estimate.low)}" if estimate.low is not None else "not bounded"
    if estimate.low is None and estimate.high is None:
        return text(estimate.value)
    return f"{text(estimate.value)} ({text(estimate.low)} to {text(estimate.high)})"
