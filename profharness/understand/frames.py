"""Runs and trace files as pandas frames by functions: `from profharness.understand import frames`.

They are a thin layer over `profharness.open` and `profharness.read` (docs/python.md), for whoever
wants one table and no object. Times are integers in ns, and none is rounded. A column whose name
does not tell its unit has it in `frame.attrs["units"]`. What a reader lost or repaired is a warning
of Python's. Every function raises `InputError` for a path that is missing or cannot be read, and
`UsageError` for paths that do not go together; both are `profharness.ProfharnessError`, with a
`message` and a `hint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from profharness.errors import UsageError
from profharness.report.frame import frame_of
from profharness.understand.session.opening import listed, opened
from profharness.understand.session.recording import Recording, Run

if TYPE_CHECKING:
    import pandas as pd

    from profharness.analysis.kernels.tally import Grouping

    OnePath = str | PathLike[str]
    Paths = OnePath | Sequence[OnePath]


def points(run: OnePath) -> pd.DataFrame:
    """One row per point of a scan, as `report RUN --json` lists them: settings, `throughput` in
    items/s, latencies in ms, each with the ends `_low` and `_high` of its 95 % interval.

    Raises UsageError where the path is no run.
    """
    recording = _opened(run)
    if not isinstance(recording, Run):
        raise UsageError(f"{run} is no run: it has no points", "name a run directory")
    return recording.points.to_pandas()


def metrics(paths: Paths, *, formulas: Paths = (), capture_trace: Paths = ()) -> pd.DataFrame:
    """One row per figure of a run or of trace files, as `metrics --json` lists them: those of each
    point, then those of the whole (where `point` is missing). `value`, `low` and `high` are in
    `unit`, NaN where not measured; `needs` says what would give the figure. `formulas` and
    `capture_trace` are files for the options of the same names.
    """
    from profharness.report.tables.figures import figure_values

    return frame_of(figure_values(_opened(paths, formulas, capture_trace).summary))


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
    return _opened(paths, formulas, capture_trace).hotspots(by, pass_name=pass_name)


def kernels(paths: Paths, *, pass_name: str | None = None) -> pd.DataFrame:
    """One row per kernel: `start_ns` and `dur_ns` as int64, name, place, launch geometry
    (docs/formats.md#tables). Of a run they are those of the pass that `hotspots` takes, on the
    run's clock; a single file's are on its own clock.

    Raises UsageError for a pass that the run does not hold, and for files without a common clock.
    """
    return _opened(paths).trace(pass_name=pass_name).kernels.to_pandas()


def telemetry(paths: Paths) -> pd.DataFrame:
    """One row per sample of one metric, in the metric's `unit`: it holds from `at_ns` to
    `until_ns`, which are equal for an instant. Times are int64 ns, of a run on the clock of its
    kernels. `device` is missing for what the host says of itself.

    Each device as a column: `frame[frame["metric"] == "power_w"].pivot_table("value", "at_ns",
    "device", observed=True)`.
    """
    return _opened(paths).trace().samples.to_pandas()


def _opened(paths: Paths, formulas: Paths = (), capture_trace: Paths = ()) -> Recording:
    return opened(*(listed(tuple(_each(one))) for one in (paths, formulas, capture_trace)))


def _each(paths: Paths) -> Sequence[OnePath]:
    return [paths] if isinstance(paths, str | PathLike) else paths
