"""Useful work of a point of a run: FLOP/s and bytes over its trial time in the pass that throughput
comes from, against the ceilings.

FLOPs of an item were counted once by the worker, outside any timed region, or given. Bytes are a
lower bound: weights and inputs read once per trial. The ceilings are those of the device that the
point ran on: calibrated, else the data sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast, get_args

from profharness.analysis.kernels.ceilings import NO_CEILING, Ceiling, Ceilings, of_name
from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.kernels.useful_work import NO_FLOPS, NO_TRAFFIC
from profharness.analysis.records import Figure
from profharness.node.ceilings import COPY, Calibration, relevant
from profharness.node.devices import Dtype
from profharness.rundir.manifest import Manifest, NodeRecord, PointRecord
from profharness.stats.throughput import TrialStats

_AT_LEAST = "at least: weights and inputs read once per trial"
_CEILINGS = ("ceiling_flops", "ceiling_bandwidth")


def ceilings_of(manifest: Manifest, record: PointRecord, yardstick: Yardstick) -> Ceilings | None:
    """The roofs of the device that a point ran on; None where the manifest does not say which."""
    node = next(
        (candidate for candidate in manifest.nodes if candidate.host == record.host),
        manifest.nodes[0] if manifest.nodes else None,
    )
    if node is None or not record.device:
        return None
    if record.device == "cpu":
        threads = _threads(manifest, node, record)
        roofs = of_name(
            node.cpu_model,
            yardstick.calibrations,
            compute_units=threads,
            software=yardstick.software,
        )
        return replace(
            roofs,
            needs=_calibration_of_cpu(threads, relevant(yardstick.calibrations, {node.cpu_model})),
        )
    number = record.device.partition(":")[2]
    accelerators = [device for device in node.devices if device.kind != "cpu"]
    position = int(number) if number.isdigit() else 0
    if position >= len(accelerators):
        return None
    chosen = accelerators[position]
    return of_name(
        chosen.name,
        yardstick.calibrations,
        architecture=chosen.architecture,
        compute_units=chosen.compute_units,
        software=yardstick.software,
    )


def _calibration_of_cpu(threads: int | None, calibrations: Iterable[Calibration]) -> str:
    """What gives a CPU its roofs. They are of a number of threads: those of another number say
    nothing.
    """
    if threads is None:
        return "a calibration of this CPU: `profharness calibrate --device cpu`"
    thread_counts = sorted(
        {
            calibration.compute_units
            for calibration in calibrations
            if calibration.compute_units is not None
        }
    )
    beside = (
        f" (there is one with {' and '.join(map(str, thread_counts))})" if thread_counts else ""
    )
    return (
        f"a calibration of this CPU with {threads} "
        f"thread{'' if threads == 1 else 's'}{beside}: `profharness calibrate --threads "
        f"{threads}`"
    )


def _threads(manifest: Manifest, node: NodeRecord, record: PointRecord) -> int | None:
    """Cores that a scan's framework used: as it said itself, else as asked, else by
    OMP_NUM_THREADS, else all that it may use.
    """
    if (stated := number(record.notes.get("threads"))) is not None:
        return int(stated)
    asked = manifest.scan.settings.get("threads") if manifest.scan is not None else None
    if isinstance(asked, int) and asked > 0:
        return asked
    limited = node.variables.get("OMP_NUM_THREADS", "")
    return (
        int(limited) if limited.isdigit() and int(limited) > 0 else len(node.cpus_allowed) or None
    )


def work_figures(
    record: PointRecord,
    stats: TrialStats,
    origin: str,
    roofs: Ceilings | None,
    traced: Mapping[str, Figure],
) -> dict[str, Figure]:
    """Figures of FLOPs and bytes over the trial time; those that a trace's operators or counters
    gave stay where a point has none of its own.

    `traced` also holds the point's telemetry, of which the clock is used.
    """
    dtype = dtype_of(record)
    figures = (
        _ceiling_figures(roofs, dtype)
        | _flop_figures(record, stats, origin, roofs, traced)
        | _byte_figures(record, stats, origin, roofs)
    )
    flops, moved = (_value(figures.get(name)) for name in ("achieved_flops", "achieved_bandwidth"))
    if flops and moved:
        intensity = flops / moved
        figures["operational_intensity"] = Figure(
            value=intensity, unit="FLOP/B", source=origin, note="at most: traffic is a lower bound"
        )
        compute, bandwidth = (_value(figures.get(name)) for name in _CEILINGS)
        if compute and bandwidth:
            attainable = min(compute, intensity * bandwidth)
            figures["roofline_share"] = Figure(
                value=flops / attainable,
                unit="share",
                source=origin,
                note="achieved over attainable FLOP/s; at least, since traffic is a lower bound",
            )
    return {
        name: figure
        for name, figure in figures.items()
        if figure.value is not None or not ((one := traced.get(name)) and one.is_known)
    }


def dtype_of(record: PointRecord) -> Dtype:
    """The type in which a point multiplies, as its worker noted it."""
    noted = record.notes.get("dtype", "")
    return cast("Dtype", noted) if noted in get_args(Dtype) else "fp32"


def _flop_figures(
    record: PointRecord,
    stats: TrialStats,
    origin: str,
    roofs: Ceilings | None,
    traced: Mapping[str, Figure],
) -> dict[str, Figure]:
    flops = number(record.notes.get("flops_per_item"))
    if flops is None:
        return {"achieved_flops": Figure(value=None, unit="FLOP/s", needs="--flops-per-item")} | {
            name: Figure(value=None, unit="share", needs=NO_FLOPS)
            for name in ("mfu", "flops_of_ceiling")
        }
    low, high = (None if end is None else end * flops for end in (stats.low, stats.high))
    achieved = stats.throughput * flops
    dtype = dtype_of(record)
    figures = {
        "flops_per_item": Figure(
            value=flops,
            unit="FLOP",
            source="counted outside the timed region, or as given",
            note=record.notes.get("flops", ""),
        ),
        "achieved_flops": Figure(
            value=achieved,
            unit="FLOP/s",
            low=low,
            high=high,
            source=origin,
            note="over the trial time",
        ),
    }

    def over(roof: Ceiling | None) -> Figure:
        if roof is None:
            return Figure(value=None, unit="share", needs=_needs(roofs, dtype))
        return Figure(
            value=achieved / roof.value,
            unit="share",
            low=None if low is None else low / roof.value,
            high=None if high is None else high / roof.value,
            source=origin,
            note=f"of {roof.source}",
        )

    peak = None if roofs is None else roofs.peak(dtype) or roofs.flops(dtype)
    figures["mfu"] = over(peak)
    figures["flops_of_ceiling"] = over(None if roofs is None else roofs.flops(dtype))
    clock = _value(traced.get("clock_gpu"))
    if roofs is not None and clock and roofs.peak(dtype) is not None:
        figures["mfu_at_clock"] = over(roofs.peak(dtype, clock))
    return figures


def _needs(roofs: Ceilings | None, figure: str) -> str:
    return NO_CEILING if roofs is None else roofs.needs_of(figure)


def _byte_figures(
    record: PointRecord, stats: TrialStats, origin: str, roofs: Ceilings | None
) -> dict[str, Figure]:
    weights, inputs = (
        number(record.notes.get("weight_bytes")),
        number(record.notes.get("input_bytes_per_item")),
    )
    if inputs is None or not record.items_per_trial:
        return {
            "achieved_bandwidth": Figure(value=None, unit="B/s", needs=NO_TRAFFIC),
            "bandwidth_share": Figure(value=None, unit="share", needs=NO_TRAFFIC),
        }
    per_item = inputs + (weights or 0.0) / record.items_per_trial
    achieved = stats.throughput * per_item
    figures = {
        "achieved_bandwidth": Figure(value=achieved, unit="B/s", source=origin, note=_AT_LEAST)
    }
    roof = None if roofs is None else roofs.bandwidth
    figures["bandwidth_share"] = (
        Figure(value=None, unit="share", needs=_needs(roofs, COPY))
        if roof is None
        else Figure(
            value=achieved / roof.value,
            unit="share",
            source=origin,
            note=f"of {roof.source}; {_AT_LEAST}",
        )
    )
    return figures


def _ceiling_figures(roofs: Ceilings | None, dtype: Dtype) -> dict[str, Figure]:
    ceilings = (None, None) if roofs is None else (roofs.flops(dtype), roofs.bandwidth)
    return {
        name: Figure(value=None, unit=unit, needs=_needs(roofs, figure))
        if roof is None
        else Figure(value=roof.value, unit=unit, source=roof.source)
        for name, unit, figure, roof in zip(
            _CEILINGS, ("FLOP/s", "B/s"), (dtype, COPY), ceilings, strict=True
        )
    }


def ceilings_of_points(
    points: Mapping[str, Figure] | None, of_trace: Mapping[str, Figure]
) -> dict[str, Figure]:
    """A run's ceilings: those of its trace, else of its first point."""
    return {
        name: points[name]
        for name in _CEILINGS
        if points is not None and name in points and _value(of_trace.get(name)) is None
    }


def number(text: str | None) -> float | None:
    """A positive number of the notes; None for anything else."""
    try:
        value = None if text is None else float(text)
    except ValueError:
        return None
    return value if value is not None and value > 0 else None


def _value(figure: Figure | None) -> float | None:
    return None if figure is None or figure.value is None else float(figure.value)
