"""The metrics of a trace as a table: name, unit, which way is better, what they need, and a pure
function.

A row whose input is missing gives a figure without a value that says what would give it; never 0.
Shares are of the window, summed over devices. In a traced pass the window is longer than in a bare
one: such shares are marked "inflated by the profiler".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from profharness.analysis.communication.figures import communication, communication_findings
from profharness.analysis.kernels import counter_shares, hotspots
from profharness.analysis.kernels import useful_work as work_metrics
from profharness.analysis.kernels.columns import with_rates
from profharness.analysis.kernels.counter_figures import figure as figure_of_counters
from profharness.analysis.kernels.counter_table import counter_rows
from profharness.analysis.kernels.facts import NO_YARDSTICK, KernelFacts, Yardstick
from profharness.analysis.kernels.filling import NEEDED_COVERAGE, Fill
from profharness.analysis.kernels.occupancy import Occupancy
from profharness.analysis.kernels.point_kernels import notable_kernels
from profharness.analysis.kernels.roofline import BANDWIDTH, COMPUTE, INSIDE, UNDETERMINED
from profharness.analysis.measurement import Measurement, measure
from profharness.analysis.records import (
    Figure,
    Partition,
    PointSummary,
    ProblemRow,
    SourceRow,
    Summary,
)
from profharness.analysis.time import counts
from profharness.analysis.time.whole import Whole
from profharness.analysis.verdict import integrity
from profharness.analysis.verdict.above_peak import above_peak, kernels_above_peak
from profharness.analysis.verdict.window import verdict
from profharness.findings import Finding
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import NULL, Problem, Source, Trace

Better = Literal["higher", "lower", "neither"]
Needs = Literal[
    "kernels", "links", "geometry", "registers", "steps", "cpu_samples", "ops", "counters"
]
INFLATED = "inflated by the profiler"
SHORT_KERNEL_NS = 10_000
_BEYOND = 10

# what kernels without a timeline still give, as long as they have lengths
_OF_LENGTHS = frozenset(
    {
        "short_kernels_by_count",
        "short_kernels_by_time",
        "fabric_bytes",
        "hbm_bytes",
        "ceiling_flops",
        "ceiling_bandwidth",
    }
)

_HINTS: dict[Needs, str] = {
    "kernels": "kernels: --profile torch, or rocprofv3 on AMD",
    "links": "host calls: --profile torch, or --hip-trace with rocprofv3",
    "geometry": "workgroups per kernel and the device's compute units: --profile rocprofv3",
    "registers": (
        "registers and LDS per kernel on a known architecture: "
        "--profile rocprofv3 of ROCm 7, or torch on NVIDIA"
    ),
    "steps": "marks of steps or trials",
    "cpu_samples": "telemetry",
    "ops": "framework operators: --profile torch or onnxruntime",
    "counters": "hardware counters: --profile rocprofv3 --pmc NAMES, or rocprof-compute",
}


@dataclass(frozen=True)
class Metric:
    """One row. `compute` is called only when everything in `needs` is there."""

    name: str
    unit: str
    better: Better
    needs: tuple[Needs, ...]
    compute: Callable[[Measurement], Figure]


def figures(measurement: Measurement) -> dict[str, Figure]:
    """Every metric of the table, measured or with what it needs."""
    return {metric.name: evaluate(metric, measurement) for metric in METRICS}


def evaluate(metric: Metric, measurement: Measurement) -> Figure:
    """One metric: its figure, or "not measured" with the first thing that it lacks."""
    if (
        "kernels" in metric.needs
        and measurement.timeless
        and not (metric.name in _OF_LENGTHS and measurement.window_ns)
    ):
        return Figure(
            value=None, unit=metric.unit, source=measurement.origin, needs=measurement.timeless
        )
    for need in metric.needs:
        if not _HAVE[need](measurement):
            return Figure(
                value=None, unit=metric.unit, source=measurement.origin, needs=_HINTS[need]
            )
    return metric.compute(measurement)


_HAVE: dict[Needs, Callable[[Measurement], bool]] = {
    "kernels": lambda m: len(m.trace.kernels) > 0 and m.window_ns > 0,
    "links": lambda m: m.has_links,
    "geometry": lambda m: m.fill is not None,
    "registers": lambda m: m.occupancy is not None,
    "steps": lambda m: bool(m.steps),
    "cpu_samples": lambda m: _cpu_cores(m) is not None,
    "counters": lambda m: bool(m.facts.shares),
    "ops": lambda m: len(m.trace.ops) > 0 and m.when.total > 0,
}


def _share(numerator: Callable[[Measurement], float]) -> Callable[[Measurement], Figure]:
    """A share of the window, marked when the window is a profiled one."""

    def compute(m: Measurement) -> Figure:
        return Figure(
            value=numerator(m) / m.window_ns,
            unit="share",
            source=m.origin,
            note=INFLATED if m.traced else "",
        )

    return compute


def _cause(name: str) -> Callable[[Measurement], float]:
    def nanoseconds(m: Measurement) -> float:
        causes = m.partition.idle_causes
        return float(getattr(causes, name)) if causes is not None else 0.0

    return nanoseconds


def _busy_ns(m: Measurement) -> int:
    return m.partition.compute_ns + m.partition.exposed_communication_ns


def _concurrency(m: Measurement) -> Figure:
    busy = _busy_ns(m)
    if not busy:
        return Figure(
            value=None, unit="kernels", source=m.origin, needs="kernels inside the window"
        )
    return Figure(value=int(m.kernel_ns.sum()) / busy, unit="kernels", source=m.origin)


def _percentile(percent: float, *, met_empty: bool) -> Callable[[Measurement], Figure]:
    """A percentile of launch latency (kernels that met an empty queue) or queue delay (the others),
    in ns.
    """

    def compute(m: Measurement) -> Figure:
        sample = m.delays.delay[m.delays.met_empty == met_empty]
        needed = 1 if percent == 50 else round(_BEYOND * 100 / (100 - percent))
        if len(sample) < needed:
            state = "met an empty queue" if met_empty else "queued behind others"
            return Figure(
                value=None,
                unit="ns",
                source=m.origin,
                needs=f"at least {needed} linked kernels that {state} (here {len(sample)})",
            )
        early = int((sample < 0).sum())
        note = (
            f"{early} kernels start before their launch: the clocks disagree by "
            f"{-int(sample.min())} ns"
            if early
            else ""
        )
        return Figure(
            value=float(np.percentile(sample, percent)),
            unit="ns",
            source=m.origin,
            note=note,
            coverage=m.linked_share,
        )

    return compute


def _launch_bound(m: Measurement) -> Figure:
    return Figure(
        value=m.launch_bound_ns / m.window_ns,
        unit="share",
        source=m.origin,
        note=INFLATED if m.traced else "",
        coverage=m.linked_share,
    )


def _short(by: Literal["count", "time"]) -> Callable[[Measurement], Figure]:
    def compute(m: Measurement) -> Figure:
        durations = m.trace.kernels.dur_ns
        inside = intervals.contains(m.when, m.trace.kernels.start_ns)
        short = inside & (durations < SHORT_KERNEL_NS)
        part, whole = (
            (short.sum(), inside.sum())
            if by == "count"
            else (durations[short].sum(), durations[inside].sum())
        )
        if not whole:
            return Figure(
                value=None,
                unit="share",
                source=m.origin,
                needs="kernels that start inside the window",
            )
        return Figure(value=float(part / whole), unit="share", source=m.origin)

    return compute


def _filled(
    value: Callable[[Fill], float], blind: Callable[[Fill], float]
) -> Callable[[Measurement], Figure]:
    """A fill figure: at least `value`, at most that plus what the kernels without geometry could
    add.
    """

    def compute(m: Measurement) -> Figure:
        fill = m.fill
        coverage = (
            fill.known_kernel_ns / fill.kernel_ns if fill is not None and fill.kernel_ns else 0.0
        )
        if fill is None or coverage < NEEDED_COVERAGE:
            return Figure(
                value=None,
                unit="share",
                source=m.origin,
                coverage=coverage,
                needs=(
                    f"workgroups for {NEEDED_COVERAGE:.0%} of kernel time (here "
                    f"{coverage:.0%}): --profile rocprofv3"
                ),
            )
        low = value(fill)
        return Figure(
            value=low,
            unit="share",
            low=low,
            high=min(low + blind(fill), 1.0),
            source=m.origin,
            coverage=coverage,
        )

    return compute


def _resident(
    unit: str,
    value: Callable[[Occupancy], float | None],
    blind: Callable[[Occupancy], float] = lambda _: 0.0,
    without: str = "",
) -> Callable[[Measurement], Figure]:
    """A figure from resident waves: at least `value`, at most that plus what kernels of unknown
    shape could add.

    `without` says what is missing where `value` is None.
    """

    def compute(m: Measurement) -> Figure:
        found = m.occupancy
        coverage = found.coverage if found is not None else 0.0
        if found is None or coverage < NEEDED_COVERAGE:
            return Figure(
                value=None,
                unit=unit,
                source=m.origin,
                coverage=coverage,
                needs=(
                    f"registers and LDS for {NEEDED_COVERAGE:.0%} of kernel time (here "
                    f"{coverage:.0%}): --profile rocprofv3 of ROCm 7"
                ),
            )
        low = value(found)
        if low is None:
            return Figure(value=None, unit=unit, source=m.origin, coverage=coverage, needs=without)
        return Figure(
            value=low,
            unit=unit,
            low=low,
            high=min(low + blind(found), 1.0),
            source=m.origin,
            coverage=coverage,
        )

    return compute


def _quantisation(found: Occupancy) -> float | None:
    return found.useful_ns / found.rounds_ns if found.rounds_ns else None


def _steps_per_second(m: Measurement) -> Figure:
    by_process: dict[int, list[int]] = {}
    for step in m.steps:
        by_process.setdefault(step.process, []).append(step.dur_ns)
    rate = sum(len(lengths) * 1e9 / sum(lengths) for lengths in by_process.values() if sum(lengths))
    return Figure(
        value=rate / len(by_process),
        unit="steps/s",
        source=m.origin,
        note=INFLATED if m.traced else "",
    )


def _step_time(m: Measurement) -> Figure:
    lengths = [step.dur_ns for step in m.steps]
    return Figure(
        value=float(np.median(lengths)),
        unit="ns",
        source=m.origin,
        note=INFLATED if m.traced else "median",
    )


def _kernels_per_step(m: Measurement) -> Figure:
    starts = (
        m.whole.starts
    )  # a search per step, where a pass over all kernels per step would grow with both
    before = np.searchsorted(starts, [step.start_ns for step in m.steps])
    until = np.searchsorted(starts, [max(step.start_ns, step.end_ns) for step in m.steps])
    return Figure(value=int((until - before).sum()) / len(m.steps), unit="kernels", source=m.origin)


def _cpu_cores(m: Measurement) -> float | None:
    """Time-weighted mean of the cores that the process tree ran on, over the windows; None without
    samples there.
    """
    samples = m.trace.samples
    rows = (
        samples.metric == m.trace.strings.find("cpu_tree")
        if len(samples)
        else np.zeros(0, np.bool_)
    )
    weight = intervals.inside_ns(Intervals(samples.at_ns[rows], samples.until_ns[rows]), m.when)
    total = int(weight.sum())
    return float(np.dot(samples.value[rows], weight) / total) if total else None


def _cores_used(m: Measurement) -> Figure:
    return Figure(value=_cpu_cores(m), unit="cores", source=m.origin)


def _cores_allowed(m: Measurement) -> Figure:
    return Figure(
        value=m.allowed_cores,
        unit="cores",
        source=m.origin,
        needs="" if m.allowed_cores else "a run: loose files do not say",
    )


def _operator_share(m: Measurement) -> Figure:
    return Figure(
        value=intervals.intersect(m.when, m.whole.operators).total / m.when.total,
        unit="share",
        source=m.origin,
    )


def _rows() -> Iterator[Metric]:
    kernels: tuple[Needs, ...] = ("kernels",)
    linked: tuple[Needs, ...] = ("kernels", "links")
    geometry: tuple[Needs, ...] = ("kernels", "geometry")
    yield Metric("busy", "share", "higher", kernels, _share(_busy_ns))
    yield Metric(
        "busy_any", "share", "higher", kernels, _share(lambda m: m.window_ns - m.partition.idle_ns)
    )
    yield Metric("sum_busy", "share", "higher", kernels, _share(lambda m: int(m.kernel_ns.sum())))
    yield Metric("concurrency", "kernels", "neither", kernels, _concurrency)
    yield Metric("compute", "share", "higher", kernels, _share(lambda m: m.partition.compute_ns))
    yield Metric(
        "communication", "share", "lower", kernels, _share(lambda m: m.partition.communication_ns)
    )
    yield Metric(
        "exposed_communication",
        "share",
        "lower",
        kernels,
        _share(lambda m: m.partition.exposed_communication_ns),
    )
    yield Metric(
        "overlapped_communication",
        "share",
        "neither",
        kernels,
        _share(lambda m: m.partition.communication_ns - m.partition.exposed_communication_ns),
    )
    yield Metric("copy", "share", "lower", kernels, _share(lambda m: m.partition.copy_ns))
    yield Metric(
        "exposed_copy", "share", "lower", kernels, _share(lambda m: m.partition.exposed_copy_ns)
    )
    yield Metric("idle", "share", "lower", kernels, _share(lambda m: m.partition.idle_ns))
    for cause in (
        "no_host_record",
        "waiting_copy_or_event",
        "queued_gap",
        "launch_in_progress",
        "synchronisation",
        "host_not_ready",
    ):
        yield Metric(f"idle_{cause}", "share", "lower", kernels, _share(_cause(f"{cause}_ns")))
    yield Metric("idle_micro_gaps", "share", "lower", kernels, _share(_cause("micro_ns")))
    yield Metric("idle_macro_gaps", "share", "lower", kernels, _share(_cause("macro_ns")))
    yield Metric(
        "idle_longest_gap",
        "ns",
        "lower",
        kernels,
        lambda m: Figure(value=m.longest_gap_ns, unit="ns", source=m.origin),
    )
    for percent, name in ((50.0, "median"), (99.0, "p99")):
        yield Metric(
            f"launch_latency_{name}", "ns", "lower", linked, _percentile(percent, met_empty=True)
        )
        yield Metric(
            f"queue_delay_{name}", "ns", "neither", linked, _percentile(percent, met_empty=False)
        )
    yield Metric(
        "queue_depth",
        "kernels",
        "neither",
        linked,
        lambda m: Figure(
            value=m.queue_depth_ns / m.window_ns,
            unit="kernels",
            source=m.origin,
            coverage=m.linked_share,
        ),
    )
    yield Metric("launch_bound", "share", "lower", linked, _launch_bound)
    yield Metric("short_kernels_by_count", "share", "lower", kernels, _short("count"))
    yield Metric("short_kernels_by_time", "share", "lower", kernels, _short("time"))
    yield Metric(
        "fill",
        "share",
        "higher",
        geometry,
        _filled(lambda f: f.filled_ns / f.window_ns, lambda f: f.unknown_ns / f.window_ns),
    )
    yield Metric(
        "fill_busy",
        "share",
        "higher",
        geometry,
        _filled(
            lambda f: f.filled_ns / f.busy_ns if f.busy_ns else 0.0,
            lambda f: f.unknown_ns / f.busy_ns if f.busy_ns else 0.0,
        ),
    )
    yield Metric(
        "underfilled",
        "share",
        "lower",
        geometry,
        _filled(lambda f: f.underfilled_ns / f.window_ns, lambda f: f.unknown_ns / f.window_ns),
    )
    yield Metric(
        "occupancy",
        "share",
        "higher",
        ("kernels", "registers"),
        _resident(
            "share",
            lambda o: o.resident_ns / o.known_ns if o.known_ns else None,
            without="kernels that last",
        ),
    )
    yield Metric(
        "wave_quantisation",
        "share",
        "higher",
        ("kernels", "registers"),
        _resident(
            "share",
            _quantisation,
            without="kernels with more workgroups than the device holds at once",
        ),
    )
    yield Metric(
        "slots_full_time",
        "share",
        "higher",
        ("kernels", "registers"),
        _resident("share", lambda o: o.full_ns / o.window_ns, lambda o: o.blind_ns / o.window_ns),
    )
    yield from _work_rows()
    yield from _counter_rows()
    yield Metric("steps_per_second", "steps/s", "higher", ("steps",), _steps_per_second)
    yield Metric("step_time", "ns", "lower", ("steps",), _step_time)
    yield Metric("kernels_per_step", "kernels", "lower", ("kernels", "steps"), _kernels_per_step)
    yield Metric("cores_used", "cores", "higher", ("cpu_samples",), _cores_used)
    yield Metric("cores_allowed", "cores", "neither", (), _cores_allowed)
    yield Metric("operators", "share", "higher", ("ops",), _operator_share)


def _work_rows() -> Iterator[Metric]:
    kernels: tuple[Needs, ...] = ("kernels",)
    for name, kind, better in (
        ("compute_bound", COMPUTE, "higher"),
        ("bandwidth_bound", BANDWIDTH, "neither"),
        ("inside_kernel", INSIDE, "lower"),
        ("undetermined", UNDETERMINED, "neither"),
    ):
        yield Metric(name, "share", cast("Better", better), kernels, work_metrics.of_class(kind))
    yield Metric("achieved_flops", "FLOP/s", "higher", kernels, work_metrics.achieved_flops)
    yield Metric("mfu", "share", "higher", kernels, work_metrics.mfu)
    yield Metric("mfu_at_clock", "share", "higher", kernels, work_metrics.mfu_at_clock)
    yield Metric("flops_of_ceiling", "share", "higher", kernels, work_metrics.flops_of_ceiling)
    yield Metric("hfu", "share", "higher", kernels, work_metrics.hfu)
    yield Metric("achieved_bandwidth", "B/s", "higher", kernels, work_metrics.achieved_bandwidth)
    yield Metric("bandwidth_share", "share", "higher", kernels, work_metrics.bandwidth_share)
    yield Metric("fabric_bytes", "B", "lower", kernels, work_metrics.fabric_bytes)
    yield Metric("hbm_bytes", "B", "lower", kernels, work_metrics.hbm_bytes)
    yield Metric(
        "operational_intensity", "FLOP/B", "neither", kernels, work_metrics.operational_intensity
    )
    yield Metric("ceiling_flops", "FLOP/s", "neither", kernels, work_metrics.ceiling_flops)
    yield Metric("ceiling_bandwidth", "B/s", "neither", kernels, work_metrics.ceiling_bandwidth)


def _counter_rows() -> Iterator[Metric]:
    for shown in counter_shares.SHARES:
        yield Metric(
            shown.name,
            "share",
            cast("Better", shown.better),
            ("counters",),
            figure_of_counters(shown),
        )


METRICS: Sequence[Metric] = tuple(_rows())


def summarise_trace(
    trace: Trace,
    source: str,
    *,
    findings: Sequence[Finding] = (),
    allowed_cores: float | None = None,
    yardstick: Yardstick = NO_YARDSTICK,
) -> Summary:
    """Everything that one trace says: counts, figures, findings, the split of its window, points,
    hotspots.

    `source` is what the user named. `findings` made elsewhere (on clocks) go after the trace's own.
    `yardstick` is what its devices were measured to reach.
    """
    whole = measure(
        trace, allowed_cores=allowed_cores, known=Whole(trace, KernelFacts(trace, yardstick))
    )
    split = device_partition(whole)
    talk = None if whole.timeless else communication(trace, whole.when)
    found = (
        *integrity.findings(trace, whole.work),
        *findings,
        *communication_findings(talk, split),
    )
    values = figures(whole)
    points = tuple(
        summarise_point(trace, point, found, allowed_cores=allowed_cores, known=whole.whole)
        for point in points_of(trace)
    )
    found = (*found, *_above_peak(whole, values, points))
    devices = counts.counts_of_devices(trace)
    return Summary(
        source=source,
        trace=counts.count(trace, whole.work.links, devices),
        devices=counts.count_devices(trace, devices),
        points=points,
        metrics=values,
        findings=found,
        problems=tuple(problem_row(problem) for problem in trace.problems),
        sources=tuple(source_row(record) for record in trace.sources),
        partition=split,
        verdict=verdict(split, values, found),
        hotspots=(with_rates(hotspots.default(trace, devices), whole.facts),),
        communication=talk,
        counters=counter_rows(trace),
    )


def _above_peak(
    whole: Measurement, values: dict[str, Figure], points: Sequence[PointSummary]
) -> tuple[Finding, ...]:
    """What cannot be, of the whole trace and of its points; of kernels where no figure of the whole
    trace says it.
    """
    of_trace = tuple(above_peak(values))
    kernels = (
        ()
        if any(
            one.id == "above-peak" and set(one.figures) & {"mfu", "flops_of_ceiling"}
            for one in of_trace
        )
        else tuple(kernels_above_peak(whole))
    )
    return (
        *of_trace,
        *kernels,
        *(one for point in points for one in above_peak(point.metrics, point.point)),
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
    own = [item for item in findings if item.point in (None, point)]
    return PointSummary(
        point=point,
        metrics=values,
        partition=split,
        verdict=verdict(split, values, own),
        kernels=notable_kernels(inside),
    )


def points_of(trace: Trace) -> list[str]:
    """Points that the trace's marks name, in order of time."""
    marked = trace.marks.take(trace.marks.point != NULL)
    ordered = marked.point[np.argsort(marked.start_ns, kind="stable")]
    return list(dict.fromkeys(trace.strings.decode(ordered)))


def device_partition(measurement: Measurement) -> Partition | None:
    """The split of the window where the trace holds device work on a time axis, else None."""
    return (
        measurement.partition
        if measurement.devices and measurement.window_ns and not measurement.timeless
        else None
    )


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
