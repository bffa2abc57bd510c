"""The roofline of operators and kernels as a figure for papers. Needs matplotlib and mplhep (extra
`plots`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from profharness.report.plots.paper_style import Style, as_text, canvas, kept
from profharness.report.plots.work_roofline import (
    KERNEL_COLOR,
    LARGEST,
    OPERATOR_COLOR,
    ROOF_COLOR,
    WorkRoofline,
)

_SIZE = (14.0, 9.0)
_FONT, _RADIUS = 13.0, 13.0  # points
_NARROW = 2.0
"""Decades: an axis with fewer has labels between the powers of ten too."""


def draw_roofline(
    drawn: WorkRoofline, output: Path | None, *, title: str = "", style: Style = Style.CMS
) -> Any:
    """Write the figure, in the format that the name's ending says, and give it; without a place to
    write it is only given. Raises Unavailable without
    matplotlib, UsageError for an ending that is no picture's.
    """
    plt = canvas(output, style)
    figure, axes = plt.subplots(figsize=_SIZE)
    axes.set(xscale="log", yscale="log", xlim=drawn.x_range, ylim=drawn.y_range)
    _label_between(axes.xaxis, drawn.x_range)
    _label_between(axes.yaxis, drawn.y_range)
    for line in drawn.lines:
        axes.plot(line.x, line.y, color=ROOF_COLOR, linewidth=1.5)
        axes.annotate(
            as_text(line.text),
            line.label,
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=_FONT,
            color=ROOF_COLOR,
        )
    for marks, color, name in (
        (drawn.kernels, KERNEL_COLOR, "kernels"),
        (drawn.operators, OPERATOR_COLOR, "operators"),
    ):
        axes.scatter(
            [mark.x for mark in marks],
            [mark.y for mark in marks],
            s=[(2 * mark.radius * _RADIUS / LARGEST) ** 2 for mark in marks],
            marker="D" if name == "kernels" else "o",
            facecolors="none" if name == "kernels" else color,
            edgecolors=color,
            alpha=0.8,
            label=name if marks else None,
        )
    box = axes.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    places = drawn.places((72 * box.width, 72 * box.height), _FONT, _RADIUS)
    for mark, place in zip(drawn.named, places, strict=True):
        if place is not None:
            axes.annotate(
                as_text(mark.name),
                (mark.x, mark.y),
                xytext=(place.dx, -place.dy),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=_FONT,
                arrowprops={"arrowstyle": "-", "color": ROOF_COLOR, "linewidth": 0.8},
            )
    axes.set_xlabel("FLOP per byte that must move", fontsize="small")
    axes.set_ylabel("Achieved FLOP/s", fontsize="small")
    axes.legend(fontsize="x-small", loc="upper left", markerscale=0.6)
    if title:
        axes.set_title(title, loc="left", fontsize="small")
    return kept(figure, output, plt)


def _label_between(axis: Any, ends: tuple[float, float]) -> None:
    """Labels at 2 and 5 of each decade of a narrow axis, and none at other ticks between powers of
    ten, where they would run into each other.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    narrow = math.log10(ends[1] / ends[0]) < _NARROW
    axis.set_minor_formatter(FuncFormatter(_tick_text) if narrow else NullFormatter())


def _tick_text(value: float, _: object = None) -> str:
    power = math.floor(math.log10(value) + 1e-9)
    step = round(value / 10.0**power)
    return rf"$\mathdefault{{{step}\times10^{{{power}}}}}$" if step in (2, 5) else ""
