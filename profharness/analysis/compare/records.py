"""What a comparison of two runs says, as typed records. Nothing is computed here."""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.analysis.compare.operators.records import Branch, OtherWork, StepChange, WorkTable
from profharness.analysis.compare.reasons import Reason
from profharness.analysis.records import SCHEMA, Estimate

WORK_TABLES = ("operators", "categories", "modules", "shapes")
"""The fields of a comparison that hold tables of work."""
Better = Literal["higher", "lower", "neither"]


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """One figure in both runs: `change` is b / a - 1, `noise` the largest |change| that chance
    explains (None: not known).

    `significant` is None where no noise is known, False where it is not bounded (an interval that
    reaches 0): then `unbounded` says that nothing can be told. `better` says which way is up for
    this figure.
    """

    name: str
    unit: str
    a: float
    b: float
    change: float
    low: float | None = None
    high: float | None = None
    noise: float | None = None
    significant: bool | None = None
    unbounded: bool = False
    better: Better = "neither"


class RangeDelta(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of which a run knows only ends, as it did not record all work: no change can be
    told, unless it lies `apart` in the two runs. A side that has a value has no ends or its
    interval.
    """

    name: str
    unit: str
    a: Estimate
    b: Estimate
    apart: bool


class PointComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One point that both runs measured."""

    point: str
    backend: str = ""
    batch_size: int | None = None
    concurrency: int | None = None
    processes: int | None = None
    deltas: tuple[Delta, ...] = ()
    ranges: tuple[RangeDelta, ...] = ()
    reasons: tuple[Reason, ...] = ()


class HotspotDelta(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel or operator: calls and mean time per call in both runs; None where a run does not
    have it.
    """

    name: str
    category: str
    calls_a: int | None = None
    calls_b: int | None = None
    mean_a_ns: float | None = None
    mean_b_ns: float | None = None
    total_a_ns: int | None = None
    total_b_ns: int | None = None
    share_a: float | None = None
    share_b: float | None = None
    change: float | None = None
    reason: str = ""
    noise: float | None = None
    significant: bool | None = None


class HotspotComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Hotspots by the same grouping in both runs, the largest change of total time first."""

    by: str
    pass_a: str | None
    pass_b: str | None
    rows: tuple[HotspotDelta, ...]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Something in which the runs differ besides their results, None where one does not have it."""

    name: str
    a: str | None
    b: str | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that both runs have, and what only one has. `asked` and `ran_on` are what else may
    explain a change. `step` and what follows it say where the time of traces with operators
    differs; None without. `other_work` says why two traces are no measurements of the same work.

    `errors_a` and `errors_b` are the ids of each run's own findings of that severity: figures to be
    trusted less.
    """

    schema: int = SCHEMA
    run_a: str
    run_b: str
    points: tuple[PointComparison, ...] = ()
    run: tuple[Delta, ...] = ()
    run_ranges: tuple[RangeDelta, ...] = ()
    reasons: tuple[Reason, ...] = ()
    hotspots: tuple[HotspotComparison, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    asked: tuple[Difference, ...] = ()
    ran_on: tuple[Difference, ...] = ()
    errors_a: tuple[str, ...] = ()
    errors_b: tuple[str, ...] = ()
    step: StepChange | None = None
    other_work: OtherWork | None = None
    operators: WorkTable | None = None
    shapes: WorkTable | None = None
    modules: WorkTable | None = None
    categories: WorkTable | None = None
    tree: Branch | None = None

    @property
    def work(self) -> tuple[WorkTable, ...]:
        """The tables of work that there are."""
        tables = (getattr(self, name) for name in WORK_TABLES)
        return tuple(table for table in tables if table is not None)
