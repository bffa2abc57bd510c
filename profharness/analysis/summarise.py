"""Everything that one trace says as one record: counts, figures, findings, the split of its window,
points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from profharness.analysis.batches.figures import batches
from profharness.analysis.communication.figures import communication, communication_findings
from profharness.analysis.efficiency.checks import efficiency_findings
from profharness.analysis.host.account import of_idle, of_window
from profharness.analysis.host.line_tables import line_table
from profharness.analysis.host.records import HostTime
from profharness.analysis.kernels import hotspots
from profharness.analysis.kernels.columns import with_rates
from profharness.analysis.kernels.counter_table import counter_rows
from profharness.analysis.kernels.facts import NO_YARDSTICK, KernelFacts, Yardstick
from profharness.analysis.kernels.point_kernels import notable_kernels
from profharness.analysis.measurement import Measurement, measure
from profharness.analysis.memory.allocator import memory
from profharness.analysis.memory.copies import copy_rows
from profharness.analysis.memory.held import held_peaks
from profharness.analysis.memory.levels import over_batches
from profharness.analysis.metrics import figures
from profharness.analysis.operators.coverage import known_work, misfits, operator_share
from profharness.analysis.power import run_telemetry
from profharness.analysis.records import (
    Figure,
    Partition,
    PointSummary,
    ProblemRow,
    SourceRow,
    Summary,
)
from profharness.analysis.run.runtime_logs import runtime_log
from profharness.analysis.time import counts
from profharness.analysis.time.believed import believed
from profharness.analysis.time.queue_series import queue_series
from profharness.analysis.time.steps import steps
from profharness.analysis.time.whole import Whole
from profharness.analysis.verdict import integrity
from profharness.analysis.verdict.above_peak import above_peak, kernels_above_peak
from profharness.analysis.verdict.grounds import grounds_of, kernel_parts
from profharness.analysis.verdict.impossible import impossible_figures, impossible_in
from profharness.analysis.verdict.window import judge
from profharness.findings import Finding
from profharness.stats.streams import streams
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem, Source, Trace


def summarise_trace(
    trace: Trace,
    source: str,
    *,
    findings: Sequence[Finding] = (),
    allowed_cores: float | None = None,
    yardstick: Yardstick = NO_YARDSTICK,
    facts: KernelFacts | None = None,
) -> Summary:
    """Everything that one trace says: counts, figures, findings, parts of its window, hotspots.

    `source` is what the user named. `findings` made elsewhere (on clocks) go after the trace's own.
    `yardstick` is what its devices were measured to reach, `facts` are those against it if known.
    """
    facts = facts or KernelFacts(trace, yardstick)
    devices = counts.counts_of_devices(trace)
    table = with_rates(hotspots.default(trace, devices, facts), facts)
    counted = counts.count(trace, devices=devices), counts.count_devices(trace, devices)
    if (shown := believed(trace)) is not trace:  # lengths that cannot be true are of counts alone
        trace, facts = shown, KernelFacts(shown, facts.yardstick)
    whole = measure(trace, allowed_cores=allowed_cores, known=Whole(trace, facts))
    split = device_partition(whole)
    talk = None if whole.timeless else communication(trace, whole.windows, whole.whole.idle)
    every_finding = _findings(whole, findings, communication_findings(talk, split))
    values = {**figures(whole), **_of_series(whole)}
    points = _points(whole, every_finding, allowed_cores)
    checked = (*_above_peak(whole, values, points), *impossible_in(values, split, points))
    every_finding = (*every_finding, *checked, *efficiency_findings(whole))
    judgement = judge(split, values, every_finding, grounds := grounds_of(whole))
    return Summary(
        source=source,
        trace=counted[0],
        devices=counted[1],
        points=points,
        metrics=values,
        findings=every_finding,
        problems=tuple(problem_row(problem) for problem in trace.problems),
        sources=tuple(source_row(record) for record in trace.sources),
        partition=judgement.partition,
        verdict=judgement.verdict,
        verdict_needs=judgement.needs,
        grounds=grounds,
        work=known_work(whole.facts, whole.work.links),
        operator_share=operator_share(trace, whole.work.links),
        hotspots=(table,),
        communication=talk,
        copies_by=copy_rows(whole),
        memory=over_batches(memory(whole), points, sizes=_batch_sizes(whole, points)),
        counters=counter_rows(trace),
        queues=queue_series(whole),
        log=runtime_log(trace),
        host_lines=line_table(trace),
        host=host_time(whole),
        batches=batches(trace),
        device_names=tuple(dict.fromkeys(one.name for one in trace.devices if one.name)),
        telemetry=run_telemetry.rows(trace, trace),
    )


def _findings(
    m: Measurement, given: Sequence[Finding], of_communication: Sequence[Finding]
) -> tuple[Finding, ...]:
    """On the records of the trace, those made elsewhere behind the trace's own."""
    of_records = integrity.findings(m.trace, m.work)
    return (*of_records, *given, *of_communication, *misfits(m.facts))


def _of_series(m: Measurement) -> dict[str, Figure]:
    """The means over the window of the telemetry that the trace's own file holds."""
    return run_telemetry.figures_in(streams(m.trace), m.when, m.origin)


def host_time(m: Measurement, shown: Iterable[Trace] = ()) -> HostTime | None:
    """What the host was in while the devices were idle, or in the whole window where none works.
    `shown` is the same trace with Python's functions and modules, in parts that each hold all
    records of their processes; without any the trace itself tells.
    """
    if m.timeless or not m.windows.everywhere.total:
        return None
    if m.devices:
        return of_idle(m.trace, m.whole.idle, m.devices, m.windows, shown)
    return of_window(m.trace, m.windows, shown)


def _points(
    whole: Measurement, findings: Sequence[Finding], allowed_cores: float | None
) -> tuple[PointSummary, ...]:
    """The points of the trace, each measured in its own window."""
    return tuple(
        summarise_point(
            whole.trace, point, findings, allowed_cores=allowed_cores, known=whole.whole
        )
        for point in points_of(whole.trace)
    )


def _batch_sizes(m: Measurement, points: Sequence[PointSummary]) -> dict[str, int]:
    """The items of each step of the points that hold allocations, where all its marks say one
    number.
    """
    found = {
        point.point: {step.items for step in steps(m.trace, point.point)}
        for point in points
        if point.held
    }
    sizes = {point: items.pop() for point, items in found.items() if len(items) == 1}
    return {point: items for point, items in sizes.items() if items}


def _above_peak(
    whole: Measurement, values: dict[str, Figure], points: Sequence[PointSummary]
) -> tuple[Finding, ...]:
    """Findings on figures above what the hardware can reach, of the whole trace and of its points;
    of single kernels where no figure of the whole trace shows it.
    """
    of_trace = tuple(above_peak(values))
    kernels = (
        ()
        if any(
            item.id == "above-peak" and set(item.figures) & {"mfu", "flops_of_ceiling"}
            for item in of_trace
        )
        else tuple(kernels_above_peak(whole))
    )
    return (
        *of_trace,
        *kernels,
        *(item for point in points for item in above_peak(point.metrics, point.point)),
    )


def summarise_point(
    trace: Trace,
    point: str,
    findings: Sequence[Finding] = (),
    *,
    traced: bool = True,
    allowed_cores: float | None = None,
    known: Whole | None = None,
) -> PointSummary:
    """The figures, split and verdict of one point of a trace, in the windows of its trials.

    Findings on the trace as a whole count for the verdict, as do those on this point.
    """
    inside = measure(trace, point, traced=traced, allowed_cores=allowed_cores, known=known)
    values = figures(inside)
    split = device_partition(inside)
    of_point = [
        *(item for item in findings if item.point in (None, point)),
        *impossible_figures(values, split, point),
    ]
    grounds = grounds_of(inside)
    judgement = judge(split, values, of_point, grounds)
    return PointSummary(
        point=point,
        metrics=values,
        partition=judgement.partition,
        verdict=judgement.verdict,
        verdict_needs=judgement.needs,
        grounds=grounds,
        work=known_work(inside.facts, inside.work.links, inside.kernel_ns),
        kernels=notable_kernels(inside),
        held=held_peaks(inside),
    )


def points_of(trace: Trace) -> list[str]:
    """Points that the trace's marks name, in order of time."""
    marked = trace.marks.take(trace.marks.point != NULL)
    ordered = marked.point[np.argsort(marked.start_ns, kind="stable")]
    return list(dict.fromkeys(trace.strings.decode(ordered)))


def device_partition(measurement: Measurement) -> Partition | None:
    """The split of the window, kernel time by what holds it back, where the trace holds device work
    on a time axis, else None.
    """
    if not measurement.devices or not measurement.window_ns or measurement.timeless:
        return None
    return msgspec.structs.replace(measurement.partition, kernel_parts=kernel_parts(measurement))


def problem_row(problem: Problem) -> ProblemRow:
    """A reader's problem as the summary lists it."""
    return ProblemRow(
        source=problem.source,
        severity=problem.severity,
        count=problem.count,
        message=problem.message,
    )


def source_row(source: Source) -> SourceRow:
    """Provenance of one source; the causal interval is the clock checks' to add."""
    return SourceRow(
        path=source.path,
        format=source.format,
        clock=source.clock.value,
        pass_name=source.pass_name,
        layer=source.layer,
        point=source.point,
        alignment=source.alignment,
        residual_ns=source.residual_ns,
        bound_ns=source.bound_ns,
        tool_version=source.tool_version,
    )
