"""The ranks of a job side by side: what each computed, waited for and left idle, and how late it
came.
"""

from __future__ import annotations

from profharness.analysis.pictures.records import Pictures, RankShare
from profharness.analysis.records import Summary
from profharness.report.pictures.options import Option, option_json, tooltip
from profharness.report.plots.base import Plot
from profharness.report.plots.colors import CURVES
from profharness.report.plots.partition import PARTS
from profharness.units import format_ns, format_share

_FIELDS = (
    "compute_ns",
    "exposed_communication_ns",
    "exposed_copy_ns",
    "idle_ns",
    "idle_or_not_recorded_ns",
)
_LATE = "behind the first rank"
_LATE_COLOR = CURVES[4]


def ranks_plot(summary: Summary, pictures: Pictures | None) -> Plot | None:
    """A column per rank, and how far it was behind the first at collectives; None for one rank."""
    rows = () if pictures is None else pictures.ranks
    if len(rows) < 2:
        return None
    rows = tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank or 0)))
    late = _lateness(summary, rows)
    return Plot(
        "ranks",
        option_json(_option(rows, late)),
        360,
        f"{len(rows)} ranks side by side",
        _words(rows, late),
    )


def _label(row: RankShare) -> str:
    return row.device if row.rank is None else f"rank {row.rank}"


def _lateness(summary: Summary, rows: tuple[RankShare, ...]) -> list[float | None]:
    """Mean time behind the first rank, in ns; None where it was not seen."""
    skew = None if summary.communication is None else summary.communication.skew
    behind = {} if skew is None else {row.rank: row.mean_behind_ns for row in skew.rows}
    return [behind.get(_label(row)) for row in rows]


def _option(rows: tuple[RankShare, ...], late: list[float | None]) -> Option:
    told = any(one is not None for one in late)
    series: list[Option] = [
        {
            "type": "bar",
            "stack": "all",
            "name": part.label,
            "itemStyle": {"color": part.color},
            "barCategoryGap": "12%" if len(rows) > 24 else "35%",
            "data": [_share(row, part.field, part.label) for row in rows],
        }
        for part in PARTS
        if part.field in _FIELDS and any(getattr(row, part.field) for row in rows)
    ]
    axes: list[Option] = [
        {"type": "value", "min": 0, "max": 100, "name": "share of the time (%)", "nameGap": 34}
    ]
    if told:
        axes.append(
            {
                "type": "value",
                "min": 0,
                "name": f"{_LATE}, mean",
                "nameGap": 58,
                "axisLabel": {"formatter": "ns"},
                "splitLine": {"show": False},
            }
        )
        series.append(_late_series(rows, late))
    return {
        "legend": {"data": [one["name"] for one in series]},
        "tooltip": tooltip("told"),
        "xAxis": {
            "type": "category",
            "data": [_label(row).removeprefix("rank ") for row in rows],
            "name": "rank",
        },
        "yAxis": axes,
        "series": series,
    }


def _late_series(rows: tuple[RankShare, ...], late: list[float | None]) -> Option:
    return {
        "type": "line",
        "name": _LATE,
        "yAxisIndex": 1,
        "itemStyle": {"color": _LATE_COLOR},
        "lineStyle": {"color": _LATE_COLOR, "width": 1, "opacity": 0.5},
        "symbolSize": 5 if len(rows) > 24 else 8,
        "data": [
            "-"
            if ns is None
            else {
                "value": round(ns),
                "told": f"{_label(row)}: {format_ns(ns)} {_LATE} in the mean",
            }
            for row, ns in zip(rows, late, strict=True)
        ],
    }


def _share(row: RankShare, field: str, label: str) -> Option:
    ns = int(getattr(row, field))
    share = ns / row.window_ns if row.window_ns else 0.0
    name = _label(row) if row.rank is None else f"{_label(row)} ({row.device})"
    return {
        "value": round(100 * share, 3),
        "told": f"{name}\n{label}: {format_share(share)}, {format_ns(ns)}",
    }


def _words(rows: tuple[RankShare, ...], late: list[float | None]) -> str:
    def ends(field: str) -> str:
        shares = [getattr(row, field) / row.window_ns for row in rows if row.window_ns]
        return f"{format_share(min(shares))} to {format_share(max(shares))}"

    said = (
        f"Of the time of each rank {ends('compute_ns')} is compute, "
        f"{ends('exposed_communication_ns')} exposed communication, {ends('idle_ns')} idle."
    )
    known = [(ns, _label(row)) for row, ns in zip(rows, late, strict=True) if ns is not None]
    if not known:
        return said
    most, who = max(known)
    return f"{said} The latest at collectives is {who}: {format_ns(most)} {_LATE} in the mean."
