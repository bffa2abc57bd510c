"""The answers of the tools, as typed records: their fields are the keys of the JSON documents
(docs/json.md), where both say the same. The schema that a tool tells its client is made of them.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from profharness.analysis.compare.records import Comparison
from profharness.analysis.records import HotspotRow
from profharness.findings import Finding
from profharness.stats.estimate import Figure

LeftOut = Annotated[int, Meta(description="how many further ones there are than stand here")]


class NamedFigure(Figure, frozen=True, kw_only=True):
    """One figure with its 95 % interval (`low`, `high`), where it is `from`, and what it `needs`
    where `value` is null, which means not measured and never 0. Shares are from 0 to 1.
    """

    name: str
    title: str = ""
    meaning: str = ""


class ShownVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What holds a window back: its kind, one sentence with the evidence, and the factor by which
    the work could at most run faster without it (null: no bound holds).
    """

    kind: str
    text: str
    at_most: float | None


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """How much is left: the bound of the verdict in words, and the figures that show how full the
    device is.
    """

    at_most: float | None
    text: str
    figures: tuple[NamedFigure, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Is it saturated (`answer`), what to try (`next`), how sure this is (`trust`)."""

    path: str
    answer: str
    next: str
    trust: str
    verdict: ShownVerdict | None
    verdict_needs: Annotated[str, Meta(description="what a verdict would take, if there is none")]
    headroom: Headroom
    findings: tuple[Finding, ...]
    findings_left_out: LeftOut


class PointFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one point of a scan, and what holds it back."""

    point: str
    verdict: ShownVerdict | None
    figures: tuple[NamedFigure, ...]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the whole window and of each point."""

    path: str
    figures: tuple[NamedFigure, ...]
    points: tuple[PointFigures, ...]
    figures_left_out: LeftOut


class ListedRow(HotspotRow, frozen=True, kw_only=True, omit_defaults=True):
    """A row of hotspots, without the fields that are null."""


class HotspotTable(msgspec.Struct, frozen=True, kw_only=True):
    """The rows with most time; totals and shares are those of the whole table. Times in ns."""

    path: str
    by: str
    pass_name: str | None = msgspec.field(name="pass")
    total_ns: int | None
    busy_ns: int | None
    busy_any_ns: int | None
    device_span_ns: int | None
    device_ns_outside: int | None
    rows: tuple[ListedRow, ...]
    rows_left_out: LeftOut
    notes: tuple[str, ...]


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a significant change breaks, and at which point."""

    condition: str
    point: str
    change: float


class ComparedRuns(Comparison, frozen=True, kw_only=True):
    """Both runs point by point: `change` is b / a - 1, `noise` the largest change that chance
    explains, `significant` null where no noise is known.
    """

    breaches: tuple[Breach, ...]
    points_left_out: LeftOut
    rows_left_out: LeftOut


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run directory. A run that cannot be read has the state `damaged` and says why."""

    path: str
    state: str
    created: str = ""
    points: int = 0
    layers: tuple[str, ...] = ()
    note: str = ""


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """The runs and trace files directly in these folders."""

    folders: tuple[str, ...]
    runs: tuple[ListedRun, ...]
    runs_left_out: LeftOut
    trace_files: tuple[str, ...]
    trace_files_left_out: LeftOut


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What `profharness run` with these arguments would start: nothing was started."""

    command: tuple[str, ...]
    plan: str
