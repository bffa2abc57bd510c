"""The report of trace files, or of a CSV of a scan: its page here, its answer on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.analysis.operators.engine import OperatorInput
from profharness.analysis.records import Summary
from profharness.cli.running.answers import near, printed, show_made
from profharness.cli.sharing.browser import open_page
from profharness.cli.sharing.forms import ReportForm, document, of_one, require_form
from profharness.cli.sharing.places import place_here, require_free
from profharness.errors import OutputExists
from profharness.rundir.paths import write_atomic
from profharness.rundir.shown.screen import mention
from profharness.understand.many.jobs import Workers


@dataclass(frozen=True)
class Wanted:
    """What is to be made: `place` where one was named, and whether the figures are printed as JSON
    in place of the words.
    """

    place: Path | None = None
    form: ReportForm = ReportForm.HTML
    force: bool = False
    json: bool = False
    opens: bool = False


@dataclass(frozen=True)
class Answer:
    """A summary, and its figures as the commands `metrics` or `saturation` print them."""

    summary: Summary
    json: Callable[[], str]


def report_files(
    paths: Sequence[Path],
    wanted: Wanted,
    step_range: str,
    operator_input: OperatorInput,
    workers: Workers | None,
) -> None:
    """Read the files, write the document and print the answer. Raises UsageError for a place that
    is taken, InputError for what cannot be read.
    """
    require_form(wanted.form, paths)
    place = free_place(wanted, paths, place_here(paths, wanted.form.value))
    answer = _answer(paths, step_range, operator_input, workers)
    if place is not None:
        write_atomic(place, document(wanted.form, of_one(answer.summary, paths), place))
    if wanted.json:
        printed(answer.json(), place or paths[0])
    else:
        show_made(answer.summary, [(near(place), "")] if place else [], place or paths[0])
    if place is not None and wanted.opens:
        open_page(place)


def free_place(wanted: Wanted, paths: Sequence[Path], default: Path) -> Path | None:
    """Where the document goes, before any of the files is read. None where it would be the
    default, which is taken, and the figures were asked for. Raises UsageError.
    """
    place = wanted.place or default
    try:
        require_free(place, paths, force=wanted.force)
    except OutputExists:
        if wanted.place is not None or not wanted.json:
            raise
        mention(f"profharness: {place} exists and stays as it is (--force writes it again)")
        return None
    return place


def _answer(
    paths: Sequence[Path],
    step_range: str,
    operator_input: OperatorInput,
    workers: Workers | None,
) -> Answer:
    from profharness.report.json import metrics_json, saturation_json
    from profharness.understand.load import check_paths
    from profharness.understand.loose.scans import is_scan, read_scan
    from profharness.understand.loose.summaries import summarise_paths

    check_paths(paths)
    if is_scan(paths):
        scan = read_scan(paths[0])
        return Answer(scan.summary, lambda: saturation_json(scan.series))
    summary = summarise_paths(paths, step_range, operator_input, workers, for_page=True)
    return Answer(summary, lambda: metrics_json(summary).decode())
