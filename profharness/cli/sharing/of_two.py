"""`report --compare A B`: what changed as a page or document, and the words or figures of
`compare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.operators.engine import OperatorInput
from profharness.cli.running.answers import near, printed
from profharness.cli.sharing.browser import open_page
from profharness.cli.sharing.forms import document, of_two, require_form
from profharness.cli.sharing.of_files import Wanted, free_place
from profharness.cli.sharing.places import stem_of
from profharness.errors import UsageError
from profharness.rundir.paths import write_atomic

if TYPE_CHECKING:
    from profharness.analysis.compare.records import Comparison
    from profharness.understand.loose.sides import Side


def report_two(
    paths: Sequence[Path], wanted: Wanted, step_range: str, operator_input: OperatorInput
) -> None:
    """Compare two runs or files, write the document and print what `compare` prints. Raises
    UsageError unless there are two, and as `report_files` does.
    """
    from profharness.report.text.comparison import comparison_text
    from profharness.understand.loose.sides import compare_sides, read_side

    if len(paths) != 2:
        raise UsageError(
            f"--compare takes two runs or files, not {len(paths)}",
            "name the one to compare with, then the one that changed",
        )
    require_form(wanted.form, paths)
    stems = f"{stem_of(paths[0])}-against-{stem_of(paths[1])}"
    place = free_place(wanted, paths, Path(f"{stems}.report.{wanted.form.value}"))
    a, b = (read_side(path, step_range, operator_input) for path in paths)
    compared = compare_sides(a, b)
    if place is not None:
        write_atomic(place, document(wanted.form, of_two(compared, a, b), place))
    kept = place or paths[0]
    if wanted.json:
        printed(_figures(compared, a, b), kept)
    else:
        made = f"\n{near(place)}\n" if place else ""
        printed(comparison_text(compared, ()) + made, kept)
    if place is not None and wanted.opens:
        open_page(place)


def _figures(comparison: Comparison, a: Side, b: Side) -> str:
    """What `compare --json` prints; of files also the figures of each side."""
    from profharness.report.json import comparison_json, metrics_object, saturation_object

    beside: dict[str, object] = {}
    for letter, side in (("a", a), ("b", b)):
        if a.is_run and b.is_run:
            break
        if side.series is None:
            beside[f"metrics_{letter}"] = metrics_object(side.summary)
        else:
            beside[f"saturation_{letter}"] = saturation_object(side.series)
    return comparison_json(comparison, (), beside)
