"""A report as one page of PDF (A4), drawn by matplotlib (extra `plots`): the words, two figures,
the main table and the first hotspots.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from profharness import __version__
from profharness.analysis.records import PointSummary, Summary
from profharness.analysis.use.records import DeviceUse, UseRow
from profharness.errors import Unavailable
from profharness.report.documents.extract import Extract, extract
from profharness.report.plots.base import Group, groups
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.table import Table
from profharness.report.text.figures import finite
from profharness.report.text.folding import cut_middle
from profharness.report.text.labels import AXIS_TITLES, Axis, item_unit, scan_axis
from profharness.report.text.rates import throughput_ends
from profharness.rundir.shown.screen import one_line

_PAGE = (8.27, 11.69)  # inches of A4
_LEFT, _RIGHT, _TOP = 0.08, 0.92, 0.955  # of the page
_LINE = 0.0155  # of the page's height, for 8.5 pt
_ROWS, _HOTSPOTS = 16, 8
_NAME = 48  # characters of a cell
_CHARACTERS = 104  # of 8.5 pt in a line
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "pdf.fonttype": 42,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dfe5ea",
    "axes.axisbelow": True,
}


def pdf(summary: Summary) -> bytes:
    """The page; the same summary gives the same bytes. Raises Unavailable without matplotlib."""
    mpl = require_matplotlib()
    from matplotlib.figure import Figure

    page = extract(summary)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_PAGE)
        below = _words(figure, page)
        below = _figures(figure, summary, below)
        for table, most in ((page.main, _ROWS), (page.hotspots, _HOTSPOTS)):
            if table is not None:
                below = _table(figure, table, most, below)
        _say(figure, _LEFT, 0.03, f"profharness {__version__}, from {page.source}", color="#55626f")
        out = io.BytesIO()
        about = {"Title": one_line(page.title), "Creator": "profharness", "CreationDate": None}
        figure.savefig(out, format="pdf", metadata=about)
    return out.getvalue()


def require_matplotlib() -> Any:
    """Matplotlib. Raises Unavailable where it is not installed."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise Unavailable(
            f"a page in PDF needs matplotlib ({error})", "pip install 'profharness[plots]'"
        ) from error
    return mpl


def _say(figure: Any, x: float, y: float, text: str, **look: Any) -> None:
    """A line of text whose dollar signs begin no formula."""
    figure.text(x, y, one_line(text), va="top", parse_math=False, **look)


def _words(figure: Any, page: Extract) -> float:
    """Title, facts and the three sentences; where they end."""
    _say(figure, _LEFT, _TOP, cut_middle(page.title, 60), fontsize=15, fontweight="bold")
    _say(figure, _LEFT, _TOP - 0.027, " · ".join(page.facts), color="#55626f")
    at = _TOP - 0.055
    for label, text in (
        ("Answer", page.said.answer),
        ("Next", page.said.next),
        ("Trust", page.said.trust),
        ("Verdict", page.verdict),
    ):
        lines = textwrap.wrap(text, _CHARACTERS - 12)[:6]
        if lines:
            _say(figure, _LEFT, at, label, color="#0b7375", fontweight="bold")
        for line in lines:
            _say(figure, _LEFT + 0.085, at, line)
            at -= _LINE
        at -= _LINE / 3 if lines else 0
    return at


def _figures(figure: Any, summary: Summary, below: float) -> float:
    """Throughput and latency of a scan, else the parts of the time; where they end."""
    axis = scan_axis(summary.points)
    drawn = [group for group in groups(summary) if _measured(group.points)]
    if drawn and axis is not None:
        height = 0.19
        bottom = below - height - 0.01
        for place, draw in ((_LEFT + 0.045, _throughput), (0.57, _latency)):
            axes = figure.add_axes((place, bottom, 0.35, height))
            draw(axes, drawn, axis, item_unit(summary))
            axes.set_xscale("log")
            levels = sorted({getattr(point, axis) for group in drawn for point in group.points})
            shown = levels[:: max(1, -(-len(levels) // 7))]
            axes.set_xticks(shown, [f"{level:g}" for level in shown])
            axes.minorticks_off()
            axes.set_xlabel(f"{AXIS_TITLES[axis]} (log scale)")
        return float(bottom - 0.055)
    if summary.partition is None or not summary.partition.window_ns:
        return below
    bottom = below - 0.05
    _parts(figure.add_axes((_LEFT, bottom, _RIGHT - _LEFT, 0.03)), summary)
    below = bottom - 0.085
    if summary.use is None or not _placed(summary.use):
        return float(below)
    bottom = below - 0.17
    _roofline(figure.add_axes((_LEFT + 0.045, bottom, 0.6, 0.16)), summary.use)
    return float(bottom - 0.055)


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


def _measured(points: Sequence[PointSummary]) -> list[PointSummary]:
    return [point for point in points if finite(point.throughput) is not None]


def _throughput(axes: Any, drawn: Sequence[Group], axis: Axis, unit: str) -> None:
    for group in drawn:
        points = _measured(group.points)
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
        look = {"color": group.color, "label": group.name or "measured", "marker": "o"}
        axes.errorbar(levels, values, bars, markersize=3, linewidth=1, **look)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"throughput ({unit})")
    if len(drawn) > 1:
        axes.legend(fontsize=6.5, frameon=False)


def _latency(axes: Any, drawn: Sequence[Group], axis: Axis, _unit: str) -> None:
    for group in drawn:
        points = [point for point in group.points if finite(point.latency_ms)]
        levels = [getattr(point, axis) for point in points]
        values = [point.latency_ms for point in points]
        axes.plot(levels, values, color=group.color, marker="o", markersize=3, linewidth=1)
    axes.set_yscale("log")
    axes.set_ylabel("mean latency (ms)")


def _parts(axes: Any, summary: Summary) -> None:
    """One bar of the window's parts, named below it."""
    partition = summary.partition
    assert partition is not None
    left = 0.0
    for part in PARTS:
        share = 100 * part_ns(partition, part) / partition.window_ns
        if share:
            label = f"{part.label} {share:.1f} %"
            axes.barh([0], [share], left=left, color=part.color, label=label)
            left += share
    axes.set_xlim(0, 100)
    axes.set_yticks([])
    axes.set_title("share of the time (%)", fontsize=8.5, loc="left")
    axes.legend(ncols=3, fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.7))


def _table(figure: Any, table: Table, most: int, below: float) -> float:
    """The first rows and columns that fit; where the table ends."""
    rows = table.rows[: min(most, int((below - 0.07) / _LINE) - 2)]
    if len(rows) < 1:
        return below
    _say(figure, _LEFT, below, table.title, fontweight="bold")
    cells = [
        [column.title for column in table.columns],
        *([one.text for one in row] for row in rows),
    ]
    widths = [
        _wide(max(len(cut_middle(one, _NAME)) for one in column))
        for column in zip(*cells, strict=True)
    ]
    shown = [at for at in range(len(widths)) if sum(widths[: at + 1]) <= _CHARACTERS + 8]
    at = below - 1.2 * _LINE
    for number, row in enumerate(cells):
        x = _LEFT
        for place in shown:
            right = table.columns[place].align == "right"
            wide = widths[place] / (_CHARACTERS + 8) * (_RIGHT - _LEFT)
            look = {"ha": "right" if right else "left", "color": "#17212b" if number else "#55626f"}
            _say(
                figure,
                x + (wide - 0.015 if right else 0),
                at,
                cut_middle(row[place], _NAME),
                **look,
            )
            x += wide
        at -= _LINE
    left = len(table.rows) - len(rows) + table.left_out
    if left:
        _say(figure, _LEFT, at, f"{left} further rows", color="#55626f")
        at -= _LINE
    return at - _LINE / 2


def _wide(letters: int) -> int:
    """The width of a column in letters of mean width, with a gap; names have wide letters."""
    return letters + 2 + letters // 6
