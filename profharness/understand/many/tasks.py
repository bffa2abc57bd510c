"""The tasks of a job array as one summary: the points of those that have any, on common curves,
and which tasks are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.analysis.records import PointSummary, Summary, TraceCounts
from profharness.analysis.run.series import run_series
from profharness.errors import InputError
from profharness.findings import Finding, finding
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.jobs.arrays import TaskRow, lacking, tasks_in
from profharness.rundir.paths import RunDir
from profharness.understand import report_run

_MOST_BYTES = 256 << 20
_NAMED = 8
# what summary.json has in other words than the record, and the curves need none of it
_LEFT_OUT = ("verdict", "partition", "grounds", "work", "kernels", "held", "classic")


@dataclass(frozen=True)
class Tasks:
    """Every task with what became of it, and the points of all as one summary. `facts` are the
    model, the way it was asked (`direct`), and each point's device.
    """

    rows: tuple[TaskRow, ...]
    summary: Summary
    facts: tuple[str, str, Mapping[str, str]] = ("", "direct", {})


def tasks_of(folder: Path) -> Tasks:
    """Read the results folder of an array. Raises InputError for a folder that is none."""
    rows = tasks_in(folder)
    points: list[PointSummary] = []
    findings: list[Finding] = list(missing(rows))
    facts: tuple[str, str, Mapping[str, str]] = ("", "direct", {})
    for row in rows:
        if row.run is None or row.run.kind != "scan" or not row.run.points:
            continue
        root = Path(row.run.path)
        try:
            of_task = _points(root)
            manifest = RunDir.open(root).read_manifest()
        except InputError as error:
            findings.append(_unreadable(row, error))
            continue
        model, via, devices = report_run.scan_facts(manifest)
        facts = model, via, {**facts[2], **devices}
        points += of_task[0]
        findings += [found for found in of_task[1] if found.point]
    measured = tuple(points)
    return Tasks(
        rows,
        Summary(
            source=str(folder),
            trace=TraceCounts(),
            points=measured,
            findings=tuple(findings),
            series=run_series(measured, findings, str(folder)),
        ),
        facts,
    )


def missing(rows: Sequence[TaskRow]) -> tuple[Finding, ...]:
    """The finding that tasks are not done, which names them; none where nothing is missing."""
    numbers = set(lacking(rows))
    without = [row for row in rows if row.task.number in numbers]
    running = sum(row.state == "running" for row in rows)
    if not without:
        return ()
    named = [
        f"{row.task.number}{f' ({row.task.value})' if row.task.value else ''}"
        + (" failed" if row.state == "failed" else "")
        for row in without[:_NAMED]
    ]
    rest = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
    runs = f"; {running} more run" if running else ""
    return (
        finding(
            "tasks-missing",
            f"{len(without)} of {len(rows)} tasks lack a run that is done: "
            f"{', '.join(named)}{rest}{runs}",
            missing=len(without),
            tasks=len(rows),
        ),
    )


def _unreadable(row: TaskRow, error: InputError) -> Finding:
    return finding("run-incomplete", f"task {row.task.number}: {error.message}", state="damaged")


def _points(root: Path) -> tuple[tuple[PointSummary, ...], tuple[Finding, ...]]:
    """What a run keeps of its figures; of a run that was killed before, they are worked out."""
    path = root / "summary.json"
    if not path.is_file():
        summary = report_run.summarise(report_run.load([root]))
        return summary.points, summary.findings
    with reading(path, "no readable summary"):
        document = msgspec.json.decode(read_file(Inside(root).require(path), _MOST_BYTES))
        plain = [
            {name: value for name, value in point.items() if name not in _LEFT_OUT}
            for point in document["points"]
        ]
        return (
            msgspec.convert(plain, tuple[PointSummary, ...]),
            msgspec.convert(document["findings"], tuple[Finding, ...]),
        )
