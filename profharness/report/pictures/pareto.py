"""Which kernels most of the time goes to: shares, and what they come to together."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import HotspotRow, Hotspots, Summary
from profharness.report.pictures.options import GREY, READABLE, Option, option_json, tooltip
from profharness.report.plots.base import Plot
from profharness.report.plots.colors import BOUND, COMMUNICATION, COMPUTE, COPY
from profharness.report.text.folding import distinct_names
from profharness.units import format_ns, format_number, format_share

MOST_BARS = 20
_COLORS = {"communication": COMMUNICATION, "copy": COPY}
"""As in the partition; everything else computes."""
_NAME = 40
_ROW, _NARROW_ROW = 22, 34
_WIDE = 0.08
"""A bar of this share holds its own number."""


@dataclass(frozen=True)
class Bar:
    """One row of a table of hotspots, or the rest of them: its share, and that of all rows up to
    it.
    """

    name: str
    total_ns: int
    share: float
    together: float
    calls: int
    category: str


def bars(table: Hotspots) -> tuple[Bar, ...]:
    """The rows with most time, at most MOST_BARS, and the rest as one; none without times."""
    timed = [(row, time) for row in table.rows if (time := _time(table, row))]
    if not timed:
        return ()
    whole = _whole(table, sum(time for _, time in timed))
    timed.sort(key=lambda pair: -pair[1])
    shown, rest = timed[:MOST_BARS], timed[MOST_BARS:]
    made: list[Bar] = []
    upto = 0
    for row, time in shown:
        upto += time
        made.append(Bar(row.name, time, time / whole, upto / whole, row.calls, row.category))
    if rest:
        left = sum(time for _, time in rest)
        calls = sum(row.calls for row, _ in rest)
        name = f"the other {format_number(len(rest))}"
        made.append(Bar(name, left, left / whole, (upto + left) / whole, calls, ""))
    return tuple(made)


def _whole(table: Hotspots, of_rows: int) -> int:
    """What the table's shares are of: of operators also the device time that none launched."""
    if table.by == "op" and table.device_ns_outside is not None:
        return of_rows + table.device_ns_outside
    return max(table.total_ns or 0, of_rows)


def _time(table: Hotspots, row: HotspotRow) -> int | None:
    """Device time of operators where a device was recorded, else the row's own."""
    if table.by == "op" and table.device_ns_outside is not None:
        return row.device_ns
    return row.total_ns


def pareto_plot(summary: Summary) -> Plot | None:
    """Bars of share and the cumulative line of the first table of hotspots; None with fewer than
    two rows.
    """
    if not summary.hotspots:
        return None
    table = summary.hotspots[0]
    made = bars(table)
    if len(made) < 2:
        return None
    what = {"kernel": "kernels", "op": "operators", "call": "host calls"}.get(table.by, "rows")
    option = _option(made, table)
    few = next((at for at, bar in enumerate(made, 1) if bar.together >= 0.8), len(made))
    return Plot(
        "pareto",
        option_json(option),
        96 + _ROW * len(made),
        f"Where the time of {what} goes",
        f"Share of the time of each of the first {what} and their sum: "
        f"{few} of {format_number(len(table.rows))} take {format_share(made[few - 1].together)}.",
    )


def _option(made: tuple[Bar, ...], table: Hotspots) -> Option:
    labels = distinct_names([bar.name for bar in made], _NAME)
    return {
        "legend": {"data": ["share", "together"]},
        "grid": {"right": 56},
        "tooltip": tooltip("told"),
        "xAxis": {"type": "value", "min": 0, "max": 100, "name": "share of the time (%)"},
        "yAxis": {
            "type": "category",
            "inverse": True,
            "data": labels,
            "axisLabel": {"interval": 0, "width": 300, "overflow": "truncate"},
            "splitLine": {"show": False},
        },
        "narrow": _narrow(len(made)),
        "series": [
            {
                "type": "bar",
                "name": "share",
                "itemStyle": {"color": COMPUTE},
                "barMaxWidth": 15,
                "label": {
                    "show": True,
                    "position": "right",
                    "formatter": "share",
                    **READABLE,
                },
                "data": _shares(made, of_kernels=table.by == "kernel"),
            },
            {
                "type": "line",
                "name": "together",
                "itemStyle": {"color": BOUND},
                "lineStyle": {"color": BOUND, "width": 2},
                "symbolSize": 6,
                "data": [
                    {
                        "value": [round(100 * bar.together, 3), row],
                        "told": f"the first {row + 1} together: {format_share(bar.together)}",
                    }
                    for row, bar in enumerate(made)
                ],
            },
        ],
    }


def _narrow(rows: int) -> Option:
    """On a narrow screen the names stand above their bars, which else had no room."""
    label = {
        "inside": True,
        "align": "left",
        "verticalAlign": "bottom",
        "padding": [0, 0, 10, 0],
        "margin": 0,
    }
    return {
        "height": 96 + _NARROW_ROW * rows,
        "yAxis": {
            "axisLabel": {**label, "interval": 0, **READABLE},
            "axisTick": {"show": False},
            "z": 4,  # names go before the line
        },
        "series": [{"barMaxWidth": 12}],
    }


def _shares(made: tuple[Bar, ...], *, of_kernels: bool) -> list[Option]:
    data: list[Option] = [
        {
            "value": round(100 * bar.share, 3),
            "itemStyle": {"color": _color(bar, of_kernels=of_kernels)},
            "told": f"{_wrapped(bar.name)}\n{format_share(bar.share)}, {format_ns(bar.total_ns)} "
            f"in {format_number(bar.calls)} calls",
        }
        for bar in made
    ]
    if made[0].share > _WIDE:  # the line begins where the first bar ends
        data[0]["label"] = {"position": "insideRight", "color": "#fff", "textBorderWidth": 0}
    return data


def _color(bar: Bar, *, of_kernels: bool) -> str:
    if not bar.category:
        return GREY
    return _COLORS.get(bar.category, COMPUTE) if of_kernels else COMPUTE


def _wrapped(name: str, width: int = 90, lines: int = 4) -> str:
    """A long name on several lines, the end of a very long one left out."""
    cut = [name[start : start + width] for start in range(0, len(name), width)]
    return "\n".join([*cut[: lines - 1], f"{cut[lines - 1]}…"] if len(cut) > lines else cut)
