"""Tables of figures with where each came from, and what is missing and why."""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.report.table import Cell, Column, Table
from profharness.report.text import names
from profharness.report.text.figures import (
    NOT_MEASURED,
    coverage_text,
    figure_text,
    is_known,
    needs_text,
)
from profharness.report.text.labels import KERNELS, no_kernels, point_names
from profharness.report.text.measured.lacking import OF_AMD, ONLY_AMD
from profharness.report.text.measured.vendors import on_nvidia

_NVIDIA = "an NVIDIA device"


def figures_table(caption: str, metrics: dict[str, Figure]) -> Table | None:
    """Every measured figure of a window or point, with its provenance in columns of their own."""
    rows = tuple(
        (
            Cell(names.title_of(name), provenance=names.meaning_of(name)),
            Cell(figure_text(figure)),
            Cell(figure.source, emphasis="muted"),
            Cell(_remarks(figure), emphasis="muted"),
        )
        for name, figure in metrics.items()
        if is_known(figure)
    )
    return (
        Table(
            caption,
            (Column("figure"), Column("value", "right"), Column("from"), Column("remarks")),
            rows,
        )
        if rows
        else None
    )


def _remarks(figure: Figure) -> str:
    covers = coverage_text(figure)
    return "; ".join(part for part in (covers, figure.note) if part)


def point_figures(
    summary: Summary, points: Sequence[PointSummary]
) -> tuple[tuple[str, Table], ...]:
    """The figures of each of these points, for the reader who wants all of them."""
    tables = (
        (name, figures_table(f"Figures of {name}", point.metrics))
        for name, point in zip(point_names(summary, points), points, strict=True)
    )
    return tuple((name, table) for name, table in tables if table is not None)


def unmeasured(summary: Summary) -> tuple[tuple[str, str], ...]:
    """(what is needed, titles of the figures that it would give), for the run's figures and those
    no point has.
    """
    needed: dict[str, str] = {
        name: figure.needs for name, figure in summary.metrics.items() if not is_known(figure)
    }
    for name in dict.fromkeys(name for point in summary.points for name in point.metrics):
        figures = [point.metrics[name] for point in summary.points if name in point.metrics]
        if not any(map(is_known, figures)):
            needed[name] = figures[0].needs
    why, nvidia = no_kernels(summary), on_nvidia(summary)
    lacking: dict[str, list[str]] = {}
    for name, needs in needed.items():
        of_amd = nvidia and needs.startswith(OF_AMD)
        remedy = _NVIDIA if of_amd else needs
        lacking.setdefault(remedy, []).append(names.title_of(name))
    return tuple(
        (why, f"{len(titles)} figures of device work")
        if why and needs.startswith(KERNELS)
        else (needs, f"{len(titles)} {ONLY_AMD}")
        if needs == _NVIDIA
        else (
            _needed(needs),
            ("; " if any("," in title for title in titles) else ", ").join(titles),
        )
        for needs, titles in lacking.items()
    )


def _needed(needs: str) -> str:
    """`needs power`, under a heading that says that these are not measured."""
    return needs_text(needs).removeprefix(f"{NOT_MEASURED}: ")


def figure_values(summary: Summary) -> Table:
    """Every figure for programs, measured or not: those of the points, then those of the whole,
    which have no point.
    """
    of_all = [
        *(
            (point.point, name, one)
            for point in summary.points
            for name, one in point.metrics.items()
        ),
        *((None, name, one) for name, one in summary.metrics.items()),
    ]
    fields = ("value", "unit", "low", "high", "source", "coverage", "note", "needs")
    rows = tuple(
        tuple(Cell(value=value) for value in (point, name, *(getattr(one, key) for key in fields)))
        for point, name, one in of_all
    )
    titles = ("point", "figure", *("from" if key == "source" else key for key in fields))
    return Table("figures", tuple(Column(key=title) for title in titles), rows)
