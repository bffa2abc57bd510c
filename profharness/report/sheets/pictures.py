"""Small pictures as SVG within a page: bars of shares, and a figure over time. They hold numbers,
colours of ours and escaped names, and no style of their own, which the page's policy would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profharness.report.text.figures import si_text
from profharness.rundir.shown.screen import one_line

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTH = 1000


@dataclass(frozen=True)
class Bar:
    """One bar: its name, and shares that sum to 1 at most."""

    name: str
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Dot:
    """One value of a history: its place in time (seconds), what the pointer tells of it, and
    whether it stands out as one that was not committed.
    """

    at: float
    value: float
    title: str
    hollow: bool = False


def bars_picture(bars: Sequence[Bar], parts: Sequence[tuple[str, str]]) -> Markup:
    """Bars of shares below each other, as wide as the page, with the labels and colours of the
    parts as a key.
    """
    from markupsafe import Markup

    rows = "".join(
        f'<dt>{_escaped(bar.name)}</dt><dd><svg viewBox="0 0 {_WIDTH} 1" preserveAspectRatio="none"'
        f' role="img" aria-label="{_escaped(_spoken(bar, parts))}">{_pieces(bar, parts)}</svg></dd>'
        for bar in bars
    )
    key = "".join(
        f'<li><svg viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" fill="{color}">'
        f"</rect></svg>{_escaped(label)}</li>"
        for label, color in parts
    )
    made = f'<dl class="bars">{rows}</dl><ul class="key">{key}</ul>'
    return Markup(made)  # noqa: S704  names are escaped above


def _pieces(bar: Bar, parts: Sequence[tuple[str, str]]) -> str:
    shown, x = [], 0.0
    for share, (label, color) in zip(bar.shares, parts, strict=True):
        tip = f"{bar.name}: {label} {100 * share:.1f} %"
        shown.append(
            f'<rect x="{x:.2f}" y="0" width="{share * _WIDTH:.2f}" height="1" fill="{color}">'
            f"<title>{_escaped(tip)}</title></rect>"
        )
        x += share * _WIDTH
    return "".join(shown)


def _spoken(bar: Bar, parts: Sequence[tuple[str, str]]) -> str:
    shares = zip(bar.shares, parts, strict=True)
    return f"{bar.name}: " + ", ".join(f"{name} {100 * share:.1f} %" for share, (name, _) in shares)


def history_picture(dots: Sequence[Dot], unit: str, words: str) -> Markup:
    """Values over time from left to right, joined by a line; the axis begins at 0."""
    height, left, bottom = 180, 90, 150
    first, last = min(dot.at for dot in dots), max(dot.at for dot in dots)
    top = max(dot.value for dot in dots) or 1.0
    places = [
        (
            left
            + (_WIDTH - left - 20) * ((dot.at - first) / (last - first) if last > first else 0.5),
            bottom - (bottom - 20) * dot.value / top,
        )
        for dot in dots
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    shown = [
        f'<line class="axis" x1="{left}" y1="{bottom}" x2="{_WIDTH}" y2="{bottom}"></line>',
        f'<line class="axis" x1="{left}" y1="20" x2="{_WIDTH}" y2="20"></line>',
        _text(0, 24, si_text(top, unit)),
        _text(0, bottom + 4, f"0 {unit}"),
        f'<polyline class="line" points="{line}"></polyline>',
    ]
    for (x, y), dot in zip(places, dots, strict=True):
        kind = "dirty" if dot.hollow else "dot"
        title = f"<title>{_escaped(dot.title)}</title>"
        shown.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>')
    return _svg(height, words, shown)


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:g}" y="{y:g}">{_escaped(words)}</text>'


def _escaped(words: str) -> str:
    from markupsafe import escape

    return str(escape(one_line(words)))


def _svg(height: float, words: str, shown: Sequence[str]) -> Markup:
    from markupsafe import Markup

    opened = (
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" height="{height:g}" role="img" '
        f'aria-label="{_escaped(words)}">'
    )
    return Markup(f"{opened}{''.join(shown)}</svg>")  # noqa: S704  names are escaped above
