"""`profharness metrics`: counts, saturation metrics, findings and problems of a run or a trace file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.cli.several import Dask, DaskWorkers, Processes

if TYPE_CHECKING:
    from profharness.analysis.records import Figure, Partition, Summary


def metrics(
    paths: Annotated[list[Path], typer.Argument(help="A run directory, or trace files: one per rank, each on its own clock.", metavar="RUN|FILE...")],
    json: Annotated[bool, typer.Option("--json", help="Print the JSON document instead of the table.")] = False,
    processes: Processes = None,
    dask: Dask = None,
    dask_workers: DaskWorkers = 0,
) -> None:
    """Show saturation metrics, counts, findings and problems."""
    from profharness import understand
    from profharness.loading import check_paths
    from profharness.report.json import metrics_json

    check_paths(paths)
    if len(paths) == 1 and dask is None:
        summary = understand.summarise(understand.load(paths))
    else:
        from profharness.jobs import Workers
        from profharness.many import summarise_files

        summary = summarise_files(paths, Workers(processes, dask, dask_workers))
    sys.stdout.write(metrics_json(summary).decode() if json else text_of(summary))


def text_of(summary: Summary) -> str:
    """The same for a person: verdict and partition first, then every figure with where it came from or what it needs."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    from profharness.report.findings_text import RANK, all_findings, finding_line
    from profharness.report.labels import KERNELS, no_kernels

    yield from _trace_lines(summary)
    if summary.verdict is not None:
        yield f"verdict   {summary.verdict.evidence}"
    yield from _partition_lines(summary.partition)
    why = no_kernels(summary)
    yield from _figure_block("metrics", summary.metrics, why)
    for point in summary.points:
        yield from _figure_block(f"point {point.point}", point.metrics, why)
    lacking = [figure for group in (summary.metrics, *(point.metrics for point in summary.points)) for figure in group.values() if figure.value is None]
    if why and any(figure.needs.startswith(KERNELS) for figure in lacking):
        yield f"not measured: what only device kernels give ({why})"
    for item in all_findings(summary):
        yield f"{item.severity:<8}  {finding_line(summary, item)}"
    for problem in sorted(summary.problems, key=lambda row: RANK[row.severity]):
        yield f"{problem.severity:<8}  {problem.source}: {problem.count} x {problem.message}"


def _trace_lines(summary: Summary) -> Iterator[str]:
    from profharness.units import format_ns, format_number

    counts = summary.trace
    name = f" (pass {counts.pass_name})" if counts.pass_name else ""
    yield f"{summary.source}{name}"
    things = ((counts.kernels, "kernel", "kernels"), (counts.distinct_kernels, "name", "names"), (counts.copies, "copy", "copies"),
              (counts.streams, "stream", "streams"), (counts.devices, "device", "devices"), (counts.ranks, "rank", "ranks"))
    yield "trace     " + ", ".join(f"{format_number(number)} {one if number == 1 else many}" for number, one, many in things)
    yield f"          {format_ns(counts.busy_ns)} kernels (union), {format_ns(counts.busy_any_ns)} with copies, in {format_ns(counts.span_ns)}"
    if counts.unlinked_kernels:
        yield f"          {format_number(counts.unlinked_kernels)} kernels without their launching call"
    if counts.graph_launches:
        yield f"          {format_number(counts.kernels_in_graphs)} kernels in {format_number(counts.graph_launches)} graph launches"


def _partition_lines(partition: Partition | None) -> Iterator[str]:
    from profharness.report.terminal import idle_items, partition_items

    if partition is None or not partition.window_ns:
        return
    yield f"window    {'   '.join(partition_items(partition))}"
    causes = idle_items(partition)
    if causes:
        yield f"why idle  {'   '.join(causes)}"


def _figure_block(title: str, figures: dict[str, Figure], no_kernels: str) -> Iterator[str]:
    """Measured figures, then one line for each thing that is missing, with the metrics that need it.

    What needs device kernels is left out where the reason `no_kernels` is known: it holds for all blocks at once.
    """
    from profharness.report.figures import figure_text
    from profharness.report.labels import KERNELS

    measured = {name: figure for name, figure in figures.items() if figure.value is not None}
    if not figures:
        return
    yield f"{title}:"
    width = max((len(name) for name in measured), default=0)
    for name, figure in measured.items():
        notes = [figure.source, figure.note, f"covers {figure.coverage:.0%} of kernel time" if figure.coverage is not None else ""]
        yield f"  {name:<{width}}  {figure_text(figure):<14}  {'; '.join(note for note in notes if note)}".rstrip()
    missing: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure.value is None and not (no_kernels and figure.needs.startswith(KERNELS)):
            missing.setdefault(figure.needs, []).append(name)
    for needs, names in missing.items():
        yield f"  not measured: {', '.join(names)}: needs {needs}"
