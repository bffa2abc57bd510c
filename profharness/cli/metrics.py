"""`profharness metrics`: counts, saturation metrics, findings and problems of a run or a trace
file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.errors import UsageError
from profharness.findings import problem_text
from profharness.options.many_files_flags import Dask, DaskWorkers, Processes
from profharness.options.step_flags import StepRange

if TYPE_CHECKING:
    from profharness.analysis.records import Figure, Partition, Summary


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
        metrics_json(summary).decode() if json else text_of(summary, shown, by_step=bool(steps))
    )


def _of_one_process(paths: Sequence[Path]) -> bool:
    """Whether these files are the tables of one process, which make one trace."""
    from profharness.readers import together

    return not any(path.is_dir() for path in paths) and len(together(paths)) == 1


def text_of(summary: Summary, samples: Sequence[str] = (), *, by_step: bool = False) -> str:
    """The same for a person: verdict and partition first, then every figure with where it came from
    or what it needs.

    `samples` are the telemetry metrics to show step by step; `by_step` says that steps were asked
    for, so that their absence is told.
    """
    return "\n".join(_lines(summary, samples, by_step=by_step)) + "\n"


def _lines(summary: Summary, samples: Sequence[str], *, by_step: bool) -> Iterator[str]:
    from profharness.report.text.findings import RANK, all_findings, finding_line
    from profharness.report.text.labels import KERNELS, no_kernels
    from profharness.report.text.limits import full_verdict

    yield from _trace_lines(summary)
    if summary.steps_from:
        yield f"steps     {summary.steps_from}"
    if summary.verdict is not None:
        yield f"verdict   {full_verdict(summary.verdict, summary.partition)}"
    yield from _partition_lines(summary.partition)
    if summary.communication is not None:
        from profharness.report.tables.communication import lines

        yield from lines(summary.communication)
    why = no_kernels(summary)
    yield from _figure_block("metrics", summary.metrics, why)
    for point in summary.points:
        yield from _figure_block(f"point {point.point}", point.metrics, why)
    if summary.counters:
        from profharness.report.tables.counters import lines as counter_lines

        yield from counter_lines(summary.counters)
    if summary.steps or by_step:
        from profharness.report.text.steps import lines as step_lines

        yield from step_lines(summary.steps, samples)
    lacking = [
        figure
        for group in (summary.metrics, *(point.metrics for point in summary.points))
        for figure in group.values()
        if figure.value is None
    ]
    if why and any(figure.needs.startswith(KERNELS) for figure in lacking):
        yield f"not measured: what only device kernels give ({why})"
    for item in all_findings(summary):
        yield f"{item.severity:<8}  {finding_line(summary, item)}"
    for problem in sorted(summary.problems, key=lambda row: RANK[row.severity]):
        yield (
            f"{problem.severity:<8}  {problem_text(problem.source, problem.count, problem.message)}"
        )


def _trace_lines(summary: Summary) -> Iterator[str]:
    from profharness.units import format_ns, format_number

    counts = summary.trace
    name = f" (pass {counts.pass_name})" if counts.pass_name else ""
    yield f"{summary.source}{name}"
    if not counts.kernels and not counts.copies:
        yield (
            f"trace     no device work, {format_number(counts.ranks)} "
            f"{'rank' if counts.ranks == 1 else 'ranks'}"
        )
        return
    things = (
        (counts.kernels, "kernel", "kernels"),
        (counts.distinct_kernels, "name", "names"),
        (counts.copies, "copy", "copies"),
        (counts.streams, "stream", "streams"),
        (counts.devices, "device", "devices"),
        (counts.ranks, "rank", "ranks"),
    )
    yield "trace     " + ", ".join(
        f"{format_number(number)} {one if number == 1 else many}" for number, one, many in things
    )
    if counts.busy_ns is None or counts.busy_any_ns is None or counts.span_ns is None:
        yield f"          {format_ns(counts.sum_kernel_ns)} kernels (sum), on no common timeline"
    else:
        yield (
            f"          {format_ns(counts.busy_ns)} kernels (union), "
            f"{format_ns(counts.busy_any_ns)} with copies, in {format_ns(counts.span_ns)}"
        )
    if counts.unlinked_kernels:
        yield (
            f"          {format_number(counts.unlinked_kernels)} kernels without their "
            "launching call"
        )
    if counts.graph_launches:
        yield (
            f"          {format_number(counts.kernels_in_graphs)} kernels in "
            f"{format_number(counts.graph_launches)} graph launches"
        )


def _partition_lines(partition: Partition | None) -> Iterator[str]:
    from profharness.report.text.terminal import idle_items, partition_items

    if partition is None or not partition.window_ns:
        return
    yield f"window    {'   '.join(partition_items(partition))}"
    causes = idle_items(partition)
    if causes:
        yield f"why idle  {'   '.join(causes)}"


def _figure_block(title: str, figures: dict[str, Figure], no_kernels: str) -> Iterator[str]:
    """Measured figures, then one line for each thing that is missing, with the metrics that need
    it.

    What needs device kernels is left out where the reason `no_kernels` is known: it holds for all
    blocks at once.
    """
    from profharness.report.text.figures import coverage_text, figure_text
    from profharness.report.text.labels import KERNELS

    measured = {name: figure for name, figure in figures.items() if figure.value is not None}
    if not figures:
        return
    yield f"{title}:"
    width = max((len(name) for name in measured), default=0)
    for name, figure in measured.items():
        notes = [figure.source, figure.note, coverage_text(figure)]
        yield (
            f"  {name:<{width}}  {figure_text(figure):<14}  "
            f"{'; '.join(note for note in notes if note)}"
        ).rstrip()
    missing: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure.value is None and not (no_kernels and figure.needs.startswith(KERNELS)):
            missing.setdefault(figure.needs, []).append(name)
    for needs, names in missing.items():
        yield f"  not measured: {', '.join(names)}: needs {needs}"
