"""Flame graphs: what the time was spent under, from the outermost frame down."""

from __future__ import annotations

from profharness.analysis.pictures.flame_layout import SAMPLED
from profharness.analysis.pictures.records import Flame, Pictures
from profharness.report.pictures.options import GREY, Option, option_json, tooltip
from profharness.report.plots.base import Plot
from profharness.report.plots.colors import COPY, CURVES, KERNELS, OPERATORS
from profharness.report.text.folding import cut_middle
from profharness.units import format_ns, format_share

COLORS = {
    "module": CURVES[1],
    "stack": CURVES[7],
    "range": CURVES[5],
    "op": OPERATORS,
    "kernel": KERNELS,
    "copy": COPY,
}
"""By kind of frame; what is outside or left over is grey."""
_TITLES = {
    "module": "modules, operators and kernels",
    "stack": "Python functions, operators and kernels",
    "op": "operators and kernels",
    SAMPLED: "Python lines (samples)",
}
_ROW, _LEAST_ROW, _TALLEST = 19, 13, 900
_NAME = 160  # letters: a page of thousands of longer names would be too large


def flame_plots(pictures: Pictures | None, *, sampled: bool = False) -> tuple[Plot, ...]:
    """A flame graph for each tree that was recorded, or (`sampled`) of the stacks that were."""
    flames = () if pictures is None else pictures.flames
    return tuple(_plot(flame) for flame in flames if (flame.by == SAMPLED) is sampled)


def _plot(flame: Flame) -> Plot:
    levels = max(flame.depth) + 1
    row = max(min(_ROW, _TALLEST // levels), _LEAST_ROW)
    whose = "device" if flame.of_device else "host"
    data = [
        [at, at + length, depth, name, kind]
        for at, length, depth, name, kind in zip(
            flame.at, flame.length, flame.depth, flame.name, flame.kind, strict=True
        )
    ]
    option: Option = {
        "grid": {"left": 2, "right": 2, "top": 2, "bottom": 2},
        "tooltip": tooltip("flame"),
        "xAxis": {"type": "value", "min": 0, "max": flame.total_ns, "show": False},
        "yAxis": {
            "type": "value",
            "inverse": True,
            "min": 0,
            "max": levels,
            "show": False,
        },
        "dataZoom": [
            {
                "type": "inside",
                "xAxisIndex": 0,
                "filterMode": "weakFilter",
                "zoomOnMouseWheel": "ctrl",
                "moveOnMouseMove": False,
            }
        ],
        "series": [
            {
                "type": "custom",
                "id": f"flame-{flame.by}",
                "renderItem": "flame",
                "encode": {"x": [0, 1], "y": 2},
                "itemPayload": {
                    "names": [cut_middle(name, _NAME) for name in flame.names],
                    "colors": [COLORS.get(kind, GREY) for kind in flame.kinds],
                    "kinds": list(flame.kinds),
                    "total": flame.total_ns,
                },
                "animation": False,
                "data": data,
            }
        ],
    }
    shares = _outermost(flame)
    pruned = f" Frames under {format_ns(flame.least_ns, 2)} stand together as others."
    return Plot(
        f"flame-{flame.by}",
        option_json(option),
        12 + row * levels,
        f"{whose.capitalize()} time by {_title(flame)}",
        f"Flame graph of {format_ns(flame.total_ns)} of {whose} time, the outermost frames "
        f"on top: {shares}.{pruned if 'others' in flame.kinds else ''}",
    )


def _title(flame: Flame) -> str:
    """The kinds of frame; without a device there are no kernels."""
    title = _TITLES.get(flame.by, flame.by)
    if flame.of_device:
        return title
    return title.replace(", operators and kernels", " and operators").removesuffix(" and kernels")


def _outermost(flame: Flame, most: int = 3) -> str:
    """The longest of the first frames beside which others stand, and their shares."""
    columns = list(zip(flame.depth, flame.length, flame.name, strict=True))
    for level in range(max(flame.depth) + 1):
        at_level = [(length, name) for depth, length, name in columns if depth == level]
        if len(at_level) > 1 or level == max(flame.depth):
            break
    at_level.sort(reverse=True)
    return ", ".join(
        f"{cut_middle(flame.names[name], 60)} {format_share(length / flame.total_ns)}"
        for length, name in at_level[:most]
    )
