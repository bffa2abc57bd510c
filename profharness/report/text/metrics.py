"""A summary as `profharness metrics` prints it: counts, verdict, figures, findings, problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profharness.analysis.records import Partition, Summary
from profharness.findings import problem_text
from profharness.report import batches
from profharness.report.tables import (
    communication,
    counters,
    runtime_logs,
)
from profharness.report.tables.memory import copies
from profharness.report.tables.memory import holders as memory
from profharness.report.tables.nodes import node_tables
from profharness.report.text import steps
from profharness.report.text.findings import RANK, all_findings, finding_line
from profharness.report.text.labels import point_names, point_names_by_id
from profharness.report.text.limits import full_verdict, idle_items, partition_items
from profharness.report.text.listing import listing
from profharness.report.text.measured import python_lines
from profharness.report.text.measured.blocks import Block, block_lines
from profharness.report.text.measured.host_time import host_time_lines
from profharness.report.text.measured.lacking import lacking_lines, problem_lines
from profharness.report.text.measured.vendors import as_read
from profharness.rundir.shown.screen import lines_text, one_line
from profharness.units import format_ns, format_number, format_share


@dataclass(frozen=True)
class MetricsView:
    """What is shown of a summary: `samples` are the telemetry metrics to show step by step, and
    `by_step` says that steps were asked for, so that the text says where they are missing. `keys`
    adds the figures' names in JSON; `width` breaks long remarks at that column.
    """

    samples: Sequence[str] = ()
    by_step: bool = False
    keys: bool = False
    width: int | None = None


def metrics_text(summary: Summary, view: MetricsView = MetricsView()) -> str:
    """Counts and verdict first, then every figure with what it says and where it came from, and
    what the missing ones need.
    """
    return lines_text(_lines(as_read(summary), view))


def _lines(summary: Summary, view: MetricsView) -> Iterator[str]:
    yield from _trace_lines(summary)
    if summary.steps_from:
        yield f"steps     {summary.steps_from}"
    verdict = full_verdict(summary.verdict, summary.verdict_needs)
    if verdict:
        yield f"verdict   {verdict}"
    yield from _partition_lines(summary.partition)
    yield from host_time_lines(summary.host)
    yield from _coverage_lines(summary)
    if summary.communication is not None:
        yield from communication.lines(summary.communication)
    yield from copies.lines(summary.copies_by)
    yield from memory.lines(summary.memory)
    if summary.batches is not None:
        yield from batches.lines(summary.batches)
    yield from runtime_logs.section(summary.log)
    yield from python_lines.section(summary.host_lines)
    blocks = (
        Block("metrics", summary.metrics),
        *(
            Block(_point_title(name, point.point), point.metrics)
            for name, point in zip(
                point_names(summary, summary.points), summary.points, strict=True
            )
        ),
    )
    yield from block_lines(blocks, keys=view.keys, width=view.width)
    yield from lacking_lines(summary, keys=view.keys)
    if summary.counters:
        yield from counters.lines(summary.counters)
    yield from _node_lines(summary)
    if summary.steps or view.by_step:
        yield from steps.lines(summary.steps, view.samples)
    named = point_names_by_id(summary)
    for item in all_findings(summary):
        yield f"{item.severity:<8}  {finding_line(named, item)}"
    problems, unsampled = problem_lines(summary.problems)
    for problem in sorted(problems, key=lambda row: RANK[row.severity]):
        what = problem_text(problem.source, problem.count, problem.message)
        yield f"{problem.severity:<8}  {one_line(what)}"
    for line in unsampled:
        yield f"info      {one_line(line)}"


def _node_lines(summary: Summary) -> Iterator[str]:
    for table in node_tables(summary.nodes, summary.modules):
        yield f"{table.title}{f', {table.note}' if table.note else ''}:"
        yield from listing(table, indent=2, heads=True)


def _point_title(name: str, point: str) -> str:
    """`batch 4, point torch-b4`: the level in words, and the id by which options name the point."""
    return f"point {point}" if name == point else f"{name}, point {point}"


def _without_records(summary: Summary) -> str:
    """What there is of device work where no kernel and no copy is recorded by itself."""
    totals = next((table for table in summary.hotspots if table.by == "kernel"), None)
    if totals is not None and totals.total_ns:
        calls, names = sum(row.calls for row in totals.rows), len(totals.rows)
        return (
            f"totals of {format_number(calls)} kernel{'' if calls == 1 else 's'} of "
            f"{format_number(names)} name{'' if names == 1 else 's'}, and none by itself"
        )
    return f"{'hardware counters, and ' if summary.counters else ''}no device work"


def _trace_lines(summary: Summary) -> Iterator[str]:
    counts = summary.trace
    name = f" (pass {counts.pass_name})" if counts.pass_name else ""
    yield one_line(f"{summary.source}{name}")
    if not counts.kernels and not counts.copies:
        yield (
            f"trace     {_without_records(summary)}, "
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
