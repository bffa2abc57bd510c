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

from profharness.analysis.formulas import (
    busy_ns,
    concurrency,
    cores_allowed,
    cores_used,
    cpu_cores,
    delay_percentile,
    filled,
    idle_cause,
    kernels_per_step,
    launch_bound,
    operator_share,
    quantisation,
    resident,
    share_of,
    short_kernels,
    step_time,
    steps_per_second,
)
from profharness.analysis.kernels import counter_shares
from profharness.analysis.kernels import useful_work as work_metrics
from profharness.analysis.kernels.counter_figures import figure as figure_of_counters
from profharness.analysis.kernels.roofline import BANDWIDTH, COMPUTE, INSIDE, UNDETERMINED
from profharness.analysis.measurement import Measurement
from profharness.analysis.records import (
    Figure,
)

Better = Literal["higher", "lower", "neither"]
Needs = Literal[
    "kernels", "links", "geometry", "registers", "steps", "cpu_samples", "ops", "counters"
]

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
    "cpu_samples": lambda m: cpu_cores(m) is not None,
    "counters": lambda m: bool(m.facts.shares),
    "ops": lambda m: len(m.trace.ops) > 0 and m.when.total > 0,
}


def _rows() -> Iterator[Metric]:
    kernels: tuple[Needs, ...] = ("kernels",)
    linked: tuple[Needs, ...] = ("kernels", "links")
    geometry: tuple[Needs, ...] = ("kernels", "geometry")
    yield Metric("busy", "share", "higher", kernels, share_of(busy_ns))
    yield Metric(
        "busy_any",
        "share",
        "higher",
        kernels,
        share_of(lambda m: m.window_ns - m.partition.idle_ns),
    )
    yield Metric("sum_busy", "share", "higher", kernels, share_of(lambda m: int(m.kernel_ns.sum())))
    yield Metric("concurrency", "kernels", "neither", kernels, concurrency)
    yield Metric("compute", "share", "higher", kernels, share_of(lambda m: m.partition.compute_ns))
    yield Metric(
        "communication", "share", "lower", kernels, share_of(lambda m: m.partition.communication_ns)
    )
    yield Metric(
        "exposed_communication",
        "share",
        "lower",
        kernels,
        share_of(lambda m: m.partition.exposed_communication_ns),
    )
    yield Metric(
        "overlapped_communication",
        "share",
        "neither",
        kernels,
        share_of(lambda m: m.partition.communication_ns - m.partition.exposed_communication_ns),
    )
    yield Metric("copy", "share", "lower", kernels, share_of(lambda m: m.partition.copy_ns))
    yield Metric(
        "exposed_copy", "share", "lower", kernels, share_of(lambda m: m.partition.exposed_copy_ns)
    )
    yield Metric("idle", "share", "lower", kernels, share_of(lambda m: m.partition.idle_ns))
    for cause in (
        "no_host_record",
        "waiting_copy_or_event",
        "queued_gap",
        "launch_in_progress",
        "synchronisation",
        "host_not_ready",
    ):
        yield Metric(
            f"idle_{cause}", "share", "lower", kernels, share_of(idle_cause(f"{cause}_ns"))
        )
    yield Metric("idle_micro_gaps", "share", "lower", kernels, share_of(idle_cause("micro_ns")))
    yield Metric("idle_macro_gaps", "share", "lower", kernels, share_of(idle_cause("macro_ns")))
    yield Metric(
        "idle_longest_gap",
        "ns",
        "lower",
        kernels,
        lambda m: Figure(value=m.longest_gap_ns, unit="ns", source=m.origin),
    )
    for percent, name in ((50.0, "median"), (99.0, "p99")):
        yield Metric(
            f"launch_latency_{name}",
            "ns",
            "lower",
            linked,
            delay_percentile(percent, met_empty=True),
        )
        yield Metric(
            f"queue_delay_{name}",
            "ns",
            "neither",
            linked,
            delay_percentile(percent, met_empty=False),
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
    yield Metric("launch_bound", "share", "lower", linked, launch_bound)
    yield Metric("short_kernels_by_count", "share", "lower", kernels, short_kernels("count"))
    yield Metric("short_kernels_by_time", "share", "lower", kernels, short_kernels("time"))
    yield Metric(
        "fill",
        "share",
        "higher",
        geometry,
        filled(lambda f: f.filled_ns / f.window_ns, lambda f: f.unknown_ns / f.window_ns),
    )
    yield Metric(
        "fill_busy",
        "share",
        "higher",
        geometry,
        filled(
            lambda f: f.filled_ns / f.busy_ns if f.busy_ns else 0.0,
            lambda f: f.unknown_ns / f.busy_ns if f.busy_ns else 0.0,
        ),
    )
    yield Metric(
        "underfilled",
        "share",
        "lower",
        geometry,
        filled(lambda f: f.underfilled_ns / f.window_ns, lambda f: f.unknown_ns / f.window_ns),
    )
    yield Metric(
        "occupancy",
        "share",
        "higher",
        ("kernels", "registers"),
        resident(
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
        resident(
            "share",
            quantisation,
            without="kernels with more workgroups than the device holds at once",
        ),
    )
    yield Metric(
        "slots_full_time",
        "share",
        "higher",
        ("kernels", "registers"),
        resident("share", lambda o: o.full_ns / o.window_ns, lambda o: o.blind_ns / o.window_ns),
    )
    yield from _work_rows()
    yield from _counter_rows()
    yield Metric("steps_per_second", "steps/s", "higher", ("steps",), steps_per_second)
    yield Metric("step_time", "ns", "lower", ("steps",), step_time)
    yield Metric("kernels_per_step", "kernels", "lower", ("kernels", "steps"), kernels_per_step)
    yield Metric("cores_used", "cores", "higher", ("cpu_samples",), cores_used)
    yield Metric("cores_allowed", "cores", "neither", (), cores_allowed)
    yield Metric("operators", "share", "higher", ("ops",), operator_share)


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
