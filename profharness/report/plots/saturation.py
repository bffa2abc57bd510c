"""Plots of how full the device or the CPU was at each level of a scan."""

from __future__ import annotations

from profharness.analysis.records import PointSummary, Summary
from profharness.report.plots.base import (
    Group,
    Plot,
    ends,
    groups,
    level,
    level_scale,
    sources,
    values,
)
from profharness.report.plots.chart import Curve, Dash, Scale, chart_json
from profharness.report.plots.colors import BOUND, MEASURES
from profharness.report.text import names
from profharness.report.text.labels import Axis, allowed_cores, on_cpu, scan_axis

_DASHES: dict[str, Dash] = {
    names.GPU_PERCENT: "dashed",
    names.BUSY: "dotted",
    "busy_bare": "dotted",
    names.MEMORY_ACTIVITY: "dashed",
    "power_vs_gemm": "dashed",
}


def saturation_plots(summary: Summary) -> tuple[Plot, ...]:
    """Per curve of the scan: what the driver calls busy against how much of the device really
    works.
    """
    axis = scan_axis(summary.points)
    build = _cores_plot if on_cpu(summary) else _saturation_plot
    plots = (build(summary, group, axis, index) for index, group in enumerate(groups(summary)))
    return tuple(plot for plot in plots if plot is not None)


def _saturation_plot(summary: Summary, group: Group, axis: Axis | None, index: int) -> Plot | None:
    curves: list[Curve] = []
    for name, color in MEASURES.items():
        shown = _percents(group.points, name)
        if any(value is not None for value in shown):
            title = names.title_of(name)
            curves.append(
                Curve(
                    title,
                    color,
                    [level(point, axis) for point in group.points],
                    shown,
                    tip=f"{title} {{y:.1f}} % at {{x}}{{note}}",
                    notes=sources(group.points, name),
                    ends=ends(
                        [point.metrics.get(name) for point in group.points],
                        _to_percent(group.points, name),
                    ),
                    dash=_DASHES.get(name, "solid"),
                )
            )
    if not curves or len(group.points) < 2:
        return None
    shares = Scale("share (%)", low=0, high=104, step=25, ticks=(0, 25, 50, 75, 100))
    return Plot(
        f"saturation-{index}",
        chart_json(curves, level_scale(axis, summary.points), shares),
        360,
        group.name,
        "GPU % as the driver reports it against fill, bandwidth and power, "
        "all as shares of what the device can do.",
    )


def _cores_plot(summary: Summary, group: Group, axis: Axis | None, index: int) -> Plot | None:
    used = values(group.points, names.CORES_USED)
    if len(group.points) < 2 or all(value is None for value in used):
        return None
    x = [level(point, axis) for point in group.points]
    curves = [
        Curve(
            "cores used",
            group.color,
            x,
            used,
            tip="{y:.2f} cores at {x}{note}",
            notes=sources(group.points, names.CORES_USED),
            ends=ends([point.metrics.get(names.CORES_USED) for point in group.points]),
        )
    ]
    allowed = allowed_cores(summary)
    if allowed is not None:
        bound = [float(allowed)] * 2
        curves.append(
            Curve(
                "cores allowed",
                BOUND,
                [x[0], x[-1]],
                bound,
                tip="{y} allowed",
                dash="dashed",
                size=4,
            )
        )
    cores = Scale("CPU cores", zero=True)
    return Plot(
        f"saturation-{index}",
        chart_json(curves, level_scale(axis, summary.points), cores),
        320,
        group.name,
        "CPU cores that the process tree ran on against the level, "
        "under the cores that it may use.",
    )


def _to_percent(points: tuple[PointSummary, ...], name: str) -> float:
    units = {figure.unit for point in points if (figure := point.metrics.get(name)) is not None}
    return 1.0 if units & {"%", "percent"} else 100.0


def _percents(points: tuple[PointSummary, ...], name: str) -> list[float | None]:
    return values(points, name, _to_percent(points, name))
