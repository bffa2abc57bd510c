"""The roofline of operators and kernels: what is drawn of a `DeviceUse`, and as a plot of the page
(docs/metrics.md#device-use).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profharness.analysis.use.records import DeviceUse, UseRow
from profharness.report.plots.base import Plot, log_ticks
from profharness.report.plots.chart import Curve, Label, Scale, chart_json
from profharness.report.plots.colors import BOUND, KERNELS, OPERATORS
from profharness.report.plots.label_places import Box, Place, Spot, place_labels
from profharness.report.tables.use import inputs_text, labels
from profharness.report.text.figures import si_text
from profharness.report.text.folding import distinct_names
from profharness.units import format_ns, format_share

LABELLED = 8
OPERATOR_COLOR, KERNEL_COLOR, ROOF_COLOR = OPERATORS, KERNELS, BOUND
LARGEST, SMALLEST = 17.0, 3.5
LEAST_SHARE = 0.001
"""Of the time of the largest mark: what has less is not drawn."""
_KERNEL_NAME = 30
_STEPS = 60
_FONT = 11.0  # pixels, of labels on the page
_AREA = (800.0, 400.0)  # of the plot on a page of 1100 px; on a wider one points lie further apart


@dataclass(frozen=True)
class Mark:
    """One point: FLOP per byte, FLOP/s, the radius of its mark in pixels, and its row."""

    x: float
    y: float
    radius: float
    name: str
    row: UseRow


@dataclass(frozen=True)
class Line:
    """One ceiling between two points, with what it is."""

    x: tuple[float, float]
    y: tuple[float, float]
    text: str

    @property
    def label(self) -> tuple[float, float]:
        """Where its label ends: at the right end of a flat line, towards the top of the slope, so
        that the label lies above it.
        """
        if self.y[0] == self.y[1]:
            return self.x[1], self.y[1]
        x, y = (low**0.35 * high**0.65 for low, high in (self.x, self.y))
        return x, y


@dataclass(frozen=True)
class WorkRoofline:
    """What is drawn. `labelled` are the first of `operators`, or of `kernels` where no operator has
    a place; the ranges are of both axes, from lowest to highest.
    """

    operators: tuple[Mark, ...]
    kernels: tuple[Mark, ...]
    lines: tuple[Line, ...]
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @property
    def named(self) -> tuple[Mark, ...]:
        """The points with labels: those with most excess or, where no ceiling is known, time."""
        return (self.operators or self.kernels)[:LABELLED]

    def places(
        self, size: tuple[float, float], font: float, largest: float = LARGEST
    ) -> list[Place | None]:
        """Where the labels go in an area of this size in pixels, with letters of `font` pixels;
        `largest` is the radius of the largest mark.
        """
        width, height = size
        others = [mark for mark in (*self.operators, *self.kernels) if mark not in self.named]
        spots = [
            Spot(
                width * _position(mark.x, self.x_range),
                height * (1 - _position(mark.y, self.y_range)),
                mark.radius * largest / LARGEST,
            )
            for mark in (*self.named, *others)
        ]
        sizes = [(0.6 * font * len(mark.name), 1.25 * font) for mark in self.named]
        roofs = [self._of_line(line, size, font) for line in self.lines]
        drawn = [box for line in self.lines for box in self._along(line, size)]
        return place_labels(spots, sizes, Box(0, 0, width, height), [*roofs, *drawn])

    def _along(self, line: Line, size: tuple[float, float]) -> Iterator[Box]:
        """Small boxes that cover a ceiling."""
        ends = [
            (
                size[0] * _position(x, self.x_range),
                size[1] * (1 - _position(y, self.y_range)),
            )
            for x, y in zip(line.x, line.y, strict=True)
        ]
        (left, bottom), (right, top) = ends
        for step in range(_STEPS + 1):
            x, y = (
                left + (right - left) * step / _STEPS,
                bottom + (top - bottom) * step / _STEPS,
            )
            yield Box(x - 2, y - 2, x + 2, y + 2)

    def _of_line(self, line: Line, size: tuple[float, float], font: float) -> Box:
        """The room of a ceiling's own label, which ends above `Line.label`."""
        width, height = size
        long, tall = 0.6 * font * len(line.text), 1.6 * font
        x, y = line.label
        right = width * _position(x, self.x_range)
        bottom = height * (1 - _position(y, self.y_range))
        return Box(right - long, bottom - tall, right, bottom)


def _position(value: float, ends: tuple[float, float]) -> float:
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def work_roofline(use: DeviceUse | None) -> WorkRoofline | None:
    """Operators (by their inputs where these are few) and kernels whose operations and bytes are
    known, those of next to no time left out; None where there are none.
    """
    if use is None:
        return None
    rows = [row for row in use.shapes or use.operators if _placed(row)]
    kernels = [row for row in use.kernels if _placed(row)]
    least = LEAST_SHARE * max((row.device_ns for row in (*rows, *kernels)), default=0)
    rows, kernels = ([row for row in kind if row.device_ns >= least] for kind in (rows, kernels))
    if not rows and not kernels:
        return None
    longest = max(row.device_ns for row in (*rows, *kernels))
    operators = _marks(rows, labels(rows), longest)
    of_kernels = _marks(
        kernels, distinct_names([row.name for row in kernels], _KERNEL_NAME), longest
    )
    marks = (*operators, *of_kernels)
    x_low, x_high = min(mark.x for mark in marks) / 3, max(mark.x for mark in marks) * 3
    if use.bandwidth is not None:
        ridges = [roof.value / use.bandwidth.value for roof in use.roofs]
        x_low = min((x_low, *ridges))
        x_high = max((x_high, *(3 * ridge for ridge in ridges)))
    lines = _lines(use, x_low, x_high)
    tops = [end for line in lines for end in line.y[1:]]
    y_low = min(mark.y for mark in marks) / 4
    return WorkRoofline(
        operators,
        of_kernels,
        lines,
        (x_low, x_high),
        (y_low, 2.5 * max((*tops, *(mark.y for mark in marks)))),
    )


def _placed(row: UseRow) -> bool:
    return row.intensity is not None and row.flops_per_s is not None


def _marks(rows: Sequence[UseRow], names: Sequence[str], longest: int) -> tuple[Mark, ...]:
    return tuple(
        Mark(
            row.intensity,
            row.flops_per_s,
            max(LARGEST * math.sqrt(row.device_ns / longest), SMALLEST),
            name,
            row,
        )
        for row, name in zip(rows, names, strict=True)
        if row.intensity is not None and row.flops_per_s is not None
    )


def _lines(use: DeviceUse, low: float, high: float) -> tuple[Line, ...]:
    """The compute ceilings and the slope of the bandwidth up to the highest of them."""
    slope = None if use.bandwidth is None else use.bandwidth.value
    flat = [
        Line(
            (low if slope is None else roof.value / slope, high),
            (roof.value, roof.value),
            f"{si_text(roof.value, 'FLOP/s')} ({roof.source})",
        )
        for roof in use.roofs
    ]
    if use.bandwidth is None or slope is None:
        return tuple(flat)
    end = max((roof.value / slope for roof in use.roofs), default=high)
    text = f"{si_text(slope, 'B/s')} ({use.bandwidth.source})"
    return (*flat, Line((low, end), (low * slope, end * slope), text))


def work_roofline_plot(use: DeviceUse | None) -> Plot | None:
    """The roofline of operators and kernels for the page; None where none has a place in it."""
    drawn = work_roofline(use)
    if drawn is None or use is None:
        return None
    curves = [_line(line) for line in drawn.lines]
    for marks, color, name in (
        (drawn.kernels, KERNEL_COLOR, "kernels"),
        (drawn.operators, OPERATOR_COLOR, "operators"),
    ):
        if marks:
            curves.append(_points(marks, color, name))
    texts = [*(_roof_label(line) for line in drawn.lines), *_labels(drawn)]
    across = _scale("FLOP per byte that must move (log scale)", drawn.x_range, "number")
    up = _scale("achieved FLOP/s (log scale)", drawn.y_range, "si:FLOP/s")
    return Plot(
        "work-roofline",
        chart_json(curves, across, up, labels=texts),
        500,
        "",
        "Achieved FLOP/s of operators and kernels against their FLOP per byte, under the compute "
        "and bandwidth ceilings. A mark's area grows with its device time, down to a least size.",
    )


def _scale(title: str, ends: tuple[float, float], tick_format: str) -> Scale:
    low, high = ends
    ticks = log_ticks(low, high)
    return Scale(title, log=True, ticks=ticks, tick_format=tick_format, low=low, high=high)


def _line(line: Line) -> Curve:
    return Curve(
        line.text,
        ROOF_COLOR,
        line.x,
        line.y,
        tip="{name}",
        size=4,
        in_legend=False,
    )


def _points(marks: Sequence[Mark], color: str, name: str) -> Curve:
    solid = name == "operators"
    return Curve(
        name,
        color,
        [mark.x for mark in marks],
        [mark.y for mark in marks],
        tip="{note}",
        notes=[_hover(mark) for mark in marks],
        width=0,
        symbol="circle" if solid else "diamond",
        sizes=[2 * mark.radius for mark in marks],
        hollow=not solid,
        opacity=0.75,
    )


def _hover(mark: Mark) -> str:
    row = mark.row
    parts = [
        mark.name if row.shapes == "" else f"{row.name} {inputs_text(row.shapes)}",
        f"{si_text(mark.y, 'FLOP/s')} at {mark.x:.3g} FLOP/B",
        f"{format_ns(row.device_ns, 3)} on the device ({format_share(row.share)})",
    ]
    if row.peak_share is not None:
        parts.append(f"{format_share(row.peak_share)} of its ceiling")
    if row.excess_ns is not None:
        parts.append(f"excess {format_ns(row.excess_ns, 3)}")
    return "\n".join(parts)


def _labels(drawn: WorkRoofline) -> list[Label]:
    places = drawn.places(_AREA, _FONT)
    return [
        Label(mark.x, mark.y, mark.name, place.dx, place.dy, mark.radius)
        for mark, place in zip(drawn.named, places, strict=True)
        if place is not None
    ]


def _roof_label(line: Line) -> Label:
    x, y = line.label
    return Label(x, y, line.text, leader=False)
