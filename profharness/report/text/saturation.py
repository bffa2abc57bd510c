"""The curves of a scan as `profharness saturation` prints them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profharness.analysis.curves.knee import MARGIN, devices_of
from profharness.analysis.curves.records import Series
from profharness.analysis.curves.saturation import recommend_within_latency
from profharness.analysis.records import Estimate, PointSummary
from profharness.report.table import Column, Table, row_of
from profharness.report.text.figures import quantity_text
from profharness.report.text.labels import in_series, series_name
from profharness.report.text.listing import listing
from profharness.report.text.scan_sentences import still_rising
from profharness.rundir.latency_limit import LatencyLimit
from profharness.units import format_number

NO_JOBS = "--jobs needs a series over concurrency or processes; this one varies the batch size"


def saturation_text(
    found: tuple[Series, ...],
    jobs: int | None = None,
    limit: LatencyLimit | None = None,
    points: tuple[PointSummary, ...] = (),
) -> str:
    """Every series: the recommended level first, then the curve's figures, then findings; last,
    where there are several, the best of them.
    """
    lines = []
    for one in found:
        lines.append(series_name(one).replace(", ", " / ") or "all rows")
        lines += listing(series_table(one, jobs, limit, points), indent=2)
        lines.append("")
    return "\n".join([*lines, *_best_of(found)]).rstrip("\n") + "\n"


def series_table(
    one: Series,
    jobs: int | None = None,
    limit: LatencyLimit | None = None,
    points: tuple[PointSummary, ...] = (),
) -> Table:
    """What one series says, each row with its label."""
    rows = (*_curve_rows(one, jobs), *_limited(one, limit, points), *_findings(one))
    return Table(
        series_name(one), (Column(width=11), Column()), tuple(row_of(*row) for row in rows)
    )


def _best_of(found: tuple[Series, ...]) -> Iterator[str]:
    """The best of several models or backends, for each batch size that they were served at."""
    for batch in dict.fromkeys(one.key.get("batch_size", "") for one in found):
        group = [one for one in found if one.key.get("batch_size", "") == batch and one.throughput]
        if len({one.key.get("backend", "") for one in group}) > 1:
            best = max(group, key=lambda one: max(one.throughput))
            yield (
                f"best{f' at batch {batch}' if batch else ''}: {best.key.get('backend', '')}, "
                f"{format_number(max(best.throughput))} items/s at "
                f"{best.axis.replace('_', ' ')} "
                f"{best.levels[best.throughput.index(max(best.throughput))]:g}"
            )


def _curve_rows(one: Series, jobs: int | None) -> Iterator[tuple[str, str]]:
    if one.recommended is not None:
        best = max(
            (
                rate
                for at, rate in zip(one.levels, one.throughput, strict=True)
                if at not in one.flagged
            ),
            default=max(one.throughput),
        )
        note = f" ({one.recommended_note})" if one.recommended_note else ""
        yield (
            "recommended",
            (
                f"{one.axis.replace('_', ' ')} {one.recommended.at:g}: "
                f"{format_number(one.recommended.throughput)} items/s, "
                "within 5 % of the best "
                f"{format_number(best)}{note}"
            ),
        )
    if one.batch is not None:
        yield (
            "curve",
            (
                f"T_max {_estimate(one.batch.t_max)} items/s, "
                f"half width h {_estimate(one.batch.b_half)}, "
                f"p {_estimate(one.batch.p, 2)}, 90 % from batch {_estimate(one.batch.b90)}"
            ),
        )
    if one.usl is not None:
        yield (
            "USL",
            (
                f"lambda {_estimate(one.usl.lambda_, 2)} items/s, "
                f"sigma {_estimate(one.usl.sigma, 4)}, "
                f"kappa {_estimate(one.usl.kappa, 6)}, peak "
                f"{'at ' if one.usl.n_peak.value is not None else ''}{_estimate(one.usl.n_peak)}"
            ),
        )
    if one.fitted_note and (
        one.batch is not None or one.usl is not None or one.axis != "batch_size"
    ):
        yield "", one.fitted_note
    if one.axis != "batch_size" and one.knee is not None:
        yield from _knee(one, jobs)
    elif jobs is not None:
        yield "devices", NO_JOBS


def _findings(one: Series) -> Iterator[tuple[str, str]]:
    for item in one.findings:
        yield item.severity, f"{item.id}: {item.message}; {item.advice}"


def _limited(
    one: Series, limit: LatencyLimit | None, points: tuple[PointSummary, ...]
) -> Iterator[tuple[str, str]]:
    if limit is None:
        return
    latency = np.array(
        [np.nan if value is None else value for value in _latencies(one, limit.name, points)]
    )
    within = recommend_within_latency(
        np.array(one.levels), np.array(one.throughput), latency, limit.limit_ms, one.flagged
    )
    name = "" if limit.name == "mean" else f"{limit.name.replace('_', '.')} "
    yield (
        f"within {name}{limit.limit_ms:g} ms",
        "no level"
        if within is None
        else (
            f"{one.axis.replace('_', ' ')} {within.at:g}: "
            f"{format_number(within.throughput)} items/s"
        ),
    )


def _latencies(one: Series, name: str, points: tuple[PointSummary, ...]) -> list[float | None]:
    """The mean or a percentile at each level, in ms."""
    if name == "mean":
        return list(one.latency_ms)
    figures = {
        getattr(point, one.axis): point.metrics.get(f"latency_{name}")
        for point in points
        if in_series(point, one)
    }
    found = [figures.get(int(level)) for level in one.levels]
    return [
        None if figure is None or figure.value is None else float(figure.value) for figure in found
    ]


def _knee(one: Series, jobs: int | None) -> Iterator[tuple[str, str]]:
    assert one.knee is not None
    least, most = (
        ("at least ", "at most ") if still_rising(one) else ("", "")
    )  # then the knee is bounded from below only
    knee = Estimate(value=one.knee.n, low=one.knee.low, high=one.knee.high)
    of = f" of {one.clients_per_job} clients each" if one.clients_per_job > 1 else ""
    each = (
        ""
        if one.jobs_per_device is None
        else (
            f"; {least}{one.jobs_per_device} "
            f"{'job' if one.jobs_per_device == 1 else 'jobs'}{of} per device "
            f"({100 * MARGIN:.0f} % below)"
        )
    )
    yield "knee", f"{least if one.knee.n is not None else ''}{_estimate(knee, 1)}{each}"
    yield from _needs(one)
    devices = None if jobs is None else devices_of(one, jobs)
    if devices is not None:
        yield "devices", f"{most}{_estimate(devices)} for {jobs} jobs"


def _needs(one: Series) -> Iterator[tuple[str, str]]:
    """CPU cores and network per device at the knee."""
    capacity = one.capacity
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
    """`value [low, high]`; an end without bound is open."""

    def text(value: float | None) -> str:
        return "?" if value is None else format_number(value, digits)

    if estimate.value is None:
        return f"above {text(estimate.low)}" if estimate.low is not None else "not bounded"
    if estimate.low is None and estimate.high is None:
        return text(estimate.value)
    return f"{text(estimate.value)} [{text(estimate.low)}, {text(estimate.high)}]"
