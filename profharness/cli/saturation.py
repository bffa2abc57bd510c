"""`profharness saturation`: throughput curves of a run or of a CSV of results: knee, recommended
point, what bends them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from profharness.analysis.curves.records import Series
    from profharness.analysis.records import Estimate, PointSummary
    from profharness.options.serving import LatencyLimit


NO_JOBS = "--jobs needs a series over concurrency or processes; this one varies the batch size"


def saturation(
    path: Annotated[
        Path, typer.Argument(help="Run directory, or a CSV of results.", metavar="RUN|CSV")
    ],
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Say how many devices carry so many jobs.")
    ] = None,
    latency_limit: Annotated[
        str | None,
        typer.Option(
            "--latency-limit",
            help="Also the best throughput within a latency: p99=20ms, or a mean in ms.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document instead of the table.")
    ] = False,
) -> None:
    """Fit throughput curves: knee, recommended point, what bends them."""
    found, points = load_scan(path)
    limit = parse_limit(latency_limit, points) if latency_limit else None
    if json and jobs is not None and any(one.axis == "batch_size" for one in found):
        typer.echo(f"profharness: {NO_JOBS}", err=True)
    sys.stdout.write(json_of(found, jobs) if json else text_of(found, jobs, limit, points))


def load_series(path: Path) -> tuple[Series, ...]:
    """The series of a run directory or a CSV. Raises InputError when there is none."""
    return load_scan(path)[0]


def load_scan(path: Path) -> tuple[tuple[Series, ...], tuple[PointSummary, ...]]:
    """The series, and the points of a run, of which a CSV has none. Raises InputError when there is
    no series.
    """
    from profharness.errors import InputError

    if path.is_dir():
        from profharness.rundir.paths import RunDir
        from profharness.understand import report_run as understand

        RunDir.open(path)  # its files could not be given here
        summary = understand.summarise(understand.load([path]))
        if not summary.series:
            raise InputError(
                f"{path}: no two levels were measured",
                "scan several batch sizes: profharness run --batch-sizes 4..2048",
            )
        return summary.series, summary.points
    from profharness.analysis.curves.saturation import series
    from profharness.readers.own.scan_csv import read_scan_csv

    return series(read_scan_csv(path)), ()


def parse_limit(text: str, points: tuple[PointSummary, ...]) -> LatencyLimit:
    """`p99=20ms`, or a number of ms for the mean. Raises UsageError, also for percentiles of a CSV,
    which holds none.
    """
    from profharness.errors import UsageError
    from profharness.options.serving import LatencyLimit, parse_latency_limit

    try:
        return LatencyLimit("mean", float(text))
    except ValueError:
        limit = parse_latency_limit(text)
    assert limit is not None
    if limit.name != "mean" and not points:
        raise UsageError(
            f"--latency-limit {text}: a CSV holds mean latencies only",
            "name a run directory, or give the mean in ms",
        )
    return limit


def json_of(found: tuple[Series, ...], jobs: int | None) -> str:
    """The document of docs/json.md#saturation; with --jobs each series also holds `devices`."""
    import msgspec

    from profharness.analysis.records import SCHEMA

    rows = []
    for one in found:
        row = msgspec.to_builtins(one)
        if jobs is not None:
            row["devices"] = msgspec.to_builtins(_devices(one, jobs))
        rows.append(row)
    return (
        msgspec.json.format(
            msgspec.json.encode({"schema": SCHEMA, "series": rows}), indent=2
        ).decode()
        + "\n"
    )


def _devices(one: Series, jobs: int) -> Estimate | None:
    from profharness.analysis.curves.knee import devices_for, in_jobs
    from profharness.analysis.curves.records import Knee

    return (
        None
        if one.axis == "batch_size"
        else devices_for(jobs, in_jobs(one.knee or Knee(n=None), one.clients_per_job))
    )


def text_of(
    found: tuple[Series, ...],
    jobs: int | None = None,
    limit: LatencyLimit | None = None,
    points: tuple[PointSummary, ...] = (),
) -> str:
    """Every series: the recommended level first, then the curve's figures, then findings; last,
    where there are several, the best of them.
    """
    lines = [
        line
        for one in found
        for line in (*_lines(one, jobs), *_limited(one, limit, points), *_findings(one), "")
    ]
    return "\n".join([*lines, *_best_of(found)]).rstrip("\n") + "\n"


def _best_of(found: tuple[Series, ...]) -> Iterator[str]:
    """The best of several models or backends, for each batch size that they were served at."""
    from profharness.units import format_number

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


def _lines(one: Series, jobs: int | None) -> Iterator[str]:
    from profharness.report.text.labels import series_name
    from profharness.units import format_number

    yield series_name(one).replace(", ", " / ") or "all rows"
    if one.recommended is not None:
        best = max(
            (
                rate
                for at, rate in zip(one.levels, one.throughput, strict=True)
                if at not in one.flagged
            ),
            default=max(one.throughput),
        )
        yield (
            f"  recommended  {one.axis.replace('_', ' ')} {one.recommended.at:g}: "
            f"{format_number(one.recommended.throughput)} items/s, "
            "within 5 % of the best "
            f"{format_number(best)}{f' ({one.recommended_note})' if one.recommended_note else ''}"
        )
    if one.batch is not None:
        yield (
            f"  curve        T_max {_estimate(one.batch.t_max)} items/s, "
            f"half width h {_estimate(one.batch.b_half)}, "
            f"p {_estimate(one.batch.p, 2)}, 90 % from batch {_estimate(one.batch.b90)}"
        )
    if one.usl is not None:
        yield (
            f"  USL          lambda {_estimate(one.usl.lambda_, 2)} items/s, "
            f"sigma {_estimate(one.usl.sigma, 4)}, "
            f"kappa {_estimate(one.usl.kappa, 6)}, peak "
            f"{'at ' if one.usl.n_peak.value is not None else ''}{_estimate(one.usl.n_peak)}"
        )
    if one.fitted_note and (
        one.batch is not None or one.usl is not None or one.axis != "batch_size"
    ):
        yield f"               {one.fitted_note}"
    if one.axis != "batch_size" and one.knee is not None:
        yield from _knee(one, jobs)
    elif jobs is not None:
        yield f"  devices      {NO_JOBS}"


def _findings(one: Series) -> Iterator[str]:
    for item in one.findings:
        yield f"  {item.severity:<8}     {item.id}: {item.message}; {item.advice}"


def _limited(
    one: Series, limit: LatencyLimit | None, points: tuple[PointSummary, ...]
) -> Iterator[str]:
    import numpy as np

    from profharness.analysis.curves.saturation import recommend_within_latency
    from profharness.units import format_number

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
        f"  within {name}{limit.limit_ms:g} ms  "
        + (
            "no level"
            if within is None
            else (
                f"{one.axis.replace('_', ' ')} {within.at:g}: "
                f"{format_number(within.throughput)} items/s"
            )
        )
    )


def _latencies(one: Series, name: str, points: tuple[PointSummary, ...]) -> list[float | None]:
    """The mean or a percentile at each level, in ms."""
    from profharness.report.text.labels import in_series

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


def _knee(one: Series, jobs: int | None) -> Iterator[str]:
    from profharness.analysis.curves.knee import MARGIN
    from profharness.analysis.records import Estimate
    from profharness.report.text.scan_sentences import still_rising

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
    yield f"  knee         {least if one.knee.n is not None else ''}{_estimate(knee, 1)}{each}"
    yield from _needs(one)
    devices = None if jobs is None else _devices(one, jobs)
    if devices is not None:
        yield f"  devices      {most}{_estimate(devices)} for {jobs} jobs"


def _needs(one: Series) -> Iterator[str]:
    """CPU cores and network per device at the knee."""
    from profharness.report.text.figures import quantity_text
    from profharness.units import format_number

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
    yield f"  per device   {', '.join(parts)} (at concurrency {capacity.at:g})"


def _estimate(estimate: Estimate, digits: int = 0) -> str:
    """`value [low, high]`; an end without bound is open."""
    from profharness.units import format_number

    def text(value: float | None) -> str:
        return "?" if value is None else format_number(value, digits)

    if estimate.value is None:
        return f"above {text(estimate.low)}" if estimate.low is not None else "not bounded"
    if estimate.low is None and estimate.high is None:
        return text(estimate.value)
    return f"{text(estimate.value)} [{text(estimate.low)}, {text(estimate.high)}]"
