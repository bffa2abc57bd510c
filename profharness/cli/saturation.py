"""`profharness saturation`: throughput curves of a run or of a CSV of results: knee, recommended
point, what bends them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.cli.parsing.forms import FORM_HELP, JSON_HELP, Form
from profharness.rundir.shown.screen import mention

if TYPE_CHECKING:
    from profharness.analysis.curves.records import Series
    from profharness.analysis.records import PointSummary
    from profharness.rundir.latency_limit import LatencyLimit


def saturation(
    path: Annotated[
        Path,
        typer.Argument(
            help="Run directory, folder of a job array, or a CSV of results.", metavar="RUN|CSV"
        ),
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, help="Also print how many devices this number of jobs needs."
        ),
    ] = None,
    latency_limit: Annotated[
        str | None,
        typer.Option(
            "--latency-limit",
            help="Also the best throughput within a latency: p99=20ms, or a mean in ms.",
        ),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            help="Of a scan of a command: also what is expected of a point, such as "
            "batch=16,workers=2. Repeatable.",
            metavar="NAME=VALUE,...",
        ),
    ] = None,
    form: Annotated[Form, typer.Option("--format", help=FORM_HELP)] = Form.TABLE,
    json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Fit throughput curves: knee, recommended point, what bends them."""
    from profharness.analysis.curves.knee import devices_of
    from profharness.cli.sizing.axes import load_axes, show_axes
    from profharness.report.json import saturation_json
    from profharness.report.text.saturation import NO_JOBS, saturation_text

    json = json or form is Form.JSON
    scanned = load_axes(path)
    if scanned is not None:
        _refuse_levels(jobs, latency_limit)
        show_axes(scanned, at or [], form=Form.JSON if json else form)
        return
    _refuse_axes(at)
    found, points = load_scan(path)
    limit = parse_limit(latency_limit, points) if latency_limit else None
    if json and jobs is not None and any(one.axis == "batch_size" for one in found):
        mention(f"profharness: {NO_JOBS}")
    if json:
        devices = None if jobs is None else [devices_of(series, jobs) for series in found]
        sys.stdout.write(saturation_json(found, devices))
    elif form is Form.MD:
        from profharness.report.md.saturation import saturation_markdown

        sys.stdout.write(saturation_markdown(found, jobs, limit, points))
    else:
        sys.stdout.write(saturation_text(found, jobs, limit, points))


def _refuse_axes(at: list[str] | None) -> None:
    """Raises UsageError for a point of a scan of a command, which levels of load are not."""
    from profharness.errors import UsageError

    if at:
        raise UsageError(
            "--at: this is no scan of a command over axes",
            "leave it out; the curve tells what lies between two levels",
        )


def _refuse_levels(jobs: int | None, latency_limit: str | None) -> None:
    """Raises UsageError for options of levels of load, which the axes of a command are not."""
    from profharness.errors import UsageError

    for option, given in (("--jobs", jobs), ("--latency-limit", latency_limit)):
        if given is not None:
            raise UsageError(
                f"{option}: this is a scan of a command, whose axes are no load",
                "leave it out",
            )


def load_scan(path: Path) -> tuple[tuple[Series, ...], tuple[PointSummary, ...]]:
    """The series, and the points of a run, of which a CSV has none. Raises InputError when there is
    no series.
    """
    from profharness.errors import InputError
    from profharness.rundir.jobs.arrays import is_array

    if is_array(path):
        return _of_array(path)
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
    from profharness.understand.loose.scans import scan_series

    return scan_series(path), ()


def _of_array(folder: Path) -> tuple[tuple[Series, ...], tuple[PointSummary, ...]]:
    """What the tasks of a job array measured so far; those that are missing are told."""
    from profharness.errors import InputError
    from profharness.understand.many.tasks import missing, tasks_of

    tasks = tasks_of(folder)
    for found in missing(tasks.rows):
        mention(f"profharness: {found.message}")
    if not tasks.summary.series:
        raise InputError(
            f"{folder}: no two levels were measured yet",
            "wait for more tasks; `profharness ls` lists them",
        )
    return tasks.summary.series, tasks.summary.points


def parse_limit(text: str, points: tuple[PointSummary, ...]) -> LatencyLimit:
    """`p99=20ms`, or a number of ms for the mean. Raises UsageError, also for percentiles of a CSV,
    which holds none.
    """
    from profharness.errors import UsageError
    from profharness.rundir.latency_limit import LatencyLimit, parse_latency_limit

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
