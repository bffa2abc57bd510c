"""The figures of a page in PDF: throughput and latency of scans, else the parts of the time, of one
summary or of two beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import Partition, PointSummary, Summary
from profharness.analysis.use.records import DeviceUse, UseRow
from profharness.report.plots.base import Group, groups, log_ticks
from profharness.report.plots.paper_style import as_text
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.text.figures import brief_text, finite, si_text
from profharness.report.text.labels import AXIS_TITLES, Axis, item_unit, scan_axis

Draw = Callable[[Any, float], float]
"""Draws on a matplotlib figure below a height, and says where it ended."""

LEFT, RIGHT = 0.08, 0.92
"""Where figures and words begin and end, as shares of the page's width."""


@dataclass(frozen=True)
class _Line:
    """A curve: what is drawn, its name in the legend, and whether it is the second of two."""

    group: Group
    name: str
    second: bool = False

    @property
    def look(self) -> dict[str, object]:
        """The first of two has full marks and an unbroken line, the second is hollow and dashed."""
        kept = {"color": self.group.color, "marker": "o", "markersize": 3, "linewidth": 1}
        return {**kept, "linestyle": "--", "markerfacecolor": "white"} if self.second else kept


def figures(summary: Summary) -> Draw:
    """Those of one run or trace."""

    def draw(figure: Any, below: float) -> float:
        lines = [_Line(group, group.name or "measured") for group in _measured_groups(summary)]
        axis = scan_axis(summary.points)
        if lines and axis is not None:
            return _scan(figure, lines, axis, item_unit(summary), below)
        if summary.partition is None or not summary.partition.window_ns:
            return below
        below = _bars(figure, [("", summary.partition)], below)
        return _roofline_below(figure, summary.use, below)

    return draw


def figures_of_two(a: Summary, b: Summary) -> Draw:
    """Those of a comparison: where both are scans over the same axis their curves in one plot."""

    def draw(figure: Any, below: float) -> float:
        lines = [
            _Line(group, ", ".join(word for word in (letter, group.name) if word), letter == "B")
            for letter, summary in (("A", a), ("B", b))
            for group in _measured_groups(summary)
        ]
        axis, unit = scan_axis(a.points), item_unit(a)
        alike = (axis, unit) == (scan_axis(b.points), item_unit(b))
        if alike and axis is not None and len({line.second for line in lines}) > 1:
            return _scan(figure, lines, axis, unit, below)
        bars = [
            (letter, summary.partition)
            for letter, summary in (("A", a), ("B", b))
            if summary.partition is not None and summary.partition.window_ns
        ]
        return _bars(figure, bars, below) if len(bars) > 1 else below

    return draw


def _measured_groups(summary: Summary) -> list[Group]:
    return [group for group in groups(summary) if _measured(group.points)]


def _measured(points: Sequence[PointSummary]) -> list[PointSummary]:
    return [point for point in points if finite(point.throughput) is not None]


def _scan(figure: Any, lines: Sequence[_Line], axis: Axis, unit: str, below: float) -> float:
    """Throughput and latency beside each other; where they end."""
    height = 0.19
    bottom = below - height - 0.01 - (0.018 * -(-len(lines) // 4) if len(lines) > 1 else 0)
    for place, draw in ((LEFT + 0.045, _throughput), (0.57, _latency)):
        axes = figure.add_axes((place, bottom, 0.35, height))
        draw(axes, lines, axis, unit)
        axes.set_xscale("log")
        levels = sorted({getattr(point, axis) for line in lines for point in line.group.points})
        shown = levels[:: max(1, -(-len(levels) // 7))]
        axes.set_xticks(shown, [f"{level:g}" for level in shown])
        axes.minorticks_off()
        axes.set_xlabel(f"{AXIS_TITLES[axis]} (log scale)")
    return bottom - 0.055


def _throughput(axes: Any, lines: Sequence[_Line], axis: Axis, unit: str) -> None:
    for line in lines:
        points = _measured(line.group.points)
        values = [point.throughput or 0.0 for point in points]
        ends = [
            throughput_ends(point) or (value, value)
            for point, value in zip(points, values, strict=True)
        ]
        bars = [
            [value - low for value, (low, _) in zip(values, ends, strict=True)],
            [high - value for value, (_, high) in zip(values, ends, strict=True)],
        ]
        levels = [getattr(point, axis) for point in points]
        axes.errorbar(levels, values, bars, label=as_text(line.name), **line.look)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"throughput ({as_text(unit)})")
    axes.yaxis.set_major_formatter(lambda value, _: si_text(value, "").strip())
    if len(lines) > 1:  # above both plots, where no data are
        over = {"loc": "lower left", "bbox_to_anchor": (-0.13, 1.0), "borderaxespad": 0.2}
        axes.legend(fontsize=7, frameon=False, ncols=4, **over)


def _latency(axes: Any, lines: Sequence[_Line], axis: Axis, _unit: str) -> None:
    for line in lines:
        points = [point for point in line.group.points if finite(point.latency_ms)]
        levels = [getattr(point, axis) for point in points]
        axes.plot(levels, [point.latency_ms for point in points], **line.look)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = log_ticks(low, high)
    ticks = ticks[:: max(1, len(ticks) // 7)] if len(ticks) > 2 else _even_ticks(low, high)
    axes.set_yticks(ticks, [brief_text(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylabel("mean latency (ms, log scale)")


def _even_ticks(low: float, high: float) -> list[float]:
    """Those of a part of a decade so small that it holds hardly any round number."""
    from matplotlib.ticker import MaxNLocator

    return [float(tick) for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]


def _bars(figure: Any, windows: Sequence[tuple[str, Partition]], below: float) -> float:
    """A bar of each window's parts, the parts named below them, those of one window with their
    shares; where it ends.
    """
    height = 0.015 + 0.015 * len(windows)
    bottom = below - 0.02 - height
    axes = figure.add_axes((LEFT, bottom, RIGHT - LEFT, height))
    left = [0.0] * len(windows)
    for part in PARTS:
        shares = [100 * part_ns(window, part) / window.window_ns for _, window in windows]
        if any(shares):
            label = f"{part.label} {shares[0]:.1f} %" if len(shares) == 1 else part.label
            axes.barh(range(len(shares)), shares, left=left, color=part.color, label=label)
            left = [start + share for start, share in zip(left, shares, strict=True)]
    axes.set_xlim(0, 100)
    axes.set_yticks(range(len(windows)), [name for name, _ in windows])
    axes.set_ylim(len(windows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_title("share of the time (%)", fontsize=8.5, loc="left")
    key = {"loc": "upper left", "bbox_to_anchor": (0, -0.021 / height)}
    axes.legend(ncols=3, fontsize=7, frameon=False, **key)
    return bottom - 0.085


def _roofline_below(figure: Any, use: DeviceUse | None, below: float) -> float:
    """The roofline, where operators have a place in it; where it ends."""
    if use is None or not _placed(use):
        return below
    bottom = below - 0.17
    _roofline(figure.add_axes((LEFT + 0.045, bottom, 0.6, 0.16)), use)
    return bottom - 0.055


def _placed(use: DeviceUse) -> list[UseRow]:
    """Operators that have a place under the ceilings."""
    rows = use.shapes or use.operators
    return [row for row in rows if row.intensity and row.flops_per_s]


def _roofline(axes: Any, use: DeviceUse) -> None:
    """Operators below the ceilings of the device, their area by device time."""
    rows = _placed(use)
    intensities = [row.intensity or 0.0 for row in rows]
    sizes = [8 + 120 * row.share for row in rows]
    axes.scatter(intensities, [row.flops_per_s or 0.0 for row in rows], sizes, color="#0f8b8d")
    low, high = min(intensities) / 3, max(intensities) * 10
    if use.roofs and use.bandwidth is not None:
        roof, slope = max(one.value for one in use.roofs), use.bandwidth.value
        corners = sorted({low, min(max(roof / slope, low), high), high})
        reached = [min(roof, slope * at) for at in corners]
        axes.plot(corners, reached, color="#7a8694", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte that must move (log scale)")
    axes.set_ylabel("operators, FLOP/s")
