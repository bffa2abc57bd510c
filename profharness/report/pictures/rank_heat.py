"""Ranks against their figures as a heat map: phases of the device and the program, collectives,
arrival; those that stand out on top.
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.communication.groups import Figures, medians
from profharness.analysis.communication.records import Communication
from profharness.report.pictures.options import Option, option_json, tooltip
from profharness.report.plots.base import Plot
from profharness.report.text.measured import rank_groups
from profharness.trace.model import F64
from profharness.units import format_ns, format_share

_FEWEST = 3
_MOST = 32
"""Ranks that have a row each; of more, ranks that are alike share one."""
_CLIPPED = 3.0  # differences that count: further off is no darker
_SCALE = ("#2b6ca3", "#a9c9e2", "#f4f4f2", "#f0b48a", "#c04a15")
_OF = {"device": "", "range": " (range)", "collective": " (mean call)", "arrival": ""}


def rank_heat_plot(talk: Communication | None) -> Plot | None:
    """A row per rank, a column per figure; None of few ranks."""
    if talk is None or len(talk.ranks) < _FEWEST or not talk.groups:
        return None
    figures = Figures.of(talk.ranks)
    columns = [f"{name}{_OF[of]}" for of, name, _ in figures.columns]
    rows = _rows(talk, figures)
    cells = []
    for height, (name, values) in enumerate(rows):
        off = (values - figures.usual) / figures.worth
        for column, (_, _, is_share) in enumerate(figures.columns):
            if np.isfinite(values[column]):
                told = _value(values[column], is_share=is_share)
                usual = _value(figures.usual[column], is_share=is_share)
                cells.append(
                    {
                        "value": [column, height, round(float(np.clip(off[column], -9, 9)), 2)],
                        "told": f"{name}\n{columns[column]}: {told}\nmedian {usual}",
                    }
                )
    ranks = [name.removeprefix("rank ") for name, _ in rows]
    option: Option = {
        "legend": {"show": False},
        "tooltip": tooltip("told"),
        "xAxis": {
            "type": "category",
            "data": columns,
            "position": "top",
            "axisLabel": {"interval": 0, "rotate": 30},
        },
        "yAxis": {"type": "category", "data": ranks, "name": "rank", "inverse": True},
        "visualMap": {
            "show": False,
            "min": -_CLIPPED,
            "max": _CLIPPED,
            "dimension": 2,
            "inRange": {"color": list(_SCALE)},
        },
        "series": [{"type": "heatmap", "name": "ranks", "data": cells}],
    }
    return Plot(
        "rank-heat",
        option_json(option),
        130 + 18 * len(rows),
        f"{len(talk.ranks)} ranks by phase and collective",
        _words(talk),
    )


def _rows(talk: Communication, figures: Figures) -> list[tuple[str, F64]]:
    """Each rank with its figures, by group; of many ranks the largest group, and those behind the
    first ranks, by one row each with their medians.
    """
    place = {one.rank: at for at, one in enumerate(talk.ranks)}
    rows: list[tuple[str, F64]] = []
    for group in talk.groups:
        alike = [place[rank] for rank in group.ranks]
        is_last = group is talk.groups[-1]
        if len(talk.ranks) > _MOST and (is_last or len(rows) + len(alike) > _MOST):
            rows.append((rank_groups.names(group.ranks), medians(figures, alike)))
        else:
            rows += [(talk.ranks[row].rank, figures.values[row]) for row in alike]
    return rows[: 2 * _MOST]


def _value(value: float, *, is_share: bool) -> str:
    return format_share(value) if is_share else format_ns(value)


def _words(talk: Communication) -> str:
    said = (
        "Red is more than the median of all ranks, blue less; full colour is three times what "
        "counts as a difference. Ranks that stand out are on top"
    )
    if len(talk.groups) < 2:
        return f"{said}: here none does."
    first = talk.groups[0]
    return f"{said}, first {rank_groups.names(first.ranks)}: {rank_groups.differences(first)}."
