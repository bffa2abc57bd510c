"""`profharness saturation`: throughput curves of a run or of a CSV of results: knee, recommended point, what bends them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from profharness.analysis.records import Estimate, Series


NO_JOBS = "--jobs needs a series over concurrency or processes; this one varies the batch size"


def saturation(
    path: Annotated[Path, typer.Argument(help="Run directory, or a CSV of results.", metavar="RUN|CSV")],
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Say how many devices carry so many jobs.")] = None,
    latency_limit: Annotated[float | None, typer.Option("--latency-limit", help="Also the best throughput with at most this mean latency in ms.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the JSON document instead of the table.")] = False,
) -> None:
    """Fit throughput curves: knee, recommended point, what bends them."""
    found = load_series(path)
    if json and jobs is not None and any(one.axis == "batch_size" for one in found):
        typer.echo(f"profharness: {NO_JOBS}", err=True)
    sys.stdout.write(json_of(found, jobs) if json else text_of(found, jobs, latency_limit))


def load_series(path: Path) -> tuple[Series, ...]:
    """The series of a run directory or a CSV. Raises InputError when there is none."""
    from profharness.errors import InputError

    if path.is_dir():
        from profharness import understand

        found = understand.summarise(understand.load([path])).series
        if not found:
            raise InputError(f"{path}: no two levels were measured", "scan several batch sizes: profharness run --batch-sizes 4..2048")
        return found
    from profharness.analysis.saturation import series
    from profharness.readers.scan_csv import read_scan_csv

    return series(read_scan_csv(path))


def json_of(found: tuple[Series, ...], jobs: int | None) -> str:
    """The document of DESIGN 8; with --jobs each series also holds `devices`."""
    import msgspec

    from profharness.analysis.records import SCHEMA

    rows = []
    for one in found:
        row = msgspec.to_builtins(one)
        if jobs is not None:
            row["devices"] = msgspec.to_builtins(_devices(one, jobs))
        rows.append(row)
    return msgspec.json.format(msgspec.json.encode({"schema": SCHEMA, "series": rows}), indent=2).decode() + "\n"


def _devices(one: Series, jobs: int) -> Estimate | None:
    from profharness.analysis.knee import devices_for
    from profharness.analysis.records import Knee

    return None if one.axis == "batch_size" else devices_for(jobs, one.knee or Knee(n=None))


def text_of(found: tuple[Series, ...], jobs: int | None = None, latency_limit: float | None = None) -> str:
    """Every series: the recommended level first, then the curve's figures, then findings."""
    return "\n".join(line for one in found for line in (*_lines(one, jobs, latency_limit), "")).rstrip("\n") + "\n"


def _lines(one: Series, jobs: int | None, latency_limit: float | None) -> Iterator[str]:
    from profharness.units import format_number

    yield " / ".join(one.key.values()) or "all rows"
    if one.recommended is not None:
        best = max((rate for at, rate in zip(one.levels, one.throughput, strict=True) if at not in one.flagged), default=max(one.throughput))
        yield (f"  recommended  {one.axis.replace('_', ' ')} {one.recommended.at:g}: {format_number(one.recommended.throughput)} items/s, "
               f"within 5 % of the best {format_number(best)}{f' ({one.recommended_note})' if one.recommended_note else ''}")
    yield from _limited(one, latency_limit)
    if one.batch is not None:
        yield (f"  curve        T_max {_estimate(one.batch.t_max)} items/s, half width h {_estimate(one.batch.b_half)}, "
               f"p {_estimate(one.batch.p, 2)}, 90 % from batch {_estimate(one.batch.b90)}")
    if one.usl is not None:
        yield (f"  USL          lambda {_estimate(one.usl.lambda_, 2)} items/s, sigma {_estimate(one.usl.sigma, 4)}, "
               f"kappa {_estimate(one.usl.kappa, 6)}, peak at {_estimate(one.usl.n_peak)}")
    if one.axis != "batch_size" and one.knee is not None:
        yield from _knee(one, jobs)
    elif jobs is not None:
        yield f"  devices      {NO_JOBS}"
    for item in one.findings:
        yield f"  {item.severity:<8}     {item.id}: {item.message}; {item.advice}"


def _limited(one: Series, limit: float | None) -> Iterator[str]:
    import numpy as np

    from profharness.analysis.saturation import recommend_within_latency
    from profharness.units import format_number

    if limit is None:
        return
    latency = np.array([np.nan if value is None else value for value in one.latency_ms])
    within = recommend_within_latency(np.array(one.levels), np.array(one.throughput), latency, limit, one.flagged)
    yield (f"  within {limit:g} ms  " + ("no level" if within is None else
           f"{one.axis.replace('_', ' ')} {within.at:g}: {format_number(within.throughput)} items/s"))


def _knee(one: Series, jobs: int | None) -> Iterator[str]:
    from profharness.analysis.knee import MARGIN
    from profharness.analysis.records import Estimate

    assert one.knee is not None
    knee = Estimate(value=one.knee.n, low=one.knee.low, high=one.knee.high)
    each = "" if one.jobs_per_device is None else f"; {one.jobs_per_device} jobs per device ({100 * MARGIN:.0f} % below)"
    yield f"  knee         {_estimate(knee, 1)}{each}"
    devices = None if jobs is None else _devices(one, jobs)
    if devices is not None:
        yield f"  devices      {_estimate(devices)} for {jobs} jobs"


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
