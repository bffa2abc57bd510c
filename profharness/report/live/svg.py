"""Curves as SVG that needs no script: the live page gets its pictures as they are to be seen. The
curves, scales and colours are those of the report's plots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profharness.report.plots.chart import Curve, Scale
from profharness.report.text.figures import brief_text, si_text
from profharness.rundir.shown.screen import visible

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 1060, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 16, 12, 46
_LONGEST_TICK = 18
_TICKS = 5


@dataclass(frozen=True)
class _Placed:
    """One axis: where its ticks are and what they say, and the pixels of a value."""

    title: str
    ticks: tuple[tuple[float, str], ...]
    low: float
    high: float
    first: float
    last: float
    log: bool = False
    names: tuple[str, ...] = ()

    def at(self, value: float | str | None) -> float | None:
        """Pixels; None for what has no place."""
        if value is None:
            return None
        if isinstance(value, str):
            return self.at(float(self.names.index(value))) if value in self.names else None
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        low, high, one = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.first + (one - low) / (high - low) * (self.last - self.first)


def chart_svg(curves: Sequence[Curve], x: Scale, y: Scale, *, words: str) -> Markup:
    """The curves with their intervals, axes and a text per point that shows under the pointer.
    `words` describe the picture to who does not see it.
    """
    from markupsafe import Markup

    across = _across(curves, x)
    up = _up(curves, y)
    parts = [*_frame(across, up), *(part for one in curves for part in _curve(one, across, up))]
    return Markup(  # noqa: S704  numbers, and texts that `_text` escaped
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{_text(words)}">{"".join(parts)}</svg>'
    )


def _text(text: str) -> str:
    from markupsafe import escape

    return str(escape(visible(text)))


def _across(curves: Sequence[Curve], scale: Scale) -> _Placed:
    names = tuple(dict.fromkeys(one for curve in curves for one in curve.x if isinstance(one, str)))
    if names:
        shown = names[:: max(1, -(-len(names) // 12))]
        ticks = tuple((float(names.index(name)), name) for name in shown)
        return _Placed(
            scale.title, ticks, -0.5, len(names) - 0.5, _LEFT, WIDTH - _RIGHT, names=names
        )
    values = [one for curve in curves for one in curve.x if isinstance(one, int | float)]
    low = scale.low if scale.low is not None else min(values, default=0.0)
    high = scale.high if scale.high is not None else max(values, default=1.0)
    if not scale.log or low <= 0:
        margin = (high - low) * 0.04 or abs(high) * 0.2 or 1.0
        low, high = low - margin, high + margin
    ticks = tuple((tick, brief_text(tick)) for tick in scale.ticks)
    return _Placed(scale.title, ticks, low, high, _LEFT, WIDTH - _RIGHT, log=scale.log and low > 0)


def _up(curves: Sequence[Curve], scale: Scale) -> _Placed:
    values = [one for curve in curves for one in curve.y if one is not None]
    values += [end for curve in curves for ends in curve.ends if ends for end in ends]
    high = max((one for one in values if math.isfinite(one)), default=1.0)
    ticks = _round_ticks(high if high > 0 else 1.0)
    named = tuple((tick, si_text(tick, "").strip() if tick else "0") for tick in ticks)
    return _Placed(scale.title, named, 0.0, ticks[-1], HEIGHT - _BOTTOM, _TOP)


def _round_ticks(high: float) -> list[float]:
    """Some five round numbers from 0 on, the last one not below `high`."""
    rough = high / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= rough * 0.999)
    return [step * number for number in range(math.ceil(high / step - 1e-9) + 1)]


def _frame(across: _Placed, up: _Placed) -> Iterator[str]:
    left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for value, name in up.ticks:
        at = up.at(value)
        yield f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text class="tick" x="{left - 8}" y="{at:.1f}" dy=".32em" text-anchor="end">'
        yield f"{_text(name)}</text>"
    yield f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
    for value, name in across.ticks:
        at = across.at(value)
        if at is None or not left - 1 <= at <= right + 1:
            continue
        yield f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 4}"/>'
        yield f'<text class="tick" x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">'
        yield f"{_text(_cut(name))}</text>"
    middle = (left + right) / 2
    yield f'<text class="title" x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">'
    yield f"{_text(across.title)}</text>"
    yield f'<text class="title" transform="translate(14 {(_TOP + bottom) / 2:.0f}) rotate(-90)" '
    yield f'text-anchor="middle">{_text(up.title)}</text>'


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TICK else f"{text[: _LONGEST_TICK - 1]}…"


def _curve(curve: Curve, across: _Placed, up: _Placed) -> Iterator[str]:
    """The line, the intervals, the points."""
    places = [(across.at(x), up.at(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    known = [(x, y) for x, y in places if x is not None and y is not None]
    if curve.width and len(known) > 1:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        yield f'<polyline fill="none" stroke="{curve.color}" stroke-width="{curve.width:g}" '
        yield f'stroke-linejoin="round" points="{line}"/>'
    for (x, _), ends in zip(places, curve.ends, strict=False):
        if x is None or ends is None:
            continue
        low, high = up.at(ends[0]), up.at(ends[1])
        if low is not None and high is not None:
            path = f"M{x - 4:.1f} {low:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {high:.1f}h8"
            yield f'<path fill="none" stroke="{curve.color}" stroke-width="1.4" d="{path}"/>'
    notes = [*curve.notes, *[""] * (len(places) - len(curve.notes))]
    for (x, y), note in zip(places, notes, strict=True):
        if x is None or y is None or not curve.size:
            continue
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{curve.size / 2:g}" fill="{curve.color}">'
        yield f"<title>{_text(note)}</title></circle>" if note else "</circle>"


SPARK_WIDTH, SPARK_HEIGHT = 240, 46


def spark_svg(
    at_s: Sequence[float], values: Sequence[float], color: str, *, top: float | None = None
) -> Markup:
    """One small line over time from zero (or below) to its largest value, or to `top` where that is
    larger.
    """
    from markupsafe import Markup

    first, last = at_s[0], max(at_s[-1], at_s[0] + 1e-9)
    low, high = min(0.0, *values), max(top or 0.0, *values) or 1.0
    room = SPARK_HEIGHT - 6

    def place(at: float, value: float) -> str:
        x = (at - first) / (last - first) * SPARK_WIDTH
        return f"{x:.1f},{3 + room - (value - low) / (high - low) * room:.1f}"

    line = " ".join(place(at, value) for at, value in zip(at_s, values, strict=True))
    area = f"0,{SPARK_HEIGHT - 3} {line} {SPARK_WIDTH},{SPARK_HEIGHT - 3}"
    return Markup(  # noqa: S704  numbers and a colour of ours
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" '
        f'preserveAspectRatio="none" aria-hidden="true"><polygon class="area" fill="{color}" '
        f'points="{area}"/><polyline fill="none" stroke="{color}" stroke-width="1.6" '
        f'vector-effect="non-scaling-stroke" points="{line}"/></svg>'
    )


def bar_svg(share: float) -> Markup:
    """A bar that is full by this share."""
    from markupsafe import Markup

    full = 1000 * min(max(share, 0.0), 1.0)
    return Markup(  # noqa: S704  a number
        '<svg class="progress" viewBox="0 0 1000 10" preserveAspectRatio="none" '
        'aria-hidden="true"><rect class="empty" width="1000" height="10"/>'
        f'<rect class="full" width="{full:.0f}" height="10"/></svg>'
    )
