"""Which kernels run at a roof of the device, and how the time that fills it divides
(docs/metrics.md#roofline).

A kernel is compute-bound or bandwidth-bound when it reaches at least 60 % of that ceiling,
inside-kernel when it is known to reach neither (latency, LDS, gathers, atomics), undetermined when
neither its operations nor its traffic are known. Traffic is what counters say where a counter pass
exists, else what its tensors need at least. No real program reaches the peak of a data sheet: where
the device was not measured, what large products were published to reach on such devices stands in
its place, and without such figures only a small share of the sheet says that a roof is not reached.
A rate above what is possible says nothing of the kernel: its operations or its device are wrong, or
its traffic stays in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import function_name
from profharness.analysis.kernels.ceilings import OF_SHEET, REACHED, Ceiling, Ceilings
from profharness.analysis.kernels.counter_work import Counted
from profharness.analysis.operators.work import KernelWork
from profharness.analysis.time.timeline import is_communication
from profharness.analysis.time.windows import Windows
from profharness.node.ceilings import COPY
from profharness.node.devices import Dtype
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Kernels, Trace
from profharness.units import format_share

Mask = npt.NDArray[np.bool_]
COMPUTE, BANDWIDTH, INSIDE, UNDETERMINED = range(4)
LONGEST_NAME = 48
FAR_OF_PEAK, FAR_OF_BANDWIDTH = 0.5 * REACHED, 2 / 3 * REACHED
"""Below these shares of a data sheet a kernel is taken to be below `REACHED` of the measured roof:
a large matrix product reaches about half of the sheet's peak at least, a large copy two thirds of
its bandwidth.
"""
BEYOND_SHARE = 0.01
"""Of a device's kernel time: in so much of it kernels go beyond a ceiling that is not believed."""
CLASSES = ("compute", "bandwidth", "inside_kernel", "undetermined")


@dataclass(frozen=True, eq=False)
class Rates:
    """Per kernel: its shares of the compute and of the bandwidth ceiling, the share of the compute
    ceiling that programs `reach` (each NaN where not known), and its class.

    `flops` and `moved` are operations and bytes of the kernel; `counted` says which have their
    traffic from counters, `above` which do more operations per second than their device can
    (those left out whose algorithm does fewer than are counted).
    """

    flops: F64
    moved: F64
    compute_share: F64
    bandwidth_share: F64
    reach: F64
    kind: I64
    counted: Mask
    above: Mask

    def of(self, rows: I64 | None) -> Rates:
        """The rates of these kernels; None: of all."""
        return (
            self
            if rows is None
            else Rates(*(getattr(self, column.name)[rows] for column in fields(self)))
        )


def rates(
    trace: Trace, work: KernelWork, roofs: dict[int, Ceilings], counted: Counted | None = None
) -> Rates:
    """Rates of all kernels against the roofs of their devices. Useful operations come before those
    that counters saw.
    """
    kernels = trace.kernels
    flops, moved = work.flops, work.low_bytes
    from_counters = np.zeros(len(kernels), np.bool_)
    if counted is not None:
        flops = np.where(np.isfinite(flops), flops, counted.operations)
        from_counters = np.isfinite(counted.fabric_bytes)
        moved = np.where(from_counters, counted.moved, moved)
    seconds = np.where(kernels.dur_ns > 0, kernels.dur_ns / 1e9, np.nan)
    compute_share = flops / seconds / _compute_roofs(trace, work, roofs, "value")
    bandwidth_share = moved / seconds / _bandwidth_roofs(trace, roofs, "value")
    above = flops / seconds > _compute_roofs(trace, work, roofs, "limit")
    cached = moved / seconds > _bandwidth_roofs(trace, roofs, "limit")
    reach = _compute_roofs(trace, work, roofs, "reach")
    reached = compute_share / np.where(np.isfinite(reach), reach, 1.0)
    below_peak = np.nan_to_num(reached) < np.where(np.isfinite(reach), REACHED, FAR_OF_PEAK)
    below_copy = np.nan_to_num(bandwidth_share) < _bandwidth_roofs(trace, roofs, "near")
    known = (
        below_peak
        & below_copy
        & (np.isfinite(compute_share) | from_counters)
        & np.isfinite(bandwidth_share)
    )
    kind = _kinds(reached, np.where(cached, np.nan, bandwidth_share), known & ~cached)
    return Rates(
        flops,
        moved,
        compute_share,
        bandwidth_share,
        reach,
        np.where(above, UNDETERMINED, kind),
        from_counters,
        above & ~work.fewer,
    )


def believed(
    trace: Trace, work: KernelWork, roofs: dict[int, Ceilings], counted: Counted | None = None
) -> dict[int, Ceilings]:
    """The roofs without the measured ones beyond which kernels go in a notable part of the device's
    kernel time: products by their types, and traffic by counters (other bytes may stay in a cache).
    """
    kernels, found = trace.kernels, dict(roofs)
    for device, roof in roofs.items():
        here = kernels.device == device
        for code, dtype in enumerate(work.dtypes):
            rows = here & (work.dtype == code) & ~work.fewer
            if beyond := _beyond(kernels, rows, here, work.flops, roof.flops(dtype)):
                found[device] = found[device].exceeded(dtype, beyond)
        if counted is not None:
            rows = here & np.isfinite(counted.fabric_bytes)
            if beyond := _beyond(kernels, rows, here, counted.moved, roof.bandwidth):
                found[device] = found[device].exceeded(COPY, beyond)
    return found


def _beyond(
    kernels: Kernels, rows: Mask, of_device: Mask, amount: F64, ceiling: Ceiling | None
) -> float:
    """How many times of a measured ceiling those of the rows do that go beyond it, on average; 0 if
    hardly any do.
    """
    if ceiling is None or not ceiling.measured or not rows.any():
        return 0.0
    lasting = rows & (kernels.dur_ns > 0)
    rate = amount[lasting] / (kernels.dur_ns[lasting] / 1e9)
    above = np.nan_to_num(rate) > ceiling.limit
    held = kernels.dur_ns[lasting][above]
    if not above.any() or held.sum() < BEYOND_SHARE * kernels.dur_ns[of_device].sum():
        return 0.0
    return float(np.average(rate[above], weights=held)) / ceiling.value


def _kinds(compute: F64, bandwidth: F64, known: Mask) -> I64:
    """The higher of the roofs that are reached; where none is and the kernel is known well enough
    to say so, inside-kernel.
    """
    high, wide = np.nan_to_num(compute), np.nan_to_num(bandwidth)
    kind = np.where(known, INSIDE, UNDETERMINED)
    kind = np.where((wide >= REACHED) & (wide > high), BANDWIDTH, kind)
    return np.where((high >= REACHED) & (high >= wide), COMPUTE, kind).astype(np.int64)


Part = Literal["value", "limit", "reach", "near"]


def _compute_roofs(trace: Trace, work: KernelWork, roofs: dict[int, Ceilings], part: Part) -> F64:
    """Per kernel the ceiling of the type that it multiplies in (or the share of it that programs
    reach); operations known from counters alone are set against the highest.
    """
    kernels = trace.kernels
    ceiling = np.full(len(kernels), np.nan)
    for device, roof in roofs.items():
        on_device = kernels.device == device
        for code, dtype in enumerate(work.dtypes):
            ceiling[on_device & (work.dtype == code)] = _compute_part(roof, dtype, part)
        ceiling[on_device & (work.dtype == NULL)] = _compute_part(roof, "fp16", part)
    return ceiling


def _compute_part(roof: Ceilings, dtype: Dtype, part: Part) -> float:
    if part != "reach":
        return _part(roof.flops(dtype), part)
    reach = roof.reach(dtype)
    return np.nan if reach is None else reach


def _part(ceiling: Ceiling | None, part: Part) -> float:
    """`near`: the share of the ceiling below which it is known not to be reached."""
    if ceiling is None:
        return np.nan
    if part == "near":
        return REACHED if ceiling.measured else FAR_OF_BANDWIDTH
    return ceiling.value if part == "value" else ceiling.limit


def _bandwidth_roofs(trace: Trace, roofs: dict[int, Ceilings], part: Part) -> F64:
    ceiling = np.full(len(trace.kernels), np.nan)
    for device, roof in roofs.items():
        ceiling[trace.kernels.device == device] = _part(roof.bandwidth, part)
    return ceiling


CeilingsOf = Callable[[int], tuple[Ceiling | None, Ceiling | None]]


@dataclass(frozen=True)
class FilledSplit:
    """The compute time that fills a device, in ns, disjoint by class in the order of CLASSES;
    `said` is each class's evidence.
    """

    ns: tuple[int, int, int, int]
    said: tuple[str, str, str, str]


def filled_split(
    trace: Trace,
    filled: Mapping[int, Intervals],
    windows: Windows,
    rates_: Rates,
    ceilings_of: CeilingsOf,
) -> FilledSplit:
    """Split the times in which each device was `filled`, in its window; `ceilings_of` gives those
    of operations and traffic of a kernel of the trace.

    Where kernels of several classes run at once, the time counts for the one that comes first in
    CLASSES.
    """
    total = np.zeros(len(CLASSES), np.int64)
    talking = is_communication(trace.strings, trace.kernels)
    spans = intervals.lasting(trace.kernels.start_ns, trace.kernels.dur_ns)
    for device, held in filled.items():
        on_device, left = (trace.kernels.device == device) & ~talking, held
        for kind in (COMPUTE, BANDWIDTH, INSIDE):
            rows = on_device & (rates_.kind == kind)
            part = intervals.intersect(
                intervals.merge(Intervals(spans.start[rows], spans.end[rows])), left
            )
            total[kind] += part.total
            left = intervals.subtract(left, part)
        total[UNDETERMINED] += left.total
    inside = windows.inside_ns(spans, trace.kernels.device)
    evidence = tuple(
        _evidence(trace, rates_, np.where(talking, 0, inside), kind, ceilings_of)
        for kind in range(len(CLASSES))
    )
    return FilledSplit(
        (int(total[0]), int(total[1]), int(total[2]), int(total[3])),
        (evidence[0], evidence[1], evidence[2], evidence[3]),
    )


def _evidence(
    trace: Trace, kernel_rates: Rates, inside: I64, kind: int, ceilings_of: CeilingsOf
) -> str:
    """The kernel of the class that takes most time, with the share of its roof that it reaches on
    average.
    """
    rows = np.flatnonzero((kernel_rates.kind == kind) & (inside > 0))
    if not len(rows) or kind == UNDETERMINED:
        return ""
    place = coded(trace.kernels.name[rows])[1]
    top = rows[place == int(np.argmax(np.bincount(place, weights=inside[rows])))]
    name = _shortened(function_name(trace.strings[int(trace.kernels.name[top[0]])]))
    gemm, copy = ("" if one is None else one.spoken for one in ceilings_of(int(top[0])))
    bound = "" if kernel_rates.counted[top].all() else " or more"
    compute, bandwidth = (
        _average(share[top], inside[top])
        for share in (kernel_rates.compute_share, kernel_rates.bandwidth_share)
    )
    if kind == COMPUTE and compute is not None:
        of_reached = _average(
            kernel_rates.compute_share[top] / kernel_rates.reach[top], inside[top]
        )
        if gemm == OF_SHEET and of_reached is not None:
            return (
                f"{name} at {format_share(of_reached)} of what products reach on such devices "
                f"({format_share(compute)} of {gemm})"
            )
        return f"{name} at {format_share(compute)} of {gemm}"
    if kind == BANDWIDTH and bandwidth is not None:
        return f"{name} at {format_share(bandwidth)}{bound} of {copy}"
    reached = [
        f"{format_share(share)} of {roof_name}"
        for share, roof_name in ((compute, gemm), (bandwidth, copy))
        if share is not None
    ]
    return f"{name} at {' and '.join(reached)}"


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _average(shares: F64, weight: I64) -> float | None:
    known = np.isfinite(shares)
    return float(np.average(shares[known], weights=weight[known])) if known.any() else None
