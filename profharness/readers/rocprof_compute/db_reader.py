"""The analysis database of rocprof-compute (ROCm 7.x, `rocprof_compute_<hash>.db`): dispatches and
kernels of its workloads, and the metrics that the tool made of its counters.

Its schema is that of `analysis_orm.py` in rocprofiler-compute: a table of dispatches with kernel,
device and times, one of kernels with their names, and tables of metrics and their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import Table
from profharness.readers.bytes.sqlite_tables import Database, opened
from profharness.readers.rocprof_compute import reader as rocprof_compute
from profharness.readers.rocprof_compute import tool_metrics
from profharness.rundir.databases.header import MAGIC
from profharness.trace.model import Problem, Trace
from profharness.trace.statistics import ToolMetric
from profharness.trace.wanted import Wanted

name = "rocprof-compute-db"

_DISPATCH = {
    "dispatch_uuid",
    "kernel_uuid",
    "dispatch_id",
    "gpu_id",
    "start_timestamp",
    "end_timestamp",
}
_KERNEL = {"kernel_uuid", "kernel_name"}
_NAMES = {
    "dispatch_id": "Dispatch_ID",
    "gpu_id": "GPU_ID",
    "pid": "pid",
    "start_timestamp": "Start_Timestamp",
    "end_timestamp": "End_Timestamp",
}


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """A SQLite file whose schema has the tool's keys."""
    return head.startswith(MAGIC) and b"dispatch_uuid" in head and b"kernel_uuid" in head


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file: kernels. Raises InputError when it is no readable database of this
    kind.
    """
    with opened(path) as database:
        table = _dispatches(database, path)
        trace = rocprof_compute.trace_of([replace(table, damage=database.damage)], name)
        lost: list[Problem] = []
        metrics = tool_metrics.of_database(database, path, lost)
        return replace(
            trace,
            tool_metrics=metrics,
            problems=(*trace.problems, *_of_file(database), *_noted(path, metrics), *lost),
        )


def metrics_of(path: Path, problems: list[Problem]) -> tuple[ToolMetric, ...]:
    """The metrics alone; what is wrong with their values goes to `problems`. Raises InputError as
    `read` does.
    """
    with opened(path) as database:
        return tool_metrics.of_database(database, path, problems)


def _of_file(database: Database) -> tuple[Problem, ...]:
    """What is said of the file beside its damage, which the reader of tables says itself."""
    return tuple(problem for problem in database.problems if problem.severity != "error")


def _noted(path: Path, metrics: tuple[ToolMetric, ...]) -> Iterator[Problem]:
    if metrics:
        yield Problem(
            "info",
            str(path),
            len(metrics),
            "metrics are those of the tool's own analysis, in its units; their meaning changed "
            "between its versions",
        )


def _dispatches(database: Database, path: Path) -> Table:
    # the narrowest first: views repeat the keys of tables beside columns of their own
    columns_of = {
        table: frozenset(columns)
        for table, columns in sorted(database.columns.items(), key=lambda item: len(item[1]))
    }
    dispatch = next((table for table, columns in columns_of.items() if columns >= _DISPATCH), None)
    kernel = next(
        (
            table
            for table, columns in columns_of.items()
            if columns >= _KERNEL and not columns & {"dispatch_uuid", "metric_id"}
        ),
        None,
    )
    if dispatch is None or kernel is None:
        raise InputError(
            f"{path} holds no table of dispatches",
            "name the database as `rocprof-compute analyze` wrote it",
        )
    names = dict(database.rows(kernel, ("kernel_uuid", "kernel_name")).fetchall())
    chosen = [column for column in _NAMES if column in columns_of[dispatch]]
    rows = database.rows(dispatch, ("kernel_uuid", *chosen)).fetchall()
    columns = {
        _NAMES[column]: [_text(row[place]) for row in rows]
        for place, column in enumerate(chosen, 1)
    }
    columns["Kernel_Name"] = [
        _text(names.get(row[0])) or ("unknown kernel" if row[0] is None else f"kernel {row[0]}")
        for row in rows
    ]
    return Table(path, columns, len(rows))


def _text(value: object) -> str:
    """A value as a CSV file would hold it; means of times are floats."""
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else str(value)
