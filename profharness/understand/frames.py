"""Runs and trace files as pandas frames, for notebooks and scripts: `from profharness.understand
import frames`.

The figures are those of the commands of the same name (docs/frames.md#functions). Times are
integers in ns, and none is rounded. A column whose name does not tell its unit has it in
`frame.attrs["units"]`. What a reader lost or repaired is a warning of Python's. Every function
raises `InputError` for a path that is missing or cannot be read, and `UsageError` for paths that do
not go together; both are `profharness.errors.ProfharnessError`, with a `message` and a `hint`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from profharness.analysis.operators.engine import NO_INPUT
from profharness.errors import UsageError
from profharness.findings import problem_text
from profharness.report.frame import frame_of, integers
from profharness.trace.columns.strings import Strings
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32
from profharness.trace.sample_metrics import unit_of
from profharness.understand.load import check_paths, load

if TYPE_CHECKING:
    import pandas as pd

    from profharness.analysis.kernels.tally import Grouping
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.analysis.records import ProblemRow, Summary
    from profharness.trace.model import Kernels, Problem, Samples, Trace

    OnePath = str | PathLike[str]
    Paths = OnePath | Sequence[OnePath]


def points(run: OnePath) -> pd.DataFrame:
    """One row per point of a scan, as `report RUN --json` lists them: settings, `throughput` in
    items/s, latencies in ms, each with the ends `_low` and `_high` of its 95 % interval.

    Raises UsageError where the path is no run.
    """
    from profharness.report.tables.results import point_values

    summary = _summary(_checked(run))
    _warn(summary.problems)
    if summary.run is None:
        raise UsageError(f"{run} is no run: it has no points", "name a run directory")
    return frame_of(point_values(summary))


def metrics(paths: Paths, *, formulas: Paths = (), capture_trace: Paths = ()) -> pd.DataFrame:
    """One row per figure of a run or of trace files, as `metrics --json` lists them: those of each
    point, then those of the whole (where `point` is missing). `value`, `low` and `high` are in
    `unit`, NaN where not measured; `needs` says what would give the figure. `formulas` and
    `capture_trace` are files for the options of the same names.
    """
    from profharness.report.tables.figures import figure_values

    summary = _summary(_checked(paths), _input(formulas, capture_trace))
    _warn(summary.problems)
    return frame_of(figure_values(summary))


def hotspots(
    paths: Paths,
    by: Grouping | None = None,
    *,
    pass_name: str | None = None,
    formulas: Paths = (),
    capture_trace: Paths = (),
) -> pd.DataFrame:
    """One row per kernel, op, shape, module, range, stack, category or host call (`by`), with the
    columns of `hotspots --format csv`: times in ns, `share` between 0 and 1. `attrs` holds `by`,
    `pass`, the table's `total_ns` and `device_ns_outside`. `formulas` and `capture_trace` are files
    for the options of the same names.

    Raises UsageError for a pass that the run does not hold, and for another `by`.
    """
    from profharness.analysis.kernels.tally import Grouping
    from profharness.report.tables.hotspots import hotspot_values
    from profharness.understand.hotspots import hotspots_of, load_for
    from profharness.understand.many.jobs import Workers
    from profharness.understand.many.tables import hotspots_of_files
    from profharness.understand.replays import with_captures

    if by not in (None, *get_args(Grouping)):
        raise UsageError(f"by {by!r}: no such rows", f"one of {', '.join(get_args(Grouping))}")
    named = _checked(paths)
    given = _input(formulas, capture_trace)
    if len(named) == 1 and named[0].is_dir():
        loaded = with_captures(load_for(named, by), given.captures)
        _warn(loaded.trace.problems)
        table = hotspots_of(loaded, by, pass_name, operator_input=given)
    elif pass_name is not None:
        raise UsageError(f"{pass_name}: no such pass", "loose files have no passes")
    else:
        of_files = hotspots_of_files(named, by, workers=Workers(1), operator_input=given)
        _warn([*(one.problem for one in of_files.unread), *of_files.problems])
        table = of_files.table
    frame = frame_of(hotspot_values(table))
    frame.attrs |= {
        "by": table.by,
        "pass": table.pass_name,
        "total_ns": table.total_ns,
        "device_ns_outside": table.device_ns_outside,
    }
    return frame


def kernels(paths: Paths, *, pass_name: str | None = None) -> pd.DataFrame:
    """One row per kernel: `start_ns` and `dur_ns` as int64, name, place, launch geometry
    (docs/formats.md#tables). Of a run they are those of the pass that `hotspots` takes, on the
    run's clock; a single file's are on its own clock.

    Raises UsageError for a pass that the run does not hold, and for files without a common clock.
    """
    from profharness.understand.hotspots import records_of

    loaded = load(_checked(paths))
    _warn(loaded.trace.problems)
    _, trace = records_of(loaded, pass_name)
    return _frame(trace, trace.kernels)


def telemetry(paths: Paths) -> pd.DataFrame:
    """One row per sample of one metric, in the metric's `unit`: it holds from `at_ns` to
    `until_ns`, which are equal for an instant. Times are int64 ns, of a run on the clock of its
    kernels. `device` is missing for what the host says of itself.

    Each device as a column: `frame[frame["metric"] == "power_w"].pivot_table("value", "at_ns",
    "device", observed=True)`.
    """
    loaded = load(_checked(paths))
    _warn(loaded.trace.problems)
    trace = loaded.trace
    frame = _frame(trace, trace.samples)
    hosts = [source.host for source in trace.sources]
    units = {name: unit_of(name) for name in trace.strings.decode(np.unique(trace.samples.metric))}
    frame.insert(2, "host", _texts(trace.samples.source, hosts))
    frame.insert(5, "unit", frame["metric"].map(units))
    return frame


def _checked(paths: Paths) -> list[Path]:
    named = _listed(paths)
    check_paths(named)
    return named


def _listed(paths: Paths) -> list[Path]:
    several = [paths] if isinstance(paths, str | PathLike) else paths
    return [Path(path) for path in several]


def _input(formulas: Paths, capture_trace: Paths) -> OperatorInput:
    """Raises as `operator_input` does."""
    from profharness.understand.operator_work import operator_input

    return operator_input(_listed(formulas), _listed(capture_trace))


def _summary(paths: Sequence[Path], given: OperatorInput = NO_INPUT) -> Summary:
    """What `metrics` prints of the same paths."""
    from profharness.understand.many.figures import summarise_files
    from profharness.understand.many.jobs import Workers
    from profharness.understand.replays import with_captures
    from profharness.understand.report_run import summarise

    if len(paths) > 1:
        return summarise_files(paths, Workers(1), operator_input=given)
    return summarise(with_captures(load(paths), given.captures), operator_input=given)


def _warn(problems: Sequence[Problem | ProblemRow]) -> None:
    """Python's warnings, at the line that called a function of this module."""
    for one in problems:
        if one.severity != "info":
            warnings.warn(problem_text(one.source, one.count, one.message), stacklevel=3)


def _frame(trace: Trace, table: Kernels | Samples) -> pd.DataFrame:
    """Every column as it is declared, with names in place of positions, and missing what was not
    recorded; then the pass. Texts are categories.
    """
    import pandas as pd

    pools = {
        "devices": lambda: [device.index for device in trace.devices],
        "streams": lambda: [stream.name for stream in trace.streams],
        "ops": lambda: trace.strings.decode(trace.ops.name),
        "sources": lambda: [source.path for source in trace.sources],
    }
    columns: dict[str, Any] = {}
    units = {}
    for column in fields(table):
        values, unit = getattr(table, column.name), column.metadata["unit"]
        if unit == "string":
            values = _texts(values, trace.strings.texts)
        elif unit == "index":
            values = _texts(values, pools[column.metadata["of"]]())
        elif unit != "ns" and values.dtype.kind == "i":
            values = integers(values.copy(), values == NULL)
        columns[column.name] = values
        if unit not in ("", "ns", "string", "index"):
            units[column.name] = unit
    columns["pass"] = _texts(table.source, [one.pass_name for one in trace.sources])
    frame = pd.DataFrame(columns)
    frame.attrs["units"] = units
    return frame


def _texts(positions: Any, texts: Sequence[str]) -> Any:
    """Categories: the texts at these positions of the list; missing are NULL and empty texts."""
    import pandas as pd

    pool = Strings()
    codes = [NULL if text == "" else pool.code(text) for text in texts]
    found: I32 = np.array([*codes, NULL], np.int32)[positions]
    return pd.Categorical.from_codes(found, pd.Index(pool.texts)).remove_unused_categories()
