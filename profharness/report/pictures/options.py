"""What every picture's option of ECharts shares: written as JSON without functions, foreign text
made visible, and the parts that stand in most of them.

Painters and formats are named as text; the page's script puts the functions of
`report/page/templates/painters/` in their place.
"""

from __future__ import annotations

import json
import math
from typing import Any

from profharness.report.plots.colors import IDLE
from profharness.rundir.shown.screen import visible

Option = dict[str, Any]
"""A part of an ECharts option: its keys are ECharts' own names (https://echarts.apache.org)."""

READABLE: Option = {
    "color": "var(--ink)",
    "textBorderColor": "var(--card)",
    "textBorderWidth": 3,
}
"""Of a label that may lie on marks and lines: the text's colour, bordered in the ground's."""

GREY = IDLE
"""Of what is left over or stands beside."""


def option_json(option: Option) -> str:
    """The option as JSON; numbers that are not finite become null."""
    return json.dumps(_shown(option), separators=(",", ":"), allow_nan=False)


def _shown(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _shown(value) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [_shown(value) for value in part]
    if isinstance(part, float) and not math.isfinite(part):
        return None
    return visible(part) if isinstance(part, str) else part


def tooltip(text: str = "", **settings: Any) -> Option:
    """Text under the pointer, drawn as a part of the picture: no HTML, so no styles in the page.
    `text` names a format.
    """
    shown: Option = {"renderMode": "richText"}
    return {**shown, **({"formatter": text} if text else {}), **settings}


def zoom(**settings: Any) -> list[Option]:
    """Zoom along x: by the slider, by the wheel with Ctrl, by dragging."""
    slider = {"type": "slider", "bottom": 4, "height": 18, "showDetail": False}
    return [
        {**slider, "showDataShadow": False, "brushSelect": False, **settings},
        {"type": "inside", "zoomOnMouseWheel": "ctrl", "moveOnMouseMove": True, **settings},
    ]
