"""The page of a comparison: what `profharness compare` prints, with the parts of the time before
and after, and the findings of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from profharness.analysis.compare.reasons import Reason
from profharness.analysis.compare.records import (
    Comparison,
    Delta,
    Difference,
    HotspotComparison,
    RangeDelta,
)
from profharness.analysis.records import Partition, Summary
from profharness.report.compared.tables import work_tables
from profharness.report.page.tidy import filled
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.sheets.frame import rendered
from profharness.report.sheets.pictures import Bar, bars_picture
from profharness.report.table import Cell, Column, Emphasis, Table, first_rows, row_of
from profharness.report.tables.both import parts_table
from profharness.report.tables.comparison import SHOWN, ends_text, range_change
from profharness.report.text.changes import change_reason, change_text
from profharness.report.text.comparison import answer, side, sides_title, why
from profharness.report.text.figures import quantity_text
from profharness.report.text.findings import all_findings, finding_line
from profharness.report.text.folding import distinct_names
from profharness.report.text.labels import point_names_by_id
from profharness.report.text.names import title_of
from profharness.rundir.shown.screen import one_line
from profharness.units import format_ns

NOISE = (
    "A change counts where it is larger than the noise of both; where no noise is known, it stands "
    "alone."
)
MOST_HOTSPOTS, MOST_POINTS = 60, 200
_LEVELS = 5
_NAME = 64  # letters of a kernel's name; the whole of it unfolds


@dataclass(frozen=True)
class ComparisonPage:
    """What the page says; a table is None, a text empty, where there is nothing to say."""

    answer: str
    why: str
    a: str
    b: str
    noise: str
    differences: Table | None
    points: Table | None
    of_points: Table | None
    figures: Table | None
    reasons: Table | None
    picture: object
    work: tuple[Table, ...]
    parts: Table | None
    hotspots: tuple[Table, ...]
    left: tuple[tuple[str, str], ...]
    findings: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def render(comparison: Comparison, a: Summary, b: Summary) -> str:
    """The whole page of two summaries and their comparison."""
    names = one_line(comparison.run_a, 200), one_line(comparison.run_b, 200)
    page = ComparisonPage(
        answer=answer(comparison),
        why=why(comparison),
        a=side(names[0], comparison.errors_a),
        b=side(names[1], comparison.errors_b),
        noise=NOISE,
        differences=_differences((*comparison.asked, *comparison.ran_on)),
        points=_points(comparison),
        of_points=_point_reasons(comparison),
        figures=(
            filled(_deltas(comparison.run, comparison.run_ranges))
            if comparison.run or comparison.run_ranges
            else None
        ),
        reasons=_reasons(comparison.reasons),
        picture=_picture(a.partition, b.partition),
        work=tuple(
            replace(table, title=table.title.capitalize())
            for table in work_tables(comparison, _LEVELS, MOST_HOTSPOTS)
        ),
        parts=parts_table(a.partition, b.partition),
        hotspots=tuple(table for one in comparison.hotspots if (table := _hotspots(one))),
        left=tuple(_left(comparison)),
        findings=tuple(
            (f"{letter}  {name}", _findings(summary))
            for letter, name, summary in (("A", names[0], a), ("B", names[1], b))
        ),
    )
    title = sides_title(*names)
    return rendered(
        "comparison.html.j2", page=page, title=title, facts=(), brand="profharness comparison"
    )


def _differences(differences: Sequence[Difference]) -> Table | None:
    if not differences:
        return None
    rows = tuple(row_of(one.name, one.a or "not set", one.b or "not set") for one in differences)
    return Table("Differences", (Column("what"), Column("A"), Column("B")), rows)


def _points(comparison: Comparison) -> Table | None:
    """The figures of the points in common, a row for each."""
    rows, columns = list[tuple[Cell, ...]](), _deltas(()).columns
    for point in comparison.points[:MOST_POINTS]:
        deltas = [delta for delta in point.deltas if delta.name in SHOWN]
        rows.extend((Cell(point.point), *row) for row in _deltas(deltas).rows)
    if not rows:
        return None
    return filled(Table("Changes of the points", (Column("point"), *columns), tuple(rows)))


def _point_reasons(comparison: Comparison) -> Table | None:
    """Why the points changed, those for which that is known."""
    rows = tuple(
        (Cell(point.point), *row)
        for point in comparison.points[:MOST_POINTS]
        if (table := _reasons(point.reasons)) is not None
        for row in table.rows
    )
    columns = (Column("point"), Column("effect", "right"), Column("reason"))
    return Table("Reasons at the points", columns, rows) if rows else None


def _reasons(reasons: Sequence[Reason]) -> Table | None:
    if not reasons:
        return None
    rows = tuple(
        (
            Cell(
                "" if one.effect is None else f"{100 * one.effect:+.1f} %",
                value="" if one.effect is None else one.effect,
            ),
            Cell(one.message),
        )
        for one in reasons
    )
    return Table("Reasons", (Column("effect", "right"), Column("reason")), rows)


def _deltas(deltas: Sequence[Delta], ranges: Sequence[RangeDelta] = ()) -> Table:
    """Each figure in both, its change, and the interval of the change; then those of which only
    ends are known.
    """
    rows = tuple(
        (
            Cell(title_of(delta.name)),
            Cell(quantity_text(delta.a, delta.unit), value=delta.a),
            Cell(quantity_text(delta.b, delta.unit), value=delta.b),
            Cell(change_text(delta), value=delta.change, emphasis=_emphasis(delta)),
            Cell(_interval(delta)),
        )
        for delta in deltas
    )
    rows += tuple(
        (
            Cell(title_of(one.name)),
            Cell(ends_text(one.a, one.unit), value=one.a.low or ""),
            Cell(ends_text(one.b, one.unit), value=one.b.low or ""),
            Cell(range_change(one)),
            Cell(""),
        )
        for one in ranges
    )
    columns = (
        Column("figure"),
        Column("A", "right"),
        Column("B", "right"),
        Column("change"),
        Column("95 % interval"),
    )
    return Table("Changes", columns, rows)


def _emphasis(delta: Delta) -> Emphasis:
    return "warning" if delta.significant and ", worse" in change_text(delta) else ""


def _interval(delta: Delta) -> str:
    if delta.low is None or delta.high is None:
        return ""
    return f"{100 * delta.low:+.1f} % to {100 * delta.high:+.1f} %"


def _picture(a: Partition | None, b: Partition | None) -> object:
    if a is None or b is None or not a.window_ns or not b.window_ns:
        return ""
    shown = [part for part in PARTS if part_ns(a, part) or part_ns(b, part)]
    bars = [
        Bar(name, tuple(part_ns(one, part) / one.window_ns for part in shown))
        for name, one in (("A", a), ("B", b))
    ]
    return bars_picture(bars, tuple((part.label, part.color) for part in shown))


def _hotspots(one: HotspotComparison) -> Table | None:
    """Rows whose total time differs."""
    changed = [row for row in one.rows if (row.total_a_ns or 0) != (row.total_b_ns or 0)]
    if not changed:
        return None
    short = distinct_names([row.name for row in changed], _NAME)
    rows = tuple(
        (
            Cell(name, below=change_reason(row), full="" if name == row.name else row.name),
            *(_time(ns) for ns in (row.mean_a_ns, row.mean_b_ns)),
            Cell(
                "" if row.change is None else f"{100 * row.change:+.1f} %", value=row.change or ""
            ),
            *(Cell(str(calls or 0), value=calls or 0) for calls in (row.calls_a, row.calls_b)),
            *(_time(ns) for ns in (row.total_a_ns, row.total_b_ns)),
        )
        for row, name in zip(changed, short, strict=True)
    )
    titles = ("mean, A", "mean, B", "change", "calls, A", "calls, B", "total, A", "total, B")
    columns = (Column("name"), *(Column(title, "right") for title in titles))
    return first_rows(Table(f"Hotspots by {one.by}", columns, rows), MOST_HOTSPOTS)


def _time(ns: float | None) -> Cell:
    return Cell("-", value="") if ns is None else Cell(format_ns(ns), value=float(ns))


def _left(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for title, names in (
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("failed in B", comparison.failed),
    ):
        if names:
            yield title, ", ".join(names)


def _findings(summary: Summary) -> tuple[tuple[str, str], ...]:
    named = point_names_by_id(summary)
    return tuple((one.severity, finding_line(named, one)) for one in all_findings(summary))
