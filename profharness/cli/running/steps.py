"""What `profharness run` does, step by step: plan, execute, understand, report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from profharness.cli.livepage.start import Page, live_page
from profharness.cli.running import left_caps
from profharness.cli.running.answers import near, printed, show, width
from profharness.cli.running.in_jobs import as_planned, job_text
from profharness.cli.running.interrupted import way_on, way_to_report
from profharness.cli.running.plan_text import (
    clash_lines,
    dry_run_text,
    plan_line,
    plan_notes,
    wrapped_plan,
)
from profharness.errors import ProfharnessError, WorkloadFailed
from profharness.launchers.between import ended_by_signals
from profharness.layers.planned_node import PlannedNode
from profharness.measure import engine
from profharness.measure.claims.holding import held
from profharness.measure.plan import RunPlan
from profharness.measure.planning import name_of, plan_run
from profharness.measure.progress import Progress, open_progress
from profharness.measure.resume import Again
from profharness.options.request import Request
from profharness.rundir.shown.screen import mention, one_line


def dry(request: Request, elsewhere: PlannedNode | None = None) -> None:
    """Print what would be started, on this node or on the one named; nothing is written."""
    if request.launcher == "slurm":
        print(job_text(request))
    print(dry_run_text(plan_run(as_planned(request), dry=True, elsewhere=elsewhere)))


def start_ranks(count: int) -> int:
    """Run this same command line as `count` local ranks; the exit code of the first that failed."""
    from profharness.launchers import local_ranks

    return local_ranks.start((sys.executable, "-m", "profharness", *sys.argv[1:]), count)


def perform(
    request: Request,
    argv: tuple[str, ...],
    *,
    as_json: bool,
    quiet: bool,
    again: Again | None = None,
    take_over: bool = False,
) -> int:
    """Carry the request out; the exit code of docs/command-line.md#exit-codes.

    With a command the code is the command's own once it has started: what fails afterwards is
    printed and changes nothing. `again`: the run exists, and what it lacks is measured.
    `take_over`: also from a holder that may still live.
    """
    left_caps.set_again()
    prepared = plan_run(request)
    is_scan = prepared.scan is not None
    talk = not quiet and not as_json and is_scan
    if not quiet and prepared.rank.leads:
        _announce(prepared, with_plan=talk)
    with live_page(asked=request.live_page and prepared.rank.leads) as page:
        with (
            ended_by_signals(),
            held(prepared, again=again is not None, take_over=take_over) as placed,
        ):
            page.begin(placed.root, name_of(request))
            with open_progress(sys.stderr, quiet=not talk) as progress:
                result = _executed(placed, argv, progress, echo_stdout=as_json, again=again)
        if not result.leads:
            return result.exit_status
        if result.unwritten:
            mention(
                f"profharness: {near(result.run.root)} took no more ({result.unwritten}): "
                "make room; what is missing there was not recorded"
            )
        telling = Telling(as_json=as_json, quiet=quiet, strict=request.strict, page=page)
        return _told(result, telling, is_scan=is_scan)


@dataclass(frozen=True)
class Telling:
    """How the answer of a run is told, and the live page that hears it too."""

    as_json: bool
    quiet: bool
    strict: bool
    page: Page


def _told(result: engine.Result, telling: Telling, *, is_scan: bool) -> int:
    """Analyse the run and print its answer; the exit code."""
    root = result.run.root
    try:
        strict_failure = tell(
            root,
            as_json=telling.as_json,
            quiet=telling.quiet,
            strict=telling.strict,
            page=telling.page,
        )
    except (
        Exception
    ) as error:  # the command has run: nothing that fails after it may change its exit status
        told = (
            error.message
            if isinstance(error, ProfharnessError)
            else (isinstance(error, OSError) and error.strerror)
            or f"{type(error).__name__}: {error}"
        )
        telling.page.failed(told, root)
        if is_scan:
            raise
        print(
            f"profharness: the run is kept in {one_line(str(root))}, "
            f"but it could not be analysed: {told}",
            file=sys.stderr,
        )
        return result.exit_status
    if is_scan and result.exit_status == 0 and strict_failure:
        raise WorkloadFailed(
            "--strict: an error-level finding",
            "see the findings above; without --strict the run counts as fine",
        )
    return result.exit_status


def _announce(prepared: RunPlan, *, with_plan: bool) -> None:
    """What a user shall hear before the first process starts: hours may follow."""
    for line in clash_lines(prepared):
        print(line, file=sys.stderr)
    if with_plan:
        print(wrapped_plan(plan_line(prepared), width()), file=sys.stderr)
    for note in plan_notes(prepared):
        print(f"profharness: {note}", file=sys.stderr)


def _executed(
    prepared: RunPlan,
    argv: tuple[str, ...],
    progress: Progress,
    *,
    echo_stdout: bool,
    again: Again | None,
) -> engine.Result:
    """The run; Ctrl-C between two processes ends it here, with the way on."""
    from profharness.secrets import scrub  # the readers of other formats: a dry run needs none

    try:
        return engine.execute(
            prepared, argv, progress, scrub.findings, echo_stdout=echo_stdout, again=again
        )
    except KeyboardInterrupt:
        mention(way_on(prepared.root, near(prepared.root), is_scan=prepared.scan is not None))
        raise


def tell(root: Path, *, as_json: bool, quiet: bool, strict: bool, page: Page | None = None) -> bool:
    """Analyse, write the products, print the answer; whether `--strict` has something to
    object to.
    """
    from profharness.understand import report_run as understand

    try:
        summary = understand.finish(root)
    except KeyboardInterrupt:
        mention(way_to_report(near(root)))
        raise
    if page is not None:
        page.answered(summary, root)
    if as_json:
        from profharness.report.json import run_json

        printed(run_json(summary).decode(), root / "summary.json")
    elif not quiet:
        show(summary, root, root / "report.html")
    return strict and any(found.severity == "error" for found in summary.findings)
