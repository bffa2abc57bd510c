"""The forms of a report: the whole page, one page for papers and tickets, a notebook."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import UsageError
from profharness.rundir.private.spool import SpooledPath

if TYPE_CHECKING:
    from profharness.analysis.compare.records import Comparison
    from profharness.analysis.records import Summary
    from profharness.report.documents.extract import Extract
    from profharness.report.documents.figures import Draw
    from profharness.report.documents.notebook import Cell, Opened
    from profharness.understand.loose.sides import Side


class ReportForm(str, Enum):
    """What `report --format` takes; each is the ending of its file."""

    HTML = "html"
    MD = "md"
    PDF = "pdf"
    IPYNB = "ipynb"


def form_of(asked: ReportForm | None, output: Path | None) -> ReportForm:
    """The form that is asked for, else the one that the name of the output ends in, else html."""
    if asked is not None:
        return asked
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return next((form for form in ReportForm if form.value == ending), ReportForm.HTML)


def require_form(form: ReportForm, paths: Sequence[Path]) -> None:
    """The form can be made of these paths; asked before they are read. Raises Unavailable without
    the library of a form, UsageError where a notebook could not open them again.
    """
    if form is ReportForm.PDF:
        from profharness.report.documents.pdf import require_matplotlib

        require_matplotlib()
    if form is not ReportForm.IPYNB:
        return
    piped = next((path for path in paths if isinstance(path, SpooledPath)), None)
    if piped is not None:
        raise UsageError(
            f"a notebook opens its files again, which what comes through {piped} cannot be",
            "write it to a file, and name that",
        )


@dataclass(frozen=True)
class Making:
    """How a report is made in each form; of these only what is asked for is called. `cells` are
    those of a notebook in this folder.
    """

    html: Callable[[], str]
    extract: Callable[[], Extract]
    figures: Callable[[], Draw]
    cells: Callable[[Path], Iterable[Cell]]


def document(form: ReportForm, making: Making, place: Path) -> bytes:
    """The report as it is written to `place`."""
    if form is ReportForm.MD:
        from profharness.report.documents.markdown import markdown

        return markdown(making.extract()).encode()
    if form is ReportForm.PDF:
        from profharness.report.documents.pdf import pdf

        return pdf(making.extract(), making.figures())
    if form is ReportForm.IPYNB:
        from profharness.report.documents.notebook import notebook

        return notebook(making.cells(place.absolute().parent))
    return making.html().encode()


def of_one(summary: Summary, paths: Sequence[Path]) -> Making:
    """The forms of the report of a run, or of files together."""

    def html() -> str:
        from profharness.report.page import html

        return html.render(summary)

    def extracted() -> Extract:
        from profharness.report.documents.extract import extract

        return extract(summary)

    def figures() -> Draw:
        from profharness.report.documents.figures import figures

        return figures(summary)

    def cells(folder: Path) -> Iterable[Cell]:
        from profharness.report.documents.notebook import cells

        return cells(summary, _opened(paths, folder))

    return Making(html, extracted, figures, cells)


def of_two(comparison: Comparison, a: Side, b: Side) -> Making:
    """The forms of the report of a comparison."""

    def html() -> str:
        from profharness.report.sheets.comparison import render

        return render(comparison, a.summary, b.summary)

    def extracted() -> Extract:
        from profharness.report.documents.of_two import extract_two

        return extract_two(comparison, a.summary, b.summary)

    def figures() -> Draw:
        from profharness.report.documents.figures import figures_of_two

        return figures_of_two(a.summary, b.summary)

    def cells(folder: Path) -> Iterable[Cell]:
        from profharness.report.documents.notebook import cells_of_two

        before, after = (_opened([side.path], folder) for side in (a, b))
        return cells_of_two(extracted(), comparison, (before, after))

    return Making(html, extracted, figures, cells)


def _opened(paths: Sequence[Path], folder: Path) -> Opened:
    from profharness.report.documents.notebook import Opened
    from profharness.rundir.paths import MANIFEST
    from profharness.understand.loose.scans import is_scan

    is_run = len(paths) == 1 and (paths[0] / MANIFEST).is_file()
    return Opened(
        [_reached(path.absolute(), folder) for path in paths],
        "run" if is_run else "scan" if is_scan(paths) else "recording",
    )


def _reached(path: Path, folder: Path) -> str:
    """A path from the notebook's folder, so that both can be moved together, where it lies below it
    or beside it; else the whole path.
    """
    near = path.is_relative_to(folder.parent) and folder.parent != Path("/")
    return os.path.relpath(path, folder) if near else str(path)
