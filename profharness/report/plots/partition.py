"""Plots of how the time divides into disjoint parts: of each point of a scan, or of one whole
window.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import Partition, Summary
from profharness.report.plots.base import Group, Plot, groups
from profharness.report.plots.chart import Bars, Scale, chart_json
from profharness.report.plots.colors import CAUSES
from profharness.report.text.labels import AXIS_TITLES, Axis, scan_axis
from profharness.report.text.limits import IDLE_CAUSES, NOT_RECORDED
from profharness.units import format_ns


@dataclass(frozen=True)
class Part:
    """One slice of a partition's bar: its label, and the record's field that holds its ns."""

    label: str
    field: str

    @property
    def color(self) -> str:
        """Its colour on the whole page."""
        return CAUSES[self.field]


PARTS = (
    Part("compute", "compute_ns"),
    Part("communication, exposed", "exposed_communication_ns"),
    Part("copies, exposed", "exposed_copy_ns"),
    Part("idle: host not ready", "host_not_ready_ns"),
    Part("idle: launches", "launch_in_progress_ns"),
    Part("idle: synchronisation", "synchronisation_ns"),
    Part("idle: waiting on copies or events", "waiting_copy_or_event_ns"),
    Part("idle: queued gaps", "queued_gap_ns"),
    Part("idle: no host record", "no_host_record_ns"),
    Part(NOT_RECORDED, "idle_or_not_recorded_ns"),
    Part("idle", "idle_ns"),
)


def partition_plots(summary: Summary) -> tuple[Plot, ...]:
    """Stacked bars of the disjoint parts: one bar per point and one plot per curve, or one bar for
    a whole window.
    """
    plots = [
        plot
        for index, group in enumerate(groups(summary))
        if (plot := _partition_plot(group, scan_axis(summary.points), index))
    ]
    if not plots and summary.partition is not None and summary.partition.window_ns > 0:
        plots.append(_window_plot(summary.partition))
    return tuple(plots)


def _partition_plot(group: Group, axis: Axis | None, index: int) -> Plot | None:
    shown = [
        (point, point.partition)
        for point in group.points
        if point.partition is not None and point.partition.window_ns > 0
    ]
    if not shown:
        return None
    labels = [
        str(getattr(point, axis)) if axis and getattr(point, axis) is not None else point.point
        for point, _ in shown
    ]
    bars = _bars([partition for _, partition in shown], horizontal=False)
    along = Scale(AXIS_TITLES[axis] if axis else "point", category=True, names=labels)
    return Plot(
        f"partition-{index}",
        chart_json(bars, along, Scale("share of the time (%)", low=0, high=100)),
        380,
        group.name,
        "Shares of each point's time: compute, exposed communication and copies, "
        "and idle by cause.",
    )


def _window_plot(partition: Partition) -> Plot:
    across = Scale("", category=True, names=["window"], hidden=True)
    share = Scale("share of the time (%)", low=0, high=100)
    return Plot(
        "partition",
        chart_json(_bars([partition], horizontal=True), share, across),
        190,
        "",
        "Shares of the window's time: compute, exposed communication and copies, "
        "and idle by cause.",
    )


def _bars(partitions: list[Partition], *, horizontal: bool) -> list[Bars]:
    bars = []
    for part in PARTS:
        times = [part_ns(partition, part) for partition in partitions]
        if any(times):
            number = "{x:.1f}" if horizontal else "{y:.1f}"
            bars.append(
                Bars(
                    part.label,
                    part.color,
                    [
                        100 * ns / partition.window_ns
                        for ns, partition in zip(times, partitions, strict=True)
                    ],
                    f"{part.label}: {number} % ({{note}})",
                    notes=[format_ns(ns) for ns in times],
                )
            )
    return bars


def part_ns(partition: Partition, part: Part) -> int:
    """The part's ns; idle as one part only where its causes are unknown."""
    causes = partition.idle_causes
    if part.field in IDLE_CAUSES:
        return 0 if causes is None else int(getattr(causes, part.field))
    return (
        0 if part.field == "idle_ns" and causes is not None else int(getattr(partition, part.field))
    )
