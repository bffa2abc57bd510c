"""Tables of the HTML report that stand on their own records: hotspots with share bars, sources,
problems, versions.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from profharness.analysis.records import HotspotRow, Hotspots, SourceRow, Summary
from profharness.report.page.content import Head, Table
from profharness.report.tables.scan import Cell
from profharness.report.text.command_sentences import captured
from profharness.report.text.figures import finite
from profharness.report.text.folding import distinct_names
from profharness.units import format_ns, format_number, format_share

FIRST_ROWS = 12
MOST_ROWS = 150


@dataclass(frozen=True)
class HotspotLine:
    """One row: its short name, the full one where it differs, the bar's width in per cent, and the
    figures.
    """

    short: str
    full: str
    category: str
    share: str
    width: float
    total: str
    calls: str
    mean: str
    spread: str
    kernel: str
    shape: str
    op: str


@dataclass(frozen=True)
class HotspotTable:
    """A hotspot table parted into the rows shown at once and those behind a fold; `left_out` rows
    are in hotspots.csv.
    """

    title: str
    note: str
    first: tuple[HotspotLine, ...]
    rest: tuple[HotspotLine, ...]
    left_out: int
    columns: frozenset[str]

    @property
    def folded(self) -> bool:
        """Whether any shown name is shorter than the recorded one."""
        return any(line.full for line in self.first)


def hotspot_tables(summary: Summary) -> tuple[HotspotTable, ...]:
    """Kernels, then operations, then categories; empty ones left out."""
    order = {"kernel": 0, "op": 1, "category": 2}
    return tuple(
        _hotspots(table)
        for table in sorted(summary.hotspots, key=lambda table: order[table.by])
        if table.rows
    )


def _hotspots(table: Hotspots) -> HotspotTable:
    longest = max(row.share for row in table.rows) or 1.0
    shown = table.rows[:MOST_ROWS]
    names = (
        distinct_names([row.name for row in shown])
        if table.by == "kernel"
        else [row.name for row in shown]
    )
    lines = [
        _hotspot_line(row, name, longest, table.by) for row, name in zip(shown, names, strict=True)
    ]
    title = {"kernel": "Kernels", "op": "Operations", "category": "Categories"}[table.by]
    note = f"{format_ns(table.total_ns)} in all" + (
        f", {table.pass_name} pass" if table.pass_name else ""
    )
    columns = {name for name in ("kernel", "shape") if any(getattr(line, name) for line in lines)}
    if table.by != "category" and any(line.category for line in lines):
        columns.add("category")
    return HotspotTable(
        title,
        note,
        tuple(lines[:FIRST_ROWS]),
        tuple(lines[FIRST_ROWS:]),
        max(len(table.rows) - MOST_ROWS, 0),
        frozenset(columns),
    )


def _hotspot_line(row: HotspotRow, short: str, longest: float, by: str) -> HotspotLine:
    size = "" if row.workgroup_size is None else "×".join(str(part) for part in row.workgroup_size)
    shape = (
        f"{format_number(row.workgroups)} of {size}"
        if row.workgroups is not None and size and by == "kernel"
        else ""
    )
    std = (
        f" ± {format_ns(row.std_ns, 2)}"
        if row.calls > 1 and row.std_ns is not None and finite(row.std_ns) is not None
        else ""
    )
    middle = "" if row.median_ns is None else f"median {format_ns(row.median_ns)}, "
    spread = (
        ""
        if row.min_ns is None or row.max_ns is None
        else f"{middle}from {format_ns(row.min_ns)} to {format_ns(row.max_ns)}"
    )
    return HotspotLine(
        short=short,
        full=row.name if row.name != short else "",
        category=row.category,
        share=format_share(row.share),
        width=round(100 * row.share / longest, 1),
        total=format_ns(row.total_ns),
        calls=format_number(row.calls),
        mean=f"{format_ns(row.mean_ns)}{std}",
        spread=spread,
        kernel="" if row.kernel_ns is None else format_ns(row.kernel_ns),
        shape=shape,
        op=row.op or "" if by == "kernel" else "",
    )


def sources_table(summary: Summary) -> Table | None:
    """Provenance and alignment of every source: host residual, bound, and the causal interval per
    device.
    """
    if not summary.sources:
        return None
    heads = (
        Head("source"),
        Head("layer"),
        Head("format"),
        Head("clock"),
        Head("alignment"),
        Head(
            "residual",
            "num",
            "self-check: a marker's place after alignment against the host's own times",
        ),
        Head("bound", "num", "no time of this source is further off than this"),
        Head(
            "causal interval",
            "num",
            "shifts for which no kernel starts before its launch or ends after its synchronisation",
        ),
    )
    alike: dict[SourceRow, list[SourceRow]] = {}
    for source in summary.sources:
        alike.setdefault(
            msgspec.structs.replace(source, path="", point="", pass_name=""), []
        ).append(source)
    return Table(
        "Sources", heads, tuple(_source_row(group[0], len(group) - 1) for group in alike.values())
    )


def _source_row(source: SourceRow, others: int) -> tuple[Cell, ...]:
    """One row for a source and the `others` that differ from it by path only."""
    causal = ""
    if source.causal_low_ns is not None and source.causal_high_ns is not None:
        causal = f"{_signed(source.causal_low_ns)} to {_signed(source.causal_high_ns)}"
    form = f"{source.format} {source.tool_version}".strip()
    more = f" and {others} more" if others else ""
    return (
        Cell(
            f"{source.path}{more}",
            tip=f"point {source.point}" if source.point and not others else "",
        ),
        Cell(source.layer),
        Cell(form),
        Cell(source.clock),
        Cell(source.alignment or "none needed"),
        Cell(_time(source.residual_ns)),
        Cell(_time(source.bound_ns)),
        Cell(causal),
    )


def _time(ns: int | None) -> str:
    return "" if ns is None else format_ns(ns, 3)


def _signed(ns: int) -> str:
    return f"−{format_ns(-ns, 3)}" if ns < 0 else format_ns(ns, 3)


def problems_table(summary: Summary) -> Table | None:
    """What the readers dropped or repaired, counted."""
    if not summary.problems:
        return None
    rows = tuple(
        (
            Cell(row.severity, tone=row.severity),
            Cell(format_number(row.count)),
            Cell(row.message),
            Cell(row.source, tone="muted"),
        )
        for row in summary.problems
    )
    return Table(
        "Problems", (Head("severity"), Head("count", "num"), Head("what"), Head("source")), rows
    )


def provenance(summary: Summary) -> tuple[tuple[str, str], ...]:
    """(name, text) of what made the run reproducible: command line, versions, version control,
    capture.
    """
    run = summary.run
    if run is None:
        return (("source", summary.source),)
    rows = (
        ("command line", " ".join(run.argv)),
        ("run", run.path),
        ("created", run.created),
        ("state", _state(run.state, run.exit_status)),
        ("host", run.host),
        ("device", run.device),
        ("CPU", run.cpu_model),
        ("capture", captured(summary) or run.capture),
        ("steps", summary.steps_from),
        ("version control", run.git),
        ("profharness", run.profharness),
        ("versions", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
    )
    return tuple((name, text) for name, text in rows if text)


def _state(state: str, exit_status: int | None) -> str:
    return state if exit_status is None else f"{state}, exit status {exit_status}"
