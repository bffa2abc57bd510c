"""A run or trace files as one object, whose figures are those of the commands.

Nothing is read before it is asked for, and all is read and worked out once. A frame that a method
gives is the caller's own: to change it changes nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.errors import UsageError
from profharness.report.frame import frame_of
from profharness.rundir.shown.screen import one_line
from profharness.understand.session.listings import Asked, Listing, listing_of
from profharness.understand.session.tables import Records, TraceTables
from profharness.understand.session.warned import warn

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from profharness.analysis.records import PointSummary, ProblemRow, Summary
    from profharness.analysis.use.records import DeviceUse
    from profharness.findings import Finding
    from profharness.rundir.manifest import Manifest
    from profharness.understand.load import Loaded

METRIC_COLUMNS = ("name", "value", "unit", "low", "high", "from", "needs")


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Trace files, read as `metrics` reads them: several are the ranks of one job.

    Every property and method may raise InputError for a file that is missing, damaged or of no
    known format. What a reader lost or repaired is a warning of Python's, and stands in `problems`.
    """

    paths: tuple[Path, ...]
    operator_input: OperatorInput = NO_INPUT
    _kept: dict[Asked, Listing] = field(default_factory=dict, init=False)

    @cached_property
    def summary(self) -> Summary:
        """All figures and findings as one record, from which `metrics` and the report print."""
        paths = self._readable
        if len(paths) > 1:
            from profharness.understand.many.figures import summarise_files

            found = summarise_files(paths, operator_input=self.operator_input)
            warn(found.problems)
            return found
        from profharness.understand.report_run import summarise

        return summarise(self._loaded[False], operator_input=self.operator_input)

    @property
    def _readable(self) -> tuple[Path, ...]:
        """The paths, for whoever reads them now."""
        return self.paths

    def hotspots(self, by: str | None = None, *, pass_name: str | None = None) -> pd.DataFrame:
        """One row per kernel, op, shape, module, range, stack, category, (host) call, line,
        instruction, sequence or memory, with the columns of `hotspots --format json`: times in ns,
        shares between 0 and 1. Without `by` the rows are kernels, or operators where nothing ran on
        a device.

        `attrs` holds `by`, `pass`, the table's `total_ns` and `device_ns_outside`. Raises
        UsageError for rows or a pass that do not exist.
        """
        asked = Asked(by, pass_name)
        if asked not in self._kept:
            listing = listing_of(self._readable, asked, self.operator_input)
            warn(listing.problems)
            self._kept[asked] = listing
        found = self._kept[asked]
        frame = frame_of(found.table)
        frame.attrs |= {
            "by": found.by,
            "pass": found.pass_name,
            "total_ns": found.total_ns,
            "device_ns_outside": found.device_ns_outside,
        }
        return frame

    def metrics(self, *, points: bool = False, point: str | None = None) -> pd.DataFrame:
        """One row per metric of the whole: `name`, `value`, `unit`, `low` and `high` (the ends of
        its 95 % interval), `from` (where it comes from), `needs` (what would give it). A value is
        in its unit, and NaN where it was not measured.

        `point` gives the metrics of that point instead. `points=True` puts those of all points
        before those of the whole, with the column `point`, which is missing for the whole. Raises
        UsageError for a point that is not there.
        """
        from profharness.report.tables.figures import figure_values

        frame = frame_of(figure_values(self.summary)).rename(columns={"figure": "name"})
        if points:
            return frame[["point", *METRIC_COLUMNS]]
        if point is None:
            chosen = frame["point"].isna()
        else:
            self._point(point)
            chosen = frame["point"] == point
        return frame.loc[chosen, list(METRIC_COLUMNS)].reset_index(drop=True)

    def _point(self, name: str) -> PointSummary:
        for one in self.summary.points:
            if one.point == name:
                return one
        names = ", ".join(one.point for one in self.summary.points)
        raise UsageError(
            f"there is no point {one_line(name)!r}",
            f"the points are {one_line(names)}" if names else "only runs of scans have points",
        )

    @property
    def verdict(self) -> dict[str, Any] | None:
        """What holds the whole back, as in JSON: `kind`, `text`, and `at_most`, the bound on the
        factor of a gain. None where no verdict can be made: `verdict_needs` says what it takes.
        """
        from profharness.report.json import verdict_object

        return verdict_object(self.summary.verdict)

    @property
    def verdict_needs(self) -> str | None:
        """What it takes to give a verdict; None where there is one."""
        return self.summary.verdict_needs or None

    @property
    def partition(self) -> dict[str, int] | None:
        """The parts of the time of the whole in ns, as in JSON: disjoint, with the sum `window_ns`.
        None where device work has no times.
        """
        from profharness.report.json import partition_object

        return partition_object(self.summary.partition)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a reader must know before trusting the figures: records with `id`, `severity`,
        `message`, `figures`, `advice` and `point`.
        """
        from profharness.report.text.findings import all_findings

        return tuple(all_findings(self.summary))

    @property
    def problems(self) -> tuple[ProblemRow, ...]:
        """What the readers dropped or repaired: records with `source`, `severity`, `count` and
        `message`.
        """
        return self.summary.problems

    def trace(self, *, pass_name: str | None = None, allow_unaligned: bool = False) -> TraceTables:
        """The records themselves: `.kernels.to_pandas()` and so on, of the pass that `hotspots`
        takes or of another.

        Raises UsageError for a pass that is not there, and for files that share no clock unless
        `allow_unaligned`: then the times of each file stand as its tool wrote them.
        """
        from profharness.understand.hotspots import records_of

        loaded = self._loaded[allow_unaligned]
        chosen, records = records_of(loaded, pass_name)
        return TraceTables(loaded.trace, records, chosen)

    @cached_property
    def _loaded(self) -> _Loading:
        return _Loading(self._readable, self.operator_input)

    @cached_property
    def device_use(self) -> DeviceUse | None:
        """How well the devices were used (docs/metrics.md#device-use); None where nothing was
        recorded of a device. Of several files each is read alone, and rows are those of all.
        """
        from profharness.understand.device_use import use_of
        from profharness.understand.many.use import are_several, use_of_files

        paths = self._readable
        if are_several(paths):
            return use_of_files(paths, self.operator_input)
        return use_of(self._loaded[True], self.operator_input)

    def plot(
        self, kind: str | None = None, *, title: str = "", top: int = 20, by: str | None = None
    ) -> Figure:
        """A matplotlib figure: `throughput` (throughput and latency over what the scan varies),
        `latency` (latency over throughput), `roofline`, `hotspots` (the `top` rows `by` what
        `hotspots` takes, and their running sum) or `partition` (where the time went). Without a
        kind the first that there are figures for.

        Raises Unavailable where matplotlib is missing (extra `plots`), UsageError for a kind that
        does not exist, and InputError where nothing was measured for it.
        """
        from profharness.understand.session.plots import Wanted, draw

        figure: Figure = draw(self, Wanted(kind, title, top, by))
        return figure

    def compare(self, other: Recording, by: str | None = None) -> pd.DataFrame:
        """What changed from this to `other`, as `compare --json` has it: one row per figure that
        both have, those of points before those of the whole, where `point` is missing.

        `a` and `b` are the values in `unit`, `change` is b / a - 1 with the ends `low` and `high`
        of its 95 % interval; `noise` is the largest change that chance explains, and `significant`
        says whether this one is larger. They are missing where no noise is known.

        With `by` (op, shape, module or category) the rows are where the time of both differs, with
        the columns of `operators` and its like in JSON; `attrs["step"]` is the time of a step.
        Raises UsageError for rows that do not exist or that one of them did not record.
        """
        if by is not None:
            from profharness.understand.session.works import work_frame

            return work_frame(self, other, by)
        from profharness.report.tables.comparison import delta_values
        from profharness.understand.session.works import compared

        return frame_of(delta_values(compared(self, other)))

    def sql(self, query: str) -> pd.DataFrame:
        """The answer of Perfetto's trace processor about the merged trace (PerfettoSQL; times in
        ns). PROFHARNESS_TRACE_PROCESSOR names the program, or the HOST:PORT of one that runs;
        nothing is downloaded.

        Raises UsageError where it is not set or the query is wrong, and Unavailable where the
        program does not answer.
        """
        from profharness.understand.session.sql import answer

        return answer(self, query)

    def __repr__(self) -> str:
        named = one_line(", ".join(str(path) for path in self.paths), 200)
        return f"<{type(self).__name__} {named}>"

    def _repr_html_(self) -> str:
        from profharness.understand.session.html import brief

        return brief(self.summary, type(self).__name__)


@dataclass(frozen=True, eq=False, repr=False)
class _Loading:
    """The records of the paths, with and without a common clock; each is read once."""

    paths: tuple[Path, ...]
    operator_input: OperatorInput

    def __getitem__(self, allow_unaligned: bool) -> Loaded:
        return self._unaligned if allow_unaligned and len(self.paths) > 1 else self._aligned

    @cached_property
    def _aligned(self) -> Loaded:
        return self._read(allow_unaligned=False)

    @cached_property
    def _unaligned(self) -> Loaded:
        return self._read(allow_unaligned=True)

    def _read(self, *, allow_unaligned: bool) -> Loaded:
        from profharness.understand.load import load
        from profharness.understand.replays import with_captures

        loaded = load(self.paths, allow_unaligned=allow_unaligned)
        warn(loaded.trace.problems)
        return with_captures(loaded, self.operator_input.captures)


@dataclass(frozen=True, eq=False, repr=False)
class Run(Recording):
    """A run directory: a recording with points, passes and a manifest."""

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.paths[0]

    @cached_property
    def manifest(self) -> Manifest:
        """What was asked, what ran and what came out (docs/run-directory.md#manifest)."""
        from profharness.rundir.paths import RunDir

        return RunDir.open(self.path).read_manifest()

    @property
    def exit_status(self) -> int | None:
        """Of a command its own exit status, 128 + n for signal n; None of a scan, and where the
        command did not end.
        """
        return self.manifest.exit_status

    @property
    def points(self) -> Records:
        """The points of a scan over all passes: settings, `throughput` in items/s, latencies in ms,
        each with the ends `_low` and `_high` of its 95 % interval.
        """
        from profharness.report.tables.results import point_values

        table = point_values(self.summary)
        return Records("points", len(table.rows), lambda: frame_of(table))
