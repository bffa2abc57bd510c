"""How full the device was and how near to a ceiling, by kernel: what is neither leaves most on the
table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.analysis.use.records import FilesRow
from profharness.report.pictures.options import READABLE, Option, option_json, tooltip
from profharness.report.plots.base import Plot
from profharness.report.plots.colors import KERNELS
from profharness.report.text.folding import distinct_names
from profharness.units import format_ns, format_share

LABELLED = 5
MOST_MARKS = 200
_LARGEST, _SMALLEST, _NAME = 34.0, 6.0, 44


@dataclass(frozen=True)
class Mark:
    """One kernel: its shares of the compute units and of the nearer ceiling, and its time."""

    name: str
    fill: float
    peak: float
    total_ns: int


def marks(summary: Summary) -> tuple[Mark, ...]:
    """Kernels with both shares known, the longest first."""
    if summary.use is None:
        return ()
    of_files = {row.name: row.fill for row in summary.use.kernels if isinstance(row, FilesRow)}
    peaks = {row.name: row.peak_share for row in summary.use.kernels if row.peak_share is not None}
    found = [
        Mark(row.name, fill, peaks[row.name], row.total_ns)
        for table in summary.hotspots
        if table.by == "kernel"
        for row in table.rows
        for fill in (of_files.get(row.name, row.fill),)
        if fill is not None and row.total_ns and row.name in peaks
    ]
    return tuple(sorted(found, key=lambda mark: (-mark.total_ns, mark.name))[:MOST_MARKS])


def fill_peak_plot(summary: Summary) -> Plot | None:
    """A mark per kernel, as large as its time, the five longest with their names."""
    found = marks(summary)
    if len(found) < 2:
        return None
    short = distinct_names([mark.name for mark in found], _NAME)
    longest = found[0].total_ns
    data = [
        {
            "value": [round(100 * mark.fill, 2), round(100 * mark.peak, 2)],
            "symbolSize": round(max(_LARGEST * math.sqrt(mark.total_ns / longest), _SMALLEST), 1),
            "label": {
                "show": place < LABELLED,
                "position": "left" if mark.fill > 0.5 else "right",
            },
            "name": name,
            "told": f"{name}\\nfill {format_share(mark.fill)}, {format_share(mark.peak)} of the "
            f"nearer ceiling, {format_ns(mark.total_ns)}",
        }
        for place, (mark, name) in enumerate(zip(found, short, strict=True))
    ]
    label: Option = {"formatter": "named", "overflow": "truncate", **READABLE}
    option: Option = {
        "legend": {"show": False},
        "tooltip": tooltip("told"),
        "xAxis": {"type": "value", "min": 0, "max": 100, "name": "fill: compute units used (%)"},
        "yAxis": {
            "type": "value",
            "min": 0,
            "max": 100,
            "name": "share of the nearer ceiling (%)",
            "nameGap": 34,
        },
        "narrow": {"height": 380, "series": [{"label": {**label, "width": 130}}]},
        "series": [
            {
                "type": "scatter",
                "name": "kernels",
                "itemStyle": {"color": KERNELS, "opacity": 0.7},
                "label": label,
                "labelLayout": {"hideOverlap": True},
                "data": data,
            }
        ],
    }
    first = found[0]
    return Plot(
        "fill-peak",
        option_json(option),
        380,
        "Fill and share of peak by kernel",
        "How many compute units each kernel used, and how near it came to the ceiling of its kind; "
        f"a mark's area grows with its time. The longest, {short[0]}, fills "
        f"{format_share(first.fill)} and reaches {format_share(first.peak)}.",
    )
