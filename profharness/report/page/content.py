"""What the page says, as values in reading order. The template prints these and leaves out what is
empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from profharness.analysis.records import Summary
from profharness.report.axes.tables import axes_tables
from profharness.report.page.findings import FindingBox, finding_boxes
from profharness.report.page.headline import Tile, subtitle, tiles, title
from profharness.report.page.provenance import provenance
from profharness.report.page.stars import star_text, starred_table
from profharness.report.page.tidy import figures_told_once, filled
from profharness.report.page.use import UseSection, use_section
from profharness.report.page.verdict import (
    headroom_tile,
    opening_verdict,
    spot_commands,
    view_command,
)
from profharness.report.page.window import causes_note, gaps_text
from profharness.report.table import Cell, Column, Table, first_rows
from profharness.report.tables import (
    communication,
    counters,
    runtime_logs,
)
from profharness.report.tables.critical import critical_tables
from profharness.report.tables.device import device_panel
from profharness.report.tables.figures import figures_table, point_figures, unmeasured
from profharness.report.tables.fits import fit_table
from profharness.report.tables.host import host_table
from profharness.report.tables.hotspots import hotspot_tables
from profharness.report.tables.load.ragged import ragged_table
from profharness.report.tables.load.sharing import sharing_table
from profharness.report.tables.memory import copies
from profharness.report.tables.memory import holders as memory
from profharness.report.tables.nodes import node_tables
from profharness.report.tables.partition import partition_table
from profharness.report.tables.passes import passes_table
from profharness.report.tables.scan import caption, withheld
from profharness.report.tables.sources import problems_table, sources_table
from profharness.report.tables.telemetry import telemetry_table
from profharness.report.text.labels import on_cpu
from profharness.report.text.measured import python_lines
from profharness.report.text.sentences import Sentences, sentences

MOST_ROWS = 2_000
"""Rows of one table on the page: a browser lays out some thousand without delay, and nobody reads
more of them."""

MOST_DRAWN = 500
"""Points that the plots show."""

_FINDINGS = 100_000
"""Characters of the findings that the page shows one by one."""

_POINTS = 200
"""Points whose figures the page lists one by one, twenty and more of each."""

_FIGURES = 12_000
"""Rows of these lists together, of which a run with telemetry of each of sixty partitions has
thousands for a point."""


@dataclass(frozen=True)
class Content:
    """All that the page says besides its plots. A table is None, a text empty, where there is
    nothing to say.
    """

    title: str
    on_cpu: bool
    subtitle: tuple[Cell, ...]
    tiles: tuple[Tile, ...]
    said: Sentences
    points: Table | None
    stars: str
    caption: str
    withheld: tuple[str, ...]
    fits: Table | None
    axes: tuple[Table, ...]
    shared: Table | None
    ragged: Table | None
    parts: Table | None
    host: Table | None
    critical: tuple[Table, ...]
    gaps: str
    use: UseSection
    causes: tuple[tuple[str, str], ...]
    verdict: str
    view: str
    spots: tuple[tuple[str, str], ...]
    communication: tuple[Table, ...]
    communication_note: str
    copies: Table | None
    memory: tuple[Table, ...]
    memory_notes: tuple[tuple[str, str], ...]
    log: tuple[Table, ...]
    log_note: str
    python: tuple[Table, ...]
    python_note: str
    hotspots: tuple[Table, ...]
    counters: Table | None
    counters_left_out: str
    device: Table | None
    telemetry: Table | None
    nodes: tuple[Table, ...]
    findings: tuple[FindingBox, ...]
    passes: Table | None
    provenance: tuple[tuple[str, str], ...]
    sources: Table | None
    problems: Table | None
    figures: Table | None
    figures_note: str
    figures_by_point: Table | None
    points_left_out: int
    points_not_drawn: int
    findings_number: int
    findings_left_out: int
    unmeasured: tuple[tuple[str, str], ...]
    all_rows: str
    all_operators: str


def content(summary: Summary) -> Content:
    """Everything that the page says of the summary."""
    listed, of_run = _listed_points(summary), summary.run is not None
    findings = finding_boxes(summary)
    shown = _shown_findings(findings)
    figures, figures_note = _of_the_window(summary)
    return Content(
        title=title(summary),
        on_cpu=on_cpu(summary),
        subtitle=subtitle(summary),
        tiles=_tiles(summary),
        said=sentences(summary),
        points=_first(starred_table(summary)),
        stars=star_text(summary),
        caption=caption(summary),
        withheld=withheld(summary),
        fits=fit_table(summary),
        axes=axes_tables(summary.axes),
        shared=sharing_table(summary),
        ragged=ragged_table(summary),
        parts=partition_table(summary),
        host=host_table(summary.host),
        critical=critical_tables(summary.critical_path),
        gaps=gaps_text(summary),
        use=use_section(summary),
        causes=causes_note(summary),
        verdict=opening_verdict(summary),
        view=view_command(summary),
        spots=spot_commands(summary),
        communication=tuple(filter(None, map(filled, communication.tables(summary.communication)))),
        communication_note=communication.note(summary.communication),
        copies=filled(copies.copies_table(summary.copies_by)),
        memory=tuple(filter(None, map(filled, memory.page_tables(summary.memory)))),
        memory_notes=memory.page_notes(summary.memory),
        log=runtime_logs.tables(summary.log),
        log_note=runtime_logs.note(summary.log),
        python=python_lines.page_tables(summary.host_lines),
        python_note=python_lines.note(summary.host_lines),
        hotspots=hotspot_tables(summary),
        counters=filled(counters.counter_table(summary.counters)),
        counters_left_out=counters.left_out(summary.counters),
        device=device_panel(summary.telemetry),
        telemetry=telemetry_table(summary),
        nodes=node_tables(summary.nodes, summary.modules),
        findings=findings[:shown],
        findings_number=sum(one.count for one in findings),
        findings_left_out=sum(one.count for one in findings[shown:]),
        passes=_first(passes_table(summary)),
        provenance=provenance(summary),
        sources=_first(filled(sources_table(summary))),
        problems=_first(problems_table(summary)),
        figures=figures,
        figures_note=figures_note,
        figures_by_point=_by_point(point_figures(summary, summary.points[:listed])),
        points_left_out=len(summary.points) - listed,
        points_not_drawn=max(len(summary.points) - MOST_DRAWN, 0),
        unmeasured=unmeasured(summary),
        all_rows="hotspots.csv" if of_run else "the output of `profharness hotspots --json`",
        all_operators="summary.json" if of_run else "the output of `profharness hotspots --by op`",
    )


def _of_the_window(summary: Summary) -> tuple[Table | None, str]:
    """The figures of the whole window, each told once, and a note on the others."""
    return figures_told_once(figures_table("Figures of the whole window", summary.metrics))


def _listed_points(summary: Summary) -> int:
    """Of how many points, from the first on, the figures are listed: of one at least."""
    rows = accumulate(len(point.metrics) for point in summary.points[:_POINTS])
    return max(sum(whole <= _FIGURES for whole in rows), min(len(summary.points), 1))


def _tiles(summary: Summary) -> tuple[Tile, ...]:
    """The headroom first, where there is a bound on it."""
    headroom = headroom_tile(summary)
    return (*(() if headroom is None else (headroom,)), *tiles(summary))


def _shown_findings(findings: tuple[FindingBox, ...]) -> int:
    """How many, from the first on, have room: of ordinary length some hundred."""
    lengths = accumulate(one.length for one in findings)
    return sum(whole <= _FINDINGS for whole in lengths)


def _by_point(tables: tuple[tuple[str, Table], ...]) -> Table | None:
    """The figures of all points as one table, which can be searched and sorted as a whole."""
    if not tables:
        return None
    rows = tuple((Cell(name), *row) for name, table in tables for row in table.rows)
    columns = (Column("point"), *tables[0][1].columns)
    return Table("Every figure of every point", columns, rows)


def _first(table: Table | None) -> Table | None:
    return None if table is None else first_rows(table, MOST_ROWS)
