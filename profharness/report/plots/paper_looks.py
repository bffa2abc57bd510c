"""How curves of a figure are told apart: by colour, mark and line at once, for readers who do not
see colours and printers that have none.

A device, or whatever else names a curve, has one colour and one mark. Its direct measurement has
filled marks on a solid line, and the one through a server has open marks on a dashed line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# colours of the published comparison, by what a label names
DEVICE_COLOURS = {
    "T4": "#000000",
    "A10": "#7a21dd",
    "A30": "#9c9ca1",
    "A100": "#964a8b",
    "V100": "#f89c20",
    "MI100": "#5790fc",
    "MI210": "#e42536",
}
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)  # M. Petroff, arXiv:2107.02270, ten colours
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
SERVED = frozenset({"triton", "served"})
DIRECT = "direct"


@dataclass(frozen=True)
class Look:
    """A curve's colour, mark and line; `filled` of the mark."""

    colour: str
    mark: str
    line: Any
    filled: bool

    @property
    def settings(self) -> dict[str, Any]:
        """As matplotlib's `errorbar` takes them."""
        return {
            "color": self.colour,
            "marker": self.mark,
            "linestyle": self.line,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgecolor": self.colour,
        }


def looks(named: Sequence[Sequence[str]], about: str = "") -> tuple[Look, ...]:
    """A look for each curve by the words that name it, no two alike up to 48 curves.

    Words that say which way a curve was measured choose the line; all others together the colour
    and the mark. `about` are words that all curves share, a device's name among them.
    """
    things = [_thing(words) for words in named]
    distinct = list(dict.fromkeys(things))
    colours = _colours(distinct, about)
    both = any(map(_is_served, named)) and not all(map(_is_served, named))
    seen: dict[tuple[str, str], int] = {}
    found = []
    for words, thing in zip(named, things, strict=True):
        place = distinct.index(thing)
        colour, mark = colours[place], MARKS[place % len(MARKS)]
        nth = seen.get((colour, mark), 0)
        served = both and _is_served(words)
        seen[colour, mark] = nth + 1
        line = _DASHES[max(nth, 1 if served else 0) % len(_DASHES)]
        found.append(Look(colour, mark, line, filled=not served))
    return tuple(found)


def _thing(words: Sequence[str]) -> tuple[str, ...]:
    """What a curve is of, whichever way it was measured."""
    return tuple(word for word in words if word and word not in SERVED and word != DIRECT)


def _is_served(words: Sequence[str]) -> bool:
    return any(word in SERVED for word in words)


def _colours(things: Sequence[tuple[str, ...]], about: str) -> list[str]:
    """The published colours where these tell most of the things apart; else the palette's, of which
    none that a device has already.
    """
    named = [device_colour(" ".join((*thing, about))) for thing in things]
    known = {colour for colour in named if colour}
    if 2 * len(known) < len(things):
        return [PALETTE[place % len(PALETTE)] for place in range(len(things))]
    free = [colour for colour in PALETTE if colour not in known]
    places = iter(range(len(things)))
    return [colour or free[next(places) % len(free)] for colour in named]


def device_colour(label: str) -> str:
    """The published colour of the device that a label names; empty for others."""
    named = [name for name in DEVICE_COLOURS if name in label]
    return DEVICE_COLOURS[max(named, key=len)] if named else ""
