"""A summary as `profharness metrics` prints it: counts, verdict, figures, findings, problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.records import Figure, Partition, Summary
from profharness.findings import problem_text
from profharness.report.tables import communication, counters, runtime_logs
from profharness.report.tables.figures import figure_listing
from profharness.report.text import steps
from profharness.report.text.findings import RANK, all_findings, finding_line
from profharness.report.text.labels import KERNELS, no_kernels, point_names_by_id
from profharness.report.text.limits import full_verdict
from profharness.report.text.listing import listing
from profharness.report.text.terminal import idle_items, partition_items
from profharness.rundir.shown.screen import lines_text, one_line
from profharness.units import format_ns, format_number, format_share


def metrics_text(summary: Summary, samples: Sequence[str] = (), *, by_step: bool = False) -> str:
    """Counts and verdict first, then every figure with where it came from or what it needs.

    `samples` are the telemetry metrics to show step by step; `by_step` says that steps were asked
    for, so that the text says that they are missing.
    """
    return lines_text(_lines(summary, samples, by_step=by_step))


def _lines(summary: Summary, samples: Sequence[str], *, by_step: bool) -> Iterator[str]:
    yield from _trace_lines(summary)
    if summary.steps_from:
        yield f"steps     {summary.steps_from}"
    verdict = full_verdict(summary.verdict, summary.verdict_needs)
    if verdict:
        yield f"verdict   {verdict}"
    yield from _partition_lines(summary.partition)
    yield from _coverage_lines(summary)
    if summary.communication is not None:
        yield from communication.lines(summary.communication)
    yield from runtime_logs.section(summary.log)
    why = no_kernels(summary)
    yield from _figure_block("metrics", summary.metrics, why)
    for point in summary.points:
        yield from _figure_block(f"point {point.point}", point.metrics, why)
    if summary.counters:
        yield from counters.lines(summary.counters)
    if summary.steps or by_step:
        yield from steps.lines(summary.steps, samples)
    lacking = [
        figure
        for group in (summary.metrics, *(point.metrics for point in summary.points))
        for figure in group.values()
        if figure.value is None
    ]
    if why and any(figure.needs.startswith(KERNELS) for figure in lacking):
        yield f"not measured: what only device kernels give ({why})"
    named = point_names_by_id(summary)
    for item in all_findings(summary):
        yield f"{item.severity:<8}  {finding_line(named, item)}"
    for problem in sorted(summary.problems, key=lambda row: RANK[row.severity]):
        what = problem_text(problem.source, problem.count, problem.message)
        yield f"{problem.severity:<8}  {one_line(what)}"


def _trace_lines(summary: Summary) -> Iterator[str]:
    counts = summary.trace
    name = f" (pass {counts.pass_name})" if counts.pass_name else ""
    yield one_line(f"{summary.source}{name}")
    if not counts.kernels and not counts.copies:
        yield (
            f"trace     {'hardware counters, and ' if summary.counters else ''}no device work, "
            f"{format_number(counts.ranks)} "
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
        f"{format_number(number)} {singular if number == 1 else plural}"
        for number, singular, plural in things
    )
    if counts.busy_ns is None or counts.busy_any_ns is None or counts.span_ns is None:
        yield (
            "          the times of kernels are not recorded"
            if counts.sum_kernel_ns is None
            else f"          {format_ns(counts.sum_kernel_ns)} kernels (sum), on no common timeline"
        )
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
    if partition is None or not partition.window_ns:
        return
    yield f"window    {'   '.join(partition_items(partition))}"
    causes = idle_items(partition)
    if causes:
        yield f"why idle  {'   '.join(causes)}"


def _coverage_lines(summary: Summary) -> Iterator[str]:
    work, launched = summary.work, summary.operator_share
    if work is not None and work.share is not None:
        yield (
            f"work      known for {format_share(work.share)} of matrix-kernel time"
            f"{_rest(work.reasons, work.matrix_kernel_ns)}"
        )
    if launched is not None and launched.share is not None:
        yield (
            f"operators {format_share(launched.share)} of kernel time was launched inside of one"
            f"{_rest(launched.reasons, launched.kernel_ns)}"
        )


def _rest(reasons: dict[str, int], total_ns: int) -> str:
    parts = (f"{reason} {format_share(ns / total_ns)}" for reason, ns in reasons.items())
    return f"; the rest: {', '.join(parts)}" if reasons else ""


def _figure_block(title: str, figures: dict[str, Figure], no_kernels: str) -> Iterator[str]:
    """Measured figures, then one line for each thing that is missing, with the metrics that need
    it.

    What needs device kernels is left out where the reason `no_kernels` is known: it holds for all
    blocks at once.
    """
    if not figures:
        return
    measured = {name: figure for name, figure in figures.items() if figure.value is not None}
    yield f"{title}:"
    yield from listing(figure_listing(measured), indent=2)
    missing: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure.value is None and not (no_kernels and figure.needs.startswith(KERNELS)):
            missing.setdefault(figure.needs, []).append(name)
    for needs, names in missing.items():
        yield f"  not measured: {', '.join(names)}: needs {needs}"
