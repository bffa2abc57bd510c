"""What things of a summary are called: points, levels, devices, items. Shared by every form of the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from profharness.analysis.records import PointSummary, Series, Summary
from profharness.report import names
from profharness.report.figures import number_text, si_text
from profharness.units import THIN

Axis = Literal["batch_size", "concurrency", "processes"]
_AXES: tuple[Axis, ...] = ("batch_size", "concurrency", "processes")
_GPU_FIGURES = frozenset({names.GPU_PERCENT, names.FILL, names.WAVE_FILL, names.POWER_SATURATION})
AXIS_TITLES: dict[Axis, str] = {"batch_size": "batch", "concurrency": "concurrency", "processes": "processes"}


def scan_axis(points: Iterable[PointSummary]) -> Axis | None:
    """What the scan varies: the axis with most distinct values, batch size first among equals."""
    shown = tuple(points)
    counts = {axis: len({getattr(point, axis) for point in shown} - {None}) for axis in _AXES}
    best = max(_AXES, key=lambda axis: counts[axis])
    return best if counts[best] else None


def level_name(axis: Axis, value: float) -> str:
    """`batch 256`, `concurrency 8`, `4 processes`."""
    number = number_text(value).replace(THIN, "")
    if axis == "processes":
        return f"{number} {'process' if value == 1 else 'processes'}"
    return f"{AXIS_TITLES[axis]} {number}"


def point_name(summary: Summary, point: PointSummary) -> str:
    """The point's level, with its backend where the run has several; its id where it has no level."""
    axis = scan_axis(summary.points)
    value: int | None = getattr(point, axis) if axis else None
    if axis is None or value is None:
        return point.point
    several = len({other.backend for other in summary.points}) > 1
    return f"{level_name(axis, value)} ({point.backend})" if several and point.backend else level_name(axis, value)


def point_name_by_id(summary: Summary, point_id: str) -> str:
    """The name of the point with that id; the id itself when the summary does not hold it."""
    point = next((point for point in summary.points if point.point == point_id), None)
    return point_id if point is None else point_name(summary, point)


def item_unit(summary: Summary) -> str:
    """`jets/s`, where the throughput figures name their items, else `items/s`."""
    figures = [point.metrics.get(names.THROUGHPUT) for point in summary.points]
    figures.append(summary.metrics.get(names.THROUGHPUT))
    return next((figure.unit for figure in figures if figure is not None and figure.unit), "items/s")


def rate_text(summary: Summary, throughput: float) -> str:
    """`24.4 k jets/s`: a throughput as sentences say it."""
    return si_text(throughput, item_unit(summary))


def has_device_figures(summary: Summary) -> bool:
    """Whether the summary holds anything that only an accelerator gives."""
    if summary.trace.kernels or summary.trace.devices or summary.devices:
        return True
    figures = [summary.metrics, *(point.metrics for point in summary.points)]
    return any(name in _GPU_FIGURES and figure.value is not None for group in figures for name, figure in group.items())


def on_cpu(summary: Summary) -> bool:
    """Whether the workload ran on the CPU device, so that its words apply."""
    if summary.run is None or not summary.run.device:
        return not has_device_figures(summary)
    device = summary.run.device.lower()
    return device.split()[0].rstrip(":") == "cpu" or device == summary.run.cpu_model.lower()


KERNELS = "kernels"  # how the needs of figures begin that only device kernels give


def no_kernels(summary: Summary) -> str:
    """Why figures of device kernels are missing for good; empty where the run had or could have kernels."""
    if not on_cpu(summary) or summary.trace.kernels:
        return ""
    return "no device kernels: a CPU run" if summary.run is not None else "no device kernels in the trace"


def device_word(summary: Summary) -> str:
    """`CPU` or `GPU`, for sentences."""
    return "CPU" if on_cpu(summary) else "GPU"


def series_name(series: Series) -> str:
    """The key of a series in words: its values, joined; empty for the only series of a scan."""
    return ", ".join(series.key.values())


def is_command(summary: Summary) -> bool:
    """Whether the run profiled a command rather than a scan."""
    return summary.run is not None and summary.run.kind == "command"
