"""`profharness metrics`: counts, saturation metrics, findings and problems of a run or a trace
file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import UsageError
from profharness.options.many_files_flags import Dask, DaskWorkers, Processes
from profharness.options.step_flags import StepRange


def metrics(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="A run directory, or trace files: one per rank, each on its own clock.",
            metavar="RUN|FILE...",
        ),
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document instead of the table.")
    ] = False,
    steps: Annotated[
        str,
        typer.Option(
            "--steps",
            help=(
                "Also step by step: all, one step by its number as 3, or a range as 10:30, "
                "30 not included (of one run or file)."
            ),
            metavar="RANGE",
        ),
    ] = "",
    step_range: StepRange = "",
    samples: Annotated[
        str,
        typer.Option(
            "--samples",
            help=(
                "With --steps: the telemetry to show, as power,clock (default: power, clock, "
                "cores)."
            ),
            metavar="LIST",
        ),
    ] = "",
    processes: Processes = None,
    dask: Dask = None,
    dask_workers: DaskWorkers = 0,
) -> None:
    """Show saturation metrics, counts, findings and problems."""
    from profharness.report.json import metrics_json
    from profharness.report.text.metrics import metrics_text
    from profharness.understand import report_run as understand
    from profharness.understand.load import check_paths

    check_paths(paths)
    if samples and not steps:
        raise UsageError(
            "--samples belongs to --steps",
            "`hotspots RUN --samples LIST` joins telemetry to kernels",
        )
    if steps:
        from profharness.analysis.time.step_summaries import parse

        parse(steps)  # a wrong word is told before a large file is read
    shown: tuple[str, ...] = ()
    if dask is None and (len(paths) == 1 or (steps and _of_one_process(paths))):
        loaded = understand.load(paths)
        summary = understand.summarise(loaded, step_range)
        if steps:
            import msgspec

            from profharness.analysis.power.sample_joins import named
            from profharness.analysis.verdict.above_peak import steps_above_peak

            shown = named(samples, loaded.trace) if samples else ()
            each = understand.step_by_step(loaded, steps, step_range)
            summary = msgspec.structs.replace(
                summary,
                steps=each,
                findings=(*summary.findings, *steps_above_peak(each, summary.findings)),
            )
    else:
        if steps:
            raise UsageError(
                "--steps is for one run or file",
                "name one path (or the tables that rocprofv3 wrote of one process), without --dask",
            )
        from profharness.understand.many.figures import summarise_files
        from profharness.understand.many.jobs import Workers

        summary = summarise_files(paths, Workers(processes, dask, dask_workers), step_range)
    sys.stdout.write(
        metrics_json(summary).decode()
        if json
        else metrics_text(summary, shown, by_step=bool(steps))
    )


def _of_one_process(paths: Sequence[Path]) -> bool:
    """Whether these files are the tables of one process, which make one trace."""
    from profharness.readers import together

    return not any(path.is_dir() for path in paths) and len(together(paths)) == 1
