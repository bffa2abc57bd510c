"""What things of a summary are called: points, levels, devices, items. Shared by every form of the
report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary, Summary
from profharness.report.text import names
from profharness.report.text.figures import finite, number_text, si_text
from profharness.units import THIN, of_cores

Axis = Literal["batch_size", "concurrency", "processes", "rate"]
_AXES: tuple[Axis, ...] = ("batch_size", "concurrency", "processes", "rate")
_GPU_FIGURES = frozenset({names.GPU_PERCENT, names.FILL, names.WAVE_FILL, names.POWER_SATURATION})
AXIS_TITLES: dict[Axis, str] = {
    "batch_size": "batch",
    "concurrency": "concurrency",
    "processes": "processes",
    "rate": "requests/s",
}


def scan_axis(points: Iterable[PointSummary]) -> Axis | None:
    """What the scan varies: the axis with most distinct values, batch size first among equals; of a
    served scan the load.
    """
    shown = tuple(points)
    counts = {axis: len({getattr(point, axis) for point in shown} - {None}) for axis in _AXES}
    served: tuple[Axis, ...] = ("concurrency", "rate")
    loaded = [axis for axis in served if counts[axis] > 1]
    if not loaded and counts["batch_size"] < 2:
        loaded = [axis for axis in served if counts[axis] and any(point.mode for point in shown)]
    best = loaded[0] if loaded else max(_AXES, key=lambda axis: counts[axis])
    return best if counts[best] else None


def level_name(axis: Axis, value: float) -> str:
    """`batch 256`, `concurrency 8`, `4 processes`, `140 requests/s`."""
    number = number_text(value).replace(THIN, "")
    if axis == "processes":
        return f"{number} {'process' if value == 1 else 'processes'}"
    return f"{value:g} requests/s" if axis == "rate" else f"{AXIS_TITLES[axis]} {number}"


def load_text(point: PointSummary, axis: Axis) -> str:
    """The point's level as a table shows it; of an open loop among closed ones its rate: `8`,
    `140/s`. Empty where it has none.
    """
    value: float | None = getattr(point, axis)
    if value is None:
        return f"{point.rate:g}/s" if point.rate is not None else ""
    return f"{value:g}"


def several_batches(points: Iterable[PointSummary]) -> bool:
    """Whether levels of load were measured at several batch sizes, so that the level alone does not
    name a point.
    """
    served = [point for point in points if point.mode]
    return len({point.batch_size for point in served}) > 1 and scan_axis(served) in (
        "concurrency",
        "rate",
    )


def several_cores(points: Iterable[PointSummary]) -> bool:
    """Whether plans differ in the cores of each process, so that their number alone does not name
    a point.
    """
    return len({point.cores_per_process for point in points} - {None}) > 1


def point_names(summary: Summary, points: Iterable[PointSummary]) -> tuple[str, ...]:
    """The names of points of the summary, in their order: each the point's level, with its backend
    where the run has several; its id where it has no level. What all points have in common is
    looked at once, so that the names of thousands take as long as their number says.
    """
    common = scan_axis(summary.points)
    apart = several_batches(summary.points)
    several = len({point.backend for point in summary.points}) > 1
    plans = several_cores(summary.points)
    batches = plans and len({point.batch_size for point in summary.points}) > 1
    if summary.axes is not None:
        return tuple(setting_text(point.parameters) or point.point for point in points)

    def name_of(point: PointSummary) -> str:
        axis: Axis | None = "rate" if point.rate is not None else common
        value: float | None = getattr(point, axis) if axis else None
        if axis is None or value is None:
            return point.point
        name = level_name(axis, value)
        if plans and point.cores_per_process is not None:
            name = f"{level_name('processes', point.processes or 0)} of "
            name += of_cores(point.cores_per_process)
        if apart or batches:
            name += f", batch {point.batch_size}"
        return f"{name} ({point.backend})" if several and point.backend else name

    return tuple(name_of(point) for point in points)


def point_name(summary: Summary, point: PointSummary) -> str:
    """The name of one point of the summary, as `point_names` has it."""
    return point_names(summary, (point,))[0]


def point_names_by_id(summary: Summary) -> dict[str, str]:
    """The name of each point of the summary by its id; where several have one id, of the first."""
    names_of_points = point_names(summary, summary.points)
    named: dict[str, str] = {}
    for point, name in zip(summary.points, names_of_points, strict=True):
        named.setdefault(point.point, name)
    return named


def item_unit(summary: Summary) -> str:
    """`jets/s`, where the throughput figures name their items, else `items/s`."""
    groups = (*(point.metrics for point in summary.points), summary.metrics)
    figures = (group.get(names.THROUGHPUT) for group in groups)
    return next(
        (figure.unit for figure in figures if figure is not None and figure.unit), "items/s"
    )


def allowed_cores(summary: Summary) -> float | None:
    """The CPU cores that the run may use, from the window's figures or any point's; None where none
    says it.
    """
    groups = (summary.metrics, *(point.metrics for point in summary.points))
    return next(
        (
            finite(group[names.CORES_ALLOWED].value)
            for group in groups
            if names.CORES_ALLOWED in group
        ),
        None,
    )


def rate_text(summary: Summary, throughput: float) -> str:
    """`24.4 k jets/s`: a throughput as sentences say it."""
    return si_text(throughput, item_unit(summary))


def has_device_figures(summary: Summary) -> bool:
    """Whether the summary holds anything that only an accelerator gives."""
    if summary.trace.kernels or summary.trace.devices or summary.devices:
        return True
    figures = [summary.metrics, *(point.metrics for point in summary.points)]
    return any(
        name in _GPU_FIGURES and figure.is_known
        for group in figures
        for name, figure in group.items()
    )


def on_cpu(summary: Summary) -> bool:
    """Whether the workload ran on the CPU device, so that its words apply. Where kernels were
    recorded it did not, whatever the probe saw.
    """
    if summary.trace.kernels:
        return False
    if summary.run is None or not summary.run.device:
        return not has_device_figures(summary)
    device = summary.run.device.lower()
    return device.split()[0].rstrip(":") == "cpu" or device == summary.run.cpu_model.lower()


KERNELS = "kernels"  # how the needs of figures begin that only device kernels give


def no_kernels(summary: Summary) -> str:
    """Why figures of device kernels are missing for good; empty where the run had or could have
    kernels.
    """
    if not on_cpu(summary):
        return ""
    return (
        "no device kernels: a CPU run"
        if summary.run is not None
        else "no device kernels in the trace"
    )


def device_word(summary: Summary) -> str:
    """`CPU` or `GPU`, for sentences; `server` where nobody here knows what runs the model,
    `device` where a table of results says nothing of it.
    """
    if (
        summary.run is not None
        and (summary.run.asked.get("url") or summary.run.asked.get("server_command"))
        and not has_device_figures(summary)
    ):
        return "server"
    if is_table(summary) and not has_device_figures(summary):
        return "device"
    return "CPU" if on_cpu(summary) else "GPU"


def is_table(summary: Summary) -> bool:
    """Whether these are the points of a table that says nothing of where it was measured."""
    return summary.run is None and any(point.throughput is not None for point in summary.points)


def series_name(series: Series) -> str:
    """The key of a series in words: its values, joined; empty for the only series of a scan."""
    return ", ".join(_key_text(name, value) for name, value in series.key.items())


def _key_text(name: str, value: str) -> str:
    if name == "batch_size":
        return f"batch {value}"
    if name == "processes" and value.isdigit():
        return level_name("processes", int(value))
    if name == "cores_per_process" and value.isdigit():
        return f"{of_cores(int(value))} each"
    return value


def is_command(summary: Summary) -> bool:
    """Whether the run profiled a command rather than a scan."""
    return summary.run is not None and summary.run.kind == "command"
