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
    Unrecorded,
    busy_any_ns,
    busy_ns,
    concurrency,
    cores_allowed,
    cores_used,
    cpu_cores,
    delay_percentile,
    filled,
    idle_cause,
    idle_ns,
    kernels_per_step,
    launch_bound,
    longest_gap,
    opened,
    operator_share,
    quantisation,
    queue_depth,
    resident,
    share_of,
    short_kernels,
    step_time,
    steps_per_second,
)
from profharness.analysis.kernels import counter_shares
from profharness.analysis.kernels import traffic_figures as traffic
from profharness.analysis.kernels import useful_work as work_metrics
from profharness.analysis.kernels.counter_figures import figure as figure_of_counters
from profharness.analysis.kernels.roofline import BANDWIDTH, COMPUTE, INSIDE, UNDETERMINED
from profharness.analysis.measurement import Measurement
from profharness.analysis.memory import peaks as allocator
from profharness.analysis.records import (
    Figure,
)
from profharness.findings import ways
from profharness.trace.sample_metrics import HSA_ALLOCATED, TORCH_ALLOCATED, TORCH_RESERVED

Better = Literal["higher", "lower", "neither"]
Needs = Literal[
    "kernels",
    "links",
    "geometry",
    "registers",
    "steps",
    "cpu_samples",
    "ops",
    "counters",
    "allocator",
    "hsa_memory",
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
    "kernels": f"kernels: {ways.KERNELS}",
    "links": f"host calls: {ways.CALLS}",
    "geometry": f"workgroups per kernel and the device's compute units: {ways.GEOMETRY}",
    "registers": f"registers and LDS per kernel on a known architecture: {ways.REGISTERS}",
    "steps": "marks of steps or trials",
    "cpu_samples": "telemetry",
    "ops": "framework operators: --profile torch or onnxruntime",
    "counters": f"hardware counters: {ways.COUNTERS}",
    "allocator": "torch's allocator: --profile torch --profile-memory",
    "hsa_memory": f"allocations of the runtime: {ways.ALLOCATIONS}",
}


@dataclass(frozen=True)
class Metric:
    """One row. `compute` is called only when everything in `needs` is there. Of several files the
    highest one counts where the row is a peak or a longest (`highest`). `unrecorded` says what work
    that nobody recorded could add.
    """

    name: str
    unit: str
    better: Better
    needs: tuple[Needs, ...]
    compute: Callable[[Measurement], Figure]
    highest: bool = False
    unrecorded: Unrecorded | Literal[""] = ""


def figures(measurement: Measurement) -> dict[str, Figure]:
    """Every metric of the table, measured or with what it needs; of several devices each peak of
    the allocator too.
    """
    by_name = {metric.name: evaluate(metric, measurement) for metric in METRICS}
    return by_name | allocator.of_each_device(measurement)


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
    found = metric.compute(measurement)
    if not metric.unrecorded or found.value is None:
        return found
    return opened(found, measurement, metric.unrecorded)


_HAVE: dict[Needs, Callable[[Measurement], bool]] = {
    "kernels": lambda m: len(m.trace.kernels) > 0 and m.window_ns > 0,
    "links": lambda m: m.has_links,
    "geometry": lambda m: m.fill is not None,
    "registers": lambda m: m.occupancy is not None,
    "steps": lambda m: bool(m.steps),
    "cpu_samples": lambda m: cpu_cores(m) is not None,
    "counters": lambda m: bool(m.facts.shares),
    "allocator": lambda m: allocator.recorded(m.trace),
    "hsa_memory": lambda m: allocator.recorded(m.trace, HSA_ALLOCATED),
    "ops": lambda m: len(m.trace.ops) > 0 and m.on_host.total > 0,
}


KERNELS: tuple[Needs, ...] = ("kernels",)
LINKED: tuple[Needs, ...] = ("kernels", "links")
GEOMETRY: tuple[Needs, ...] = ("kernels", "geometry")
REGISTERS: tuple[Needs, ...] = ("kernels", "registers")
IDLE_CAUSES = (
    "no_host_record",
    "waiting_copy_or_event",
    "queued_gap",
    "launch_in_progress",
    "synchronisation",
    "host_not_ready",
)


def _share_row(
    name: str,
    better: Better,
    part_ns: Callable[[Measurement], float],
    unrecorded: Unrecorded | Literal[""] = "time",
) -> Metric:
    """A row that is a share of the window; `part_ns` gives the part in ns."""
    return Metric(name, "share", better, KERNELS, share_of(part_ns), unrecorded=unrecorded)


def _rows() -> Iterator[Metric]:
    """All rows in the order in which they are shown."""
    yield from _device_time_rows()
    yield from _idle_rows()
    yield from _launch_rows()
    yield from _filling_rows()
    yield from _work_rows()
    yield from _counter_rows()
    yield Metric("steps_per_second", "steps/s", "higher", ("steps",), steps_per_second)
    yield Metric("step_time", "ns", "lower", ("steps",), step_time)
    yield Metric("kernels_per_step", "kernels", "lower", ("kernels", "steps"), kernels_per_step)
    yield Metric("cores_used", "cores", "higher", ("cpu_samples",), cores_used)
    yield Metric("cores_allowed", "cores", "neither", (), cores_allowed)
    yield Metric("operators", "share", "higher", ("ops",), operator_share)
    yield from _allocator_rows()


def _device_time_rows() -> Iterator[Metric]:
    yield _share_row("busy", "higher", busy_ns, "busy")
    yield _share_row("busy_any", "higher", busy_any_ns, "busy")
    yield _share_row("sum_busy", "higher", lambda m: int(m.kernel_ns.sum()), "more")
    yield Metric("concurrency", "kernels", "neither", KERNELS, concurrency)
    yield _share_row("compute", "higher", lambda m: m.partition.compute_ns)
    yield _share_row("communication", "lower", lambda m: m.partition.communication_ns)
    yield _share_row(
        "exposed_communication", "lower", lambda m: m.partition.exposed_communication_ns
    )
    yield _share_row(
        "overlapped_communication",
        "neither",
        lambda m: m.partition.communication_ns - m.partition.exposed_communication_ns,
    )
    yield _share_row("copy", "lower", lambda m: m.partition.copy_ns)
    yield _share_row("exposed_copy", "lower", lambda m: m.partition.exposed_copy_ns)


def _idle_rows() -> Iterator[Metric]:
    yield _share_row("idle", "lower", idle_ns, "idle")
    for cause in IDLE_CAUSES:
        yield _share_row(f"idle_{cause}", "lower", idle_cause(f"{cause}_ns"), "")
    yield _share_row("idle_micro_gaps", "lower", idle_cause("micro_ns"), "")
    yield _share_row("idle_macro_gaps", "lower", idle_cause("macro_ns"), "")
    yield Metric("idle_longest_gap", "ns", "lower", KERNELS, longest_gap, highest=True)


def _launch_rows() -> Iterator[Metric]:
    for percent, name in ((50.0, "median"), (99.0, "p99")):
        latency = delay_percentile(percent, met_empty=True)
        delay = delay_percentile(percent, met_empty=False)
        yield Metric(f"launch_latency_{name}", "ns", "lower", LINKED, latency)
        yield Metric(f"queue_delay_{name}", "ns", "neither", LINKED, delay)
    yield Metric("queue_depth", "kernels", "neither", LINKED, queue_depth)
    yield Metric("launch_bound", "share", "lower", LINKED, launch_bound)
    yield Metric("short_kernels_by_count", "share", "lower", KERNELS, short_kernels("count"))
    yield Metric("short_kernels_by_time", "share", "lower", KERNELS, short_kernels("time"))


def _filling_rows() -> Iterator[Metric]:
    fill = filled(lambda f: f.filled_ns / f.window_ns, lambda f: f.unknown_ns / f.window_ns)
    fill_busy = filled(
        lambda f: f.filled_ns / f.busy_ns if f.busy_ns else 0.0,
        lambda f: f.unknown_ns / f.busy_ns if f.busy_ns else 0.0,
    )
    underfilled = filled(
        lambda f: f.underfilled_ns / f.window_ns, lambda f: f.unknown_ns / f.window_ns
    )
    occupancy = resident(
        "share",
        lambda o: o.resident_ns / o.known_ns if o.known_ns else None,
        without="kernels that last",
    )
    rounds = resident(
        "share",
        quantisation,
        without="kernels with more workgroups than the device holds at once",
    )
    full = resident("share", lambda o: o.full_ns / o.window_ns, lambda o: o.blind_ns / o.window_ns)
    yield Metric("fill", "share", "higher", GEOMETRY, fill, unrecorded="time")
    yield Metric("fill_busy", "share", "higher", GEOMETRY, fill_busy)
    yield Metric("underfilled", "share", "lower", GEOMETRY, underfilled, unrecorded="time")
    yield Metric("occupancy", "share", "higher", REGISTERS, occupancy)
    yield Metric("wave_quantisation", "share", "higher", REGISTERS, rounds)
    yield Metric("slots_full_time", "share", "higher", REGISTERS, full, unrecorded="time")


def _work_rows() -> Iterator[Metric]:
    for name, kind, better in (
        ("compute_bound", COMPUTE, "higher"),
        ("bandwidth_bound", BANDWIDTH, "neither"),
        ("inside_kernel", INSIDE, "lower"),
        ("undetermined", UNDETERMINED, "neither"),
    ):
        of_class = work_metrics.of_class(kind)
        yield Metric(name, "share", cast("Better", better), KERNELS, of_class, unrecorded="time")
    yield Metric(
        "achieved_flops",
        "FLOP/s",
        "higher",
        KERNELS,
        work_metrics.achieved_flops,
        unrecorded="more",
    )
    yield Metric("mfu", "share", "higher", KERNELS, work_metrics.mfu, unrecorded="time")
    yield Metric(
        "mfu_at_clock", "share", "higher", KERNELS, work_metrics.mfu_at_clock, unrecorded="time"
    )
    yield Metric(
        "flops_of_ceiling",
        "share",
        "higher",
        KERNELS,
        work_metrics.flops_of_ceiling,
        unrecorded="time",
    )
    yield Metric("hfu", "share", "higher", KERNELS, work_metrics.hfu, unrecorded="time")
    yield Metric(
        "achieved_bandwidth",
        "B/s",
        "higher",
        KERNELS,
        traffic.achieved_bandwidth,
        unrecorded="more",
    )
    yield Metric(
        "bandwidth_share", "share", "higher", KERNELS, traffic.bandwidth_share, unrecorded="time"
    )
    yield Metric("mbu", "share", "higher", KERNELS, traffic.mbu, unrecorded="time")
    yield Metric("fabric_bytes", "B", "lower", KERNELS, traffic.fabric_bytes)
    yield Metric("hbm_bytes", "B", "lower", KERNELS, traffic.hbm_bytes)
    yield Metric(
        "operational_intensity", "FLOP/B", "neither", KERNELS, work_metrics.operational_intensity
    )
    yield Metric("ceiling_flops", "FLOP/s", "neither", KERNELS, work_metrics.ceiling_flops)
    yield Metric("ceiling_bandwidth", "B/s", "neither", KERNELS, work_metrics.ceiling_bandwidth)


def _allocator_rows() -> Iterator[Metric]:
    for name, metric, of_host in (
        (allocator.ALLOCATED_PEAK, TORCH_ALLOCATED, False),
        (allocator.RESERVED_PEAK, TORCH_RESERVED, False),
        ("torch_host_allocated_peak", TORCH_ALLOCATED, True),
    ):
        compute = allocator.peak(metric, of_host=of_host)
        yield Metric(name, "B", "lower", ("allocator",), compute, highest=True)
    for name, of_host in ((allocator.HSA_PEAK, False), ("hsa_host_allocated_peak", True)):
        compute = allocator.peak(HSA_ALLOCATED, of_host=of_host)
        yield Metric(name, "B", "lower", ("hsa_memory",), compute, highest=True)


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
_HIGHEST = tuple(metric.name for metric in METRICS if metric.highest)


def is_highest(name: str) -> bool:
    """Whether of several files the highest figure of this name counts: that of a row which says so,
    or of one device of it.
    """
    return name in _HIGHEST or name.startswith(allocator.OF_ONE_DEVICE)
