"""Stacks of Python's lines as texts: one line per frame, the innermost first, each
`file:line function`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Frame(NamedTuple):
    """A line that a function had reached; `line` is 0 where that is not known."""

    file: str
    line: int
    function: str


def text_of(frames: Iterable[Frame]) -> str:
    """The text of a stack; frames come innermost first."""
    return "\n".join(
        f"{one.file.replace(_END, ' ')}:{one.line} {'_'.join(one.function.split()) or '?'}"
        for one in frames
    )


def frames_of(text: str) -> tuple[Frame, ...]:
    """The frames of a text, innermost first; a line that is no frame is one of an unknown file."""
    return tuple(_frame(line) for line in text.split(_END) if line)


_END = "\n"


def _frame(line: str) -> Frame:
    place, _, function = line.rpartition(" ")
    file, _, number = place.rpartition(":")
    if not number.isdecimal() or len(number) > _DIGITS:
        return Frame(place, 0, function)
    return Frame(file, int(number), function)


_DIGITS = 18
