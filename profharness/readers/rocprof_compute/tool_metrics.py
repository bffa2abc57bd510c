"""The metrics that `rocprof-compute analyze` worked out: from its tables, whose form changed with
3.7, and from its database.

A metric has several values (`Avg`, `Min`, `Max`, `Peak`, ...) by name. Its mean, lowest and highest
are taken; what has no number, and shares of a peak, are left out. A cell that holds neither a
number nor a word for "not known" is a problem. Names carry the tool's own number of the metric
(2.1.0), by which its option -b finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from profharness.readers.bytes.csv_columns import Table, not_numbers
from profharness.readers.bytes.limits import finite
from profharness.readers.bytes.sqlite_tables import Database
from profharness.trace.model import Problem
from profharness.trace.statistics import ToolMetric

VIEW = {"metric_name", "value_name", "value"}
"""Columns of the tables of 3.7 and later, one row per value; they are those of the database's
views.
"""

_DEFINITION = "compute_metric_definition"
_OF_KERNELS, _OF_WORKLOADS = "compute_kernel_metric_value", "compute_workload_metric_value"
_MEAN, _LOW, _HIGH = ("avg", "value", "mean"), ("min",), ("max",)
_TAKEN = frozenset((*_MEAN, *_LOW, *_HIGH))
_NUMBER = re.compile(r"(\d+\.\d+)_")  # 2.1_Speed-of-Light.csv
UNKNOWN = frozenset({"n/a", "na", "nan", "none"})
"""Words by which the tool says that it does not know."""

_EMPTY = UNKNOWN | {"", "null", "<na>", "-"}  # and those of the libraries that it uses


class _Values(dict[tuple[str, str, str], dict[str, float]]):
    """Values by their names, of a kernel, a metric and a unit; `lost` counts those that are no
    numbers.
    """

    lost = 0

    def note(self, key: tuple[str, str, str], kind: str, value: object) -> None:
        """A value under its name, where it is a number; the first of several stays."""
        name, text = kind.strip().lower(), str(value).strip()
        if text.lower() in _EMPTY or name not in _TAKEN:
            return
        if (number := finite(text)) is None:
            self.lost += 1
        else:
            self.setdefault(key, {}).setdefault(name, number)


def of_report(table: Table, problems: list[Problem]) -> tuple[ToolMetric, ...]:
    """A table of the report, as releases before 3.7 save it: of all kernels together. What is wrong
    with its values goes to `problems`, here and below.
    """
    match = _NUMBER.match(table.path.name)
    number = f"{match[1]} " if match else ""
    columns = {
        name: table.first(name) or [""] * table.rows
        for name in ("Metric", "Unit", "Avg", "Min", "Max")
    }
    values = _Values()
    for row in range(table.rows):
        key = ("", f"{number}{columns['Metric'][row]}", columns["Unit"][row].strip())
        for name in ("Avg", "Min", "Max"):
            values.note(key, name, columns[name][row])
    problems += not_numbers(table.path, values.lost)
    return tuple(_metrics(values))


def of_view(table: Table, problems: list[Problem]) -> tuple[ToolMetric, ...]:
    """A table of 3.7 or later, of single kernels or of the workload."""
    names = ("kernel_name", "metric_id", "metric_name", "unit", "value_name", "value")
    kernels, numbers, metrics, units, kinds, texts = (
        table.first(name) or [""] * table.rows for name in names
    )
    values = _Values()
    for row in range(table.rows):
        name = f"{numbers[row]} {metrics[row]}".strip()
        values.note((kernels[row], name, units[row].strip()), kinds[row], texts[row])
    problems += not_numbers(table.path, values.lost)
    return tuple(_metrics(values))


def of_database(database: Database, path: Path, problems: list[Problem]) -> tuple[ToolMetric, ...]:
    """The database's metrics: of the workload, then of each kernel, in its order."""
    if not database.size(_DEFINITION):
        return ()
    definitions = {
        uuid: (f"{number or ''} {name or ''}".strip(), unit or "")
        for uuid, number, name, unit in database.rows(
            _DEFINITION, ("metric_uuid", "metric_id", "name", "unit")
        )
    }
    kernels = dict(database.rows("compute_kernel", ("kernel_uuid", "kernel_name")).fetchall())
    values = _Values()
    for table, owner in ((_OF_WORKLOADS, ""), (_OF_KERNELS, "kernel_uuid")):
        if not database.size(table):
            continue
        columns = ("metric_uuid", "value_name", "value", *((owner,) if owner else ()))
        for metric, kind, value, *of in database.rows(table, columns):
            if metric in definitions:
                name, unit = definitions[metric]
                kernel = str(kernels.get(of[0], "")) if of else ""
                values.note((kernel, name, unit), str(kind), value)
    problems += not_numbers(path, values.lost)
    return tuple(_metrics(values))


def _metrics(values: _Values) -> Iterator[ToolMetric]:
    for (kernel, name, unit), of in values.items():
        mean = _first(of, _MEAN)
        if mean is not None:
            yield ToolMetric(name, unit, mean, kernel, _first(of, _LOW), _first(of, _HIGH))


def _first(values: dict[str, float], names: Iterable[str]) -> float | None:
    return next((values[name] for name in names if name in values), None)
