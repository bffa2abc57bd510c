"""`profharness metrics`: counts, saturation metrics, findings and problems of a run or a trace
file.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from profharness.cli.parsing.forms import FORM_HELP, JSON_HELP, Form
from profharness.errors import UsageError
from profharness.options.declared import Option
from profharness.options.operator_work import OperatorOptions
from profharness.options.steps import StepRange
from profharness.understand.operator_work import operator_input

if TYPE_CHECKING:
    from profharness.analysis.operators.engine import OperatorInput
    from profharness.analysis.records import Summary
    from profharness.understand.many.jobs import Workers


class MetricsLine(OperatorOptions, frozen=True, kw_only=True):
    """What a line of `metrics` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option(
            "A run directory, or trace files: one per rank, each on its own clock.",
            argument=True,
            metavar="RUN|FILE...",
        ),
    ]
    form: Annotated[Form, Option(FORM_HELP, names=("--format",))] = Form.TABLE
    json: Annotated[bool, Option(JSON_HELP)] = False
    keys: Annotated[bool, Option("Also each figure's name in the JSON document.")] = False
    steps: Annotated[
        str,
        Option(
            "Also step by step: all, one step by its number as 3, or a range as 10:30, "
            "30 not included (of one run or file).",
            metavar="RANGE",
        ),
    ] = ""
    step_range: StepRange = ""
    critical_path: Annotated[
        bool,
        Option("Also the critical path: what each instant of the steps waited for."),
    ] = False
    what_if: Annotated[
        tuple[str, ...],
        Option(
            "What a change would be worth, from the critical path: kernel:REGEX=FACTOR, "
            "op:REGEX=FACTOR, graphs, no-sync, hide-communication, dataloader or batch=N. "
            "Repeatable.",
            metavar="CHANGE",
        ),
    ] = ()
    samples: Annotated[
        str,
        Option(
            "With --steps: the telemetry to show, as power,clock (default: power, clock, cores).",
            metavar="LIST",
        ),
    ] = ""


def metrics(line: MetricsLine) -> None:
    """Show saturation metrics, counts, findings and problems."""
    from profharness.understand import report_run as understand
    from profharness.understand.load import check_paths
    from profharness.understand.loose.summaries import summarise_paths
    from profharness.understand.replays import with_captures

    check_paths(line.paths)
    if line.samples and not line.steps:
        raise UsageError(
            "--samples belongs to --steps",
            "`hotspots RUN --samples LIST` joins telemetry to kernels",
        )
    if line.steps and (line.critical_path or line.what_if):
        raise UsageError(
            "--steps does not go with --critical-path and --what-if",
            "leave it out: the critical path is divided by steps with --json",
        )
    if line.steps:
        from profharness.analysis.time.step_summaries import parse

        parse(line.steps)  # a wrong word is told before a large file is read
    given = operator_input(line.formulas, line.capture_trace)
    shown: tuple[str, ...] = ()
    if line.steps and (line.dask is not None or not _of_one_process(line.paths)):
        raise UsageError(
            "--steps is for one run or file",
            "name one path (or the tables that rocprofv3 wrote of one process), without --dask",
        )
    if line.steps:
        import msgspec

        from profharness.analysis.power.sample_joins import named
        from profharness.analysis.verdict.above_peak import steps_above_peak
        from profharness.trace.wanted import Wanted
        from profharness.understand.load import told

        loaded = told(understand.load(line.paths, wanted=Wanted.SHOWN))
        loaded = with_captures(loaded, given.captures)
        summary = understand.summarise(loaded, line.step_range, given)
        shown = named(line.samples, loaded.trace) if line.samples else ()
        each = understand.step_by_step(loaded, line.steps, line.step_range, given)
        summary = msgspec.structs.replace(
            summary,
            steps=each,
            findings=(*summary.findings, *steps_above_peak(each, summary.findings)),
        )
    elif line.critical_path or line.what_if:
        _with_critical_path(line, given)
        return
    else:
        summary = summarise_paths(line.paths, line.step_range, given, _workers(line))
    sys.stdout.write(_text(line, summary, shown))


def _with_critical_path(line: MetricsLine, given: OperatorInput) -> None:
    """Show the figures, and the critical path behind them."""
    import msgspec

    from profharness.analysis.critical.changes import parse
    from profharness.report.json import metrics_json, told_path
    from profharness.report.text.measured.critical_path import critical_path_text
    from profharness.understand.many.critical import summary_with_path

    changes = [parse(text) for text in line.what_if]
    summary, path = summary_with_path(line.paths, changes, line.step_range, given, _workers(line))
    if line.json or line.form is Form.JSON:
        beside = {"critical_path": msgspec.to_builtins(told_path(path))}
        sys.stdout.write(metrics_json(summary, beside).decode())
        return
    if line.form is Form.MD:
        summary = msgspec.structs.replace(summary, critical_path=path)
        sys.stdout.write(_text(line, summary, ()))
        return
    sys.stdout.write(_text(line, summary, ()))
    known = any(row.overhead for row in summary.passes)
    sys.stdout.write(critical_path_text(path, overhead_known=known))


def _text(line: MetricsLine, summary: Summary, shown: Sequence[str]) -> str:
    """The summary in the form asked for; `shown` are the telemetry metrics of its steps."""
    if line.json or line.form is Form.JSON:
        from profharness.report.json import metrics_json

        return metrics_json(summary).decode()
    if line.form is Form.MD:
        from profharness.report.md.metrics import metrics_markdown

        return metrics_markdown(summary, keys=line.keys)
    from profharness.report.text.metrics import MetricsView, metrics_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    view = MetricsView(shown, by_step=bool(line.steps), keys=line.keys, width=width)
    return metrics_text(summary, view)


def _workers(line: MetricsLine) -> Workers | None:
    """Who reads the files; None for a single one, which this process reads."""
    if len(line.paths) == 1 and line.dask is None:
        return None
    from profharness.cli.sharing.many import workers_of

    return workers_of(line)


def _of_one_process(paths: Sequence[Path]) -> bool:
    """Whether this is one path, or the tables of one process, which make one trace."""
    if len(paths) == 1:
        return True
    from profharness.readers import group_files

    return not any(path.is_dir() for path in paths) and len(group_files(paths)) == 1
