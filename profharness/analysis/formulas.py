"""The formulas behind the table of metrics: pure functions from a measurement to a figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from profharness.analysis.kernels.filling import NEEDED_COVERAGE, Fill
from profharness.analysis.kernels.occupancy import Occupancy
from profharness.analysis.measurement import Measurement
from profharness.analysis.records import Figure
from profharness.findings import ways
from profharness.stats import intervals
from profharness.stats.intervals import Intervals

INFLATED = "inflated by the profiler"
Unrecorded = Literal["busy", "idle", "time", "more"]
"""What work that nobody recorded could add to a share of the window: all of it is busy time and
none of it idle time, which telemetry may tell; to other figures its time at most, or more.
"""


SHORT_KERNEL_NS = 10_000


_BEYOND = 10
_NO_LENGTH = "two steps, as nothing says when the only one began on the device"
_OUTLIVED = "steps that end on the device, as work that an earlier step launched outlives them"


def share_of(numerator: Callable[[Measurement], float]) -> Callable[[Measurement], Figure]:
    """A share of the window, marked when the window is a profiled one."""

    def compute(m: Measurement) -> Figure:
        return Figure(
            value=numerator(m) / m.window_ns,
            unit="share",
            source=m.origin,
            note=INFLATED if m.traced else "",
        )

    return compute


def opened(figure: Figure, m: Measurement, adds: Unrecorded) -> Figure:
    """A share of the window as the range that it may have, with what may have been work that nobody
    recorded, and as far as telemetry narrows it.
    """
    unknown, told = m.partition.open_ns, m.narrowing
    why = "; ".join(part for part in (figure.note, m.partition.why_open, *told.said) if part)
    if figure.value is None or why == figure.note:
        return figure
    low = figure.value if figure.low is None else figure.low
    high = figure.value if figure.high is None else figure.high
    least = min(told.least, unknown)
    low += least / m.window_ns if adds == "busy" else 0
    if not unknown or (adds in {"busy", "idle"} and least == unknown):
        return msgspec.structs.replace(figure, value=low if unknown else figure.value, note=why)
    high += (unknown - (least if adds == "idle" else 0)) / m.window_ns
    return msgspec.structs.replace(
        figure, value=None, low=low, high=None if adds == "more" else high, note=why
    )


def idle_ns(m: Measurement) -> int:
    """Time in ns in which the devices were idle for all that is known."""
    split = m.partition
    return split.idle_ns + (0 if split.open_ns else split.idle_or_not_recorded_ns)


def idle_cause(name: str) -> Callable[[Measurement], float]:
    """Idle time of one cause in ns; `name` is a field of `IdleCauses`. 0 where the window has no
    host record.
    """

    def nanoseconds(m: Measurement) -> float:
        causes = m.partition.idle_causes
        return float(getattr(causes, name)) if causes is not None else 0.0

    return nanoseconds


def busy_ns(m: Measurement) -> int:
    """Time in ns in which at least one kernel ran: computing, or communicating alone."""
    return m.partition.compute_ns + m.partition.exposed_communication_ns


def busy_any_ns(m: Measurement) -> int:
    """Time in ns in which a kernel, a copy or a fill ran."""
    return busy_ns(m) + m.partition.exposed_copy_ns


def concurrency(m: Measurement) -> Figure:
    """Kernels at once while any runs: summed kernel time over busy time."""
    busy = busy_ns(m)
    if not busy:
        return Figure(
            value=None, unit="kernels", source=m.origin, needs="kernels inside the window"
        )
    return Figure(value=int(m.kernel_ns.sum()) / busy, unit="kernels", source=m.origin)


def delay_percentile(percent: float, *, met_empty: bool) -> Callable[[Measurement], Figure]:
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


def longest_gap(m: Measurement) -> Figure:
    """The longest time in ns in which a device had no work inside of the window; its ends where it
    may have run some that is not recorded.
    """
    low, high = m.longest_gaps_ns
    if low == high or not m.partition.open_ns:
        return Figure(value=high, unit="ns", source=m.origin)
    return Figure(value=None, low=low, high=high, unit="ns", source=m.origin)


def queue_depth(m: Measurement) -> Figure:
    """Kernels waiting in queues, the mean over the window: summed waiting time over its length."""
    return Figure(
        value=m.queue_depth_ns / m.window_ns,
        unit="kernels",
        source=m.origin,
        coverage=m.linked_share,
    )


def launch_bound(m: Measurement) -> Figure:
    """Share of the window in which the device was idle or drained while the host was in, or
    between, launches; its ends where it may have run work that is not recorded.
    """
    found = Figure(
        value=m.launch_bound_ns / m.window_ns,
        unit="share",
        source=m.origin,
        note=INFLATED if m.traced else "",
        coverage=m.linked_share,
    )
    if not m.partition.open_ns or m.launch_bound_least_ns == m.launch_bound_ns:
        return found
    return msgspec.structs.replace(
        found, value=None, low=m.launch_bound_least_ns / m.window_ns, high=found.value
    )


def short_kernels(by: Literal["count", "time"]) -> Callable[[Measurement], Figure]:
    """Share of kernels shorter than `SHORT_KERNEL_NS`, by count or by their time."""

    def compute(m: Measurement) -> Figure:
        durations = m.trace.kernels.dur_ns
        inside = m.windows.contains(m.trace.kernels.start_ns, m.trace.kernels.device)
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


def filled(
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
                    f"{coverage:.0%}): {ways.GEOMETRY}"
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


def resident(
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
        occupancy = m.occupancy
        coverage = occupancy.coverage if occupancy is not None else 0.0
        if occupancy is None or coverage < NEEDED_COVERAGE:
            return Figure(
                value=None,
                unit=unit,
                source=m.origin,
                coverage=coverage,
                needs=(
                    f"registers and LDS for {NEEDED_COVERAGE:.0%} of kernel time (here "
                    f"{coverage:.0%}): {ways.MORE_REGISTERS}"
                ),
            )
        low = value(occupancy)
        if low is None:
            return Figure(value=None, unit=unit, source=m.origin, coverage=coverage, needs=without)
        return Figure(
            value=low,
            unit=unit,
            low=low,
            high=min(low + blind(occupancy), 1.0),
            source=m.origin,
            coverage=coverage,
        )

    return compute


def quantisation(occupancy: Occupancy) -> float | None:
    """Useful part of the rounds in which workgroups ran; None where no kernel needed a second
    round.
    """
    return occupancy.useful_ns / occupancy.rounds_ns if occupancy.rounds_ns else None


def _lengths_need(m: Measurement) -> str:
    return _OUTLIVED if any(step.length_ns is not None for step in m.steps) else _NO_LENGTH


def steps_per_second(m: Measurement) -> Figure:
    """Steps per second, the mean over the processes."""
    if m.pace.per_second is None:
        return Figure(value=None, unit="steps/s", source=m.origin, needs=_lengths_need(m))
    return Figure(
        value=m.pace.per_second,
        unit="steps/s",
        source=m.origin,
        note=INFLATED if m.traced else "",
    )


def step_time(m: Measurement) -> Figure:
    """Median length of a step in ns."""
    if m.pace.median_ns is None:
        return Figure(value=None, unit="ns", source=m.origin, needs=_lengths_need(m))
    return Figure(
        value=m.pace.median_ns,
        unit="ns",
        source=m.origin,
        note=INFLATED if m.traced else "median",
    )


def kernels_per_step(m: Measurement) -> Figure:
    """Kernels that a step launched, the mean over the steps."""
    return Figure(value=m.pace.kernels, unit="kernels", source=m.origin)


def cpu_cores(m: Measurement) -> float | None:
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


def cores_used(m: Measurement) -> Figure:
    """Cores that the process tree ran on: the time-weighted mean of its telemetry."""
    return Figure(value=cpu_cores(m), unit="cores", source=m.origin)


def cores_allowed(m: Measurement) -> Figure:
    """Cores that the process may use; not known of a loose file."""
    return Figure(
        value=m.allowed_cores,
        unit="cores",
        source=m.origin,
        needs="" if m.allowed_cores else "a run: loose files do not say",
    )


def operator_share(m: Measurement) -> Figure:
    """Share of the window that lay inside of any framework operator."""
    return Figure(
        value=intervals.intersect(m.on_host, m.whole.operators).total / m.on_host.total,
        unit="share",
        source=m.origin,
    )
