"""The forms of a report: the whole page, one page for papers and tickets, a notebook."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import UsageError
from profharness.rundir.private.spool import SpooledPath

if TYPE_CHECKING:
    from profharness.analysis.records import Summary


class ReportForm(str, Enum):
    """What `report --format` takes; each is the ending of its file."""

    HTML = "html"
    MD = "md"
    PDF = "pdf"
    IPYNB = "ipynb"


def require_form(form: ReportForm, paths: Sequence[Path]) -> None:
    """The form can be made of these paths; asked before they are read. Raises Unavailable without
    the library of a form, UsageError where a notebook could not open them again.
    """
    if form is ReportForm.PDF:
        from profharness.report.documents.pdf import require_matplotlib

        require_matplotlib()
    if form is not ReportForm.IPYNB:
        return
    from profharness.understand.loose.scans import is_scan

    if is_scan(paths):
        raise UsageError(
            f"{paths[0]}: a CSV of a scan has no notebook: pandas.read_csv opens it",
            "take --format html, md or pdf",
        )
    piped = next((path for path in paths if isinstance(path, SpooledPath)), None)
    if piped is not None:
        raise UsageError(
            f"a notebook opens its files again, which what comes through {piped} cannot be",
            "write it to a file, and name that",
        )


def document(form: ReportForm, summary: Summary, paths: Sequence[Path], place: Path) -> bytes:
    """The report as it is written to `place`."""
    if form is ReportForm.MD:
        from profharness.report.documents.markdown import markdown

        return markdown(summary).encode()
    if form is ReportForm.PDF:
        from profharness.report.documents.pdf import pdf

        return pdf(summary)
    if form is ReportForm.IPYNB:
        from profharness.report.documents.notebook import notebook

        folder = place.absolute().parent  # in which a notebook is run
        return notebook(summary, [_reached(path.absolute(), folder) for path in paths])
    from profharness.report.page import html

    return html.render(summary).encode()


def _reached(path: Path, folder: Path) -> str:
    """A path from the notebook's folder, so that both can be moved together, where it lies below it
    or beside it; else the whole path.
    """
    near = path.is_relative_to(folder.parent) and folder.parent != Path("/")
    return os.path.relpath(path, folder) if near else str(path)
