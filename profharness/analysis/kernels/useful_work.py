"""Figures of useful work in a trace's windows: FLOP/s, bytes per second, their shares of the
ceilings, and the roofline.

Useful FLOPs are those of matrix products with recorded shapes; traffic is what counters say, else
the bytes that the operators' tensors need at least. Each figure says which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from profharness.analysis.kernels.categories import kernel_category
from profharness.analysis.kernels.ceilings import NO_CEILING, Ceiling, Ceilings
from profharness.analysis.kernels.roofline import UNDETERMINED
from profharness.analysis.measurement import Measurement
from profharness.analysis.records import Figure
from profharness.findings import ways
from profharness.node.devices import Dtype
from profharness.stats.streams import mean, streams, weights
from profharness.trace.columns.keys import distinct
from profharness.trace.model import Trace
from profharness.units import format_share

_KINDS = {"gemm": "gemm", "conv": "conv", "attention": "attention", "other": "unnamed"}
KNOWN_SHARE = 0.5  # of the time of matrix kernels: with less, a share of a peak tells of the rest
NO_FLOPS = "operators with shapes (--profile torch), or --flops-per-item"
NO_TRAFFIC = f"operators with shapes (--profile torch){ways.OR_COUNTERS}"
COUNTED_TIMES = "times of a pass without counters: such a pass serialises kernels"


def _missing(m: Measurement) -> str:
    """Which kinds of matrix work in the windows are not known, as a note."""
    rows = (m.kernel_ns > 0) & m.facts.hidden
    kinds = {
        kernel_category(m.trace.strings[int(code)]) for code in distinct(m.trace.kernels.name[rows])
    }
    left = [word for kind, word in _KINDS.items() if kind in kinds]
    return f"at least: without {', '.join(left)} kernels of unknown work" if left else ""


def _known_share(m: Measurement) -> tuple[float | None, float]:
    """The known share of the time in the windows of kernels that multiply or may (None without
    any), and the time of the others as a share of the windows, which is the most that they can add:
    nothing does more than its peak.
    """
    hidden = int(m.kernel_ns[m.facts.hidden].sum())
    total = int(m.kernel_ns[m.facts.multiplying | m.facts.hidden].sum())
    return (1 - hidden / total if total else None), hidden / m.window_ns


def seconds(m: Measurement) -> float:
    """The length of the windows, summed over devices."""
    return m.window_ns / 1e9


def achieved_flops(m: Measurement) -> Figure:
    """Useful FLOP/s over the windows, of all devices together."""
    flops = m.useful_flops
    if flops is None or not m.facts.timed:
        return lacking("FLOP/s", m, NO_FLOPS if m.facts.timed else COUNTED_TIMES)
    return Figure(
        value=flops / seconds(m) * len(m.devices), unit="FLOP/s", source=m.origin, note=_missing(m)
    )


def lacking(unit: str, m: Measurement, needs: str) -> Figure:
    """A figure without a value, and what would give it."""
    return Figure(value=None, unit=unit, source=m.origin, needs=needs)


def _over_peak(
    m: Measurement, peak_of: Callable[[Ceilings, Dtype], Ceiling | None]
) -> tuple[float, str] | None:
    """Sum over types of FLOPs / ceiling, over the windows of all devices; None where a type has
    none. With the source of the largest type.
    """
    work, inside = m.facts.work, m.kernel_shares
    total, sources = 0.0, []
    for device, roof in m.facts.roofs.items():
        for code, dtype in enumerate(work.dtypes):
            rows = (
                (m.trace.kernels.device == device) & (work.dtype == code) & np.isfinite(work.flops)
            )
            flops = float(np.dot(work.useful[rows], inside[rows]))
            ceiling = peak_of(roof, dtype)
            if not flops:
                continue
            if ceiling is None:
                return None
            total += flops / ceiling.value
            sources.append((flops, ceiling.source))
    return (total / seconds(m), max(sources)[1]) if sources else None


def _share(peak_of: Callable[[Ceilings, Dtype], Ceiling | None]) -> Callable[[Measurement], Figure]:
    def compute(m: Measurement) -> Figure:
        if m.useful_flops is None or not m.facts.timed:
            return lacking("share", m, NO_FLOPS if m.facts.timed else COUNTED_TIMES)
        known, hidden = _known_share(m)
        if known is not None and known < KNOWN_SHARE:
            return lacking(
                "share",
                m,
                f"the work of most kernels that multiply; known is that of {format_share(known)} "
                "of their time",
            )
        share = _over_peak(m, peak_of)
        if share is None:
            return lacking("share", m, NO_CEILING)
        most = share[0] + hidden
        return Figure(
            value=share[0],
            low=share[0] if hidden else None,
            high=most if hidden and most < 1 else None,
            unit="share",
            source=m.origin,
            coverage=known,
            coverage_of="matrix-kernel time",
            note="; ".join(part for part in (f"of {share[1]}", _missing(m)) if part),
        )

    return compute


mfu = _share(Ceilings.peak)
flops_of_ceiling = _share(Ceilings.flops)


def mfu_at_clock(m: Measurement) -> Figure:
    """Useful FLOP/s over the peak at the mean clock that telemetry saw in the windows."""
    clock = observed_clock(m.trace, m)
    if clock is None:
        return lacking("share", m, "the clock: telemetry of the device")
    return _share(lambda roof, dtype: roof.peak(dtype, clock))(m)


def observed_clock(trace: Trace, m: Measurement) -> float | None:
    """Mean clock of the compute units in the windows, in MHz; None without samples there."""
    means = [
        mean(stream.samples.value, weight)
        for stream in streams(trace)
        if stream.metric == "clock_gpu"
        for weight in (weights(stream.samples, m.when),)
        if weight.any()
    ]
    return float(np.mean(means)) if means else None


def operational_intensity(m: Measurement) -> Figure:
    """FLOP per byte of the kernels whose operations and traffic are both known."""
    rows = np.isfinite(m.facts.work.flops) & np.isfinite(m.facts.rates.moved) & (m.kernel_ns > 0)
    inside = m.kernel_shares[rows]
    moved = float(np.dot(m.facts.rates.moved[rows], inside))
    if not moved:
        return lacking("FLOP/B", m, NO_FLOPS)
    note = "matrix products; " + (
        "traffic by counters"
        if m.facts.rates.counted[rows].all()
        else "at most: every tensor moved once"
    )
    return Figure(
        value=float(np.dot(m.facts.work.flops[rows], inside)) / moved,
        unit="FLOP/B",
        source=m.origin,
        note=note,
    )


def ceiling_flops(m: Measurement) -> Figure:
    """The compute roof of the type that most FLOPs are in, of one device; of fp32 where none are
    known.
    """
    work, inside = m.facts.work, m.kernel_shares
    amounts = [
        float(np.nansum(np.where(work.dtype == code, work.flops * inside, 0.0)))
        for code in range(len(work.dtypes))
    ]
    dtype = work.dtypes[int(np.argmax(amounts))] if any(amounts) else "fp32"
    return _of_roof(lowest(roof.flops(dtype) for roof in m.facts.roofs.values()), "FLOP/s")


def ceiling_bandwidth(m: Measurement) -> Figure:
    """The bandwidth roof of one device."""
    return _of_roof(lowest(roof.bandwidth for roof in m.facts.roofs.values()), "B/s")


def _of_roof(roof: Ceiling | None, unit: str) -> Figure:
    if roof is None:
        return Figure(value=None, unit=unit, needs=NO_CEILING)
    return Figure(value=roof.value, unit=unit, source=roof.source)


def lowest(roofs: Iterable[Ceiling | None]) -> Ceiling | None:
    """The roof that all devices have; None where one of them has none."""
    every = list(roofs)
    present = [roof for roof in every if roof is not None]
    return (
        min(present, key=lambda roof: roof.value)
        if present and len(present) == len(every)
        else None
    )


def hfu(m: Measurement) -> Figure:
    """Operations that the hardware did, by counters, each type over its peak; where no type is
    known, over that with most useful FLOPs.
    """
    counted = m.facts.counted
    if counted is None or not np.isfinite(counted.operations).any() or not m.facts.timed:
        return lacking("share", m, "a counter pass (--pmc MfmaFlops) beside one without counters")
    typed = _hfu_by_type(m)
    if typed is not None:
        return typed
    work, inside = m.facts.work, m.kernel_shares
    amounts = [
        float(np.nansum(np.where(work.dtype == code, work.flops * inside, 0.0)))
        for code in range(len(work.dtypes))
    ]
    dtype = work.dtypes[int(np.argmax(amounts))] if any(amounts) else "fp16"
    roof = lowest(roofs.peak(dtype) for roofs in m.facts.roofs.values())
    if roof is None:
        return lacking("share", m, NO_CEILING)
    return Figure(
        value=float(np.nansum(counted.operations * inside)) / seconds(m) / roof.value,
        unit="share",
        source=m.origin,
        note=f"of {roof.source}",
    )


def _hfu_by_type(m: Measurement) -> Figure | None:
    """The sum over types of operations / peak; None where a kernel's operations have no type, or a
    type no peak.
    """
    counted, inside = m.facts.counted, m.kernel_shares
    if counted is None or not counted.by_type:
        return None
    columns = np.stack(list(counted.by_type.values()))
    untyped = np.isfinite(counted.operations) & ~np.isclose(
        np.nan_to_num(counted.operations), np.nansum(columns, axis=0)
    )
    if (untyped & (m.kernel_ns > 0)).any():
        return None
    total, largest = 0.0, (0.0, "")
    for device, roof in m.facts.roofs.items():
        on_device = m.trace.kernels.device == device
        for dtype, operations in counted.by_type.items():
            done = float(np.nansum(operations[on_device] * inside[on_device]))
            peak = roof.peak(dtype)
            if done and peak is None:
                return None
            if done and peak is not None:
                total += done / peak.value
                largest = max(largest, (done, peak.source))
    return Figure(
        value=total / seconds(m),
        unit="share",
        source=m.origin,
        note=f"vector and matrix instructions, each type of its peak; most of {largest[1]}"
        if largest[1]
        else "",
    )


def of_class(kind: int) -> Callable[[Measurement], Figure]:
    """The share of the window in which kernels of this class fill the device; the note is the
    evidence.
    """

    def compute(m: Measurement) -> Figure:
        split, rates = m.filled_split, m.facts.rates
        in_windows = m.kernel_ns > 0
        if (
            not len(m.facts.roofs)
            or not (np.isfinite(rates.compute_share) | np.isfinite(rates.bandwidth_share))[
                in_windows
            ].any()
        ):
            return lacking("share", m, NO_TRAFFIC if m.facts.timed else COUNTED_TIMES)
        total = int(m.kernel_ns.sum())
        determined = int(m.kernel_ns[rates.kind != UNDETERMINED].sum())
        return Figure(
            value=split.ns[kind] / m.window_ns,
            unit="share",
            source=m.origin,
            note=split.said[kind],
            coverage=determined / total if total else None,
        )

    return compute
