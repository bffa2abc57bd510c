"""`report --compare A B`: the page of a comparison, and the words or figures of `compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profharness.analysis.operators.engine import OperatorInput
from profharness.cli.running.answers import near, printed
from profharness.cli.sharing.browser import open_page
from profharness.cli.sharing.forms import ReportForm
from profharness.cli.sharing.of_files import Wanted, free_place
from profharness.cli.sharing.places import stem_of
from profharness.errors import UsageError
from profharness.rundir.paths import write_atomic


def report_two(
    paths: Sequence[Path], wanted: Wanted, step_range: str, operator_input: OperatorInput
) -> None:
    """Compare two runs or files, write the page and print what `compare` prints. Raises UsageError
    unless there are two, and as `report_files` does.
    """
    from profharness.analysis.compare.runs import compare
    from profharness.report.json import comparison_json
    from profharness.report.sheets import comparison as sheet
    from profharness.report.text.comparison import comparison_text
    from profharness.understand.loose.summaries import summarise_paths

    if len(paths) != 2:
        raise UsageError(
            f"--compare is of two runs or files, not of {len(paths)}",
            "name the one to compare with, then the one that changed",
        )
    if wanted.form is not ReportForm.HTML:
        raise UsageError(f"--compare makes a page, no {wanted.form.value}", "leave --format out")
    default = Path(f"{stem_of(paths[0])}-against-{stem_of(paths[1])}.report.html")
    place = free_place(wanted, paths, default)
    a, b = (summarise_paths([path], step_range, operator_input) for path in paths)
    compared = compare(a, b)
    if place is not None:
        write_atomic(place, sheet.render(compared, a, b).encode())
    kept = place or paths[0]
    if wanted.json:
        printed(comparison_json(compared, ()), kept)
    else:
        made = f"\n{near(place)}\n" if place else ""
        printed(comparison_text(compared, ()) + made, kept)
    if place is not None and wanted.opens:
        open_page(place)
