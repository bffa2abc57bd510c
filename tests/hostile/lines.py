"""Changes of logs and other files of lines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.hostile import extremes

_NUMBER = re.compile(rb"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
Lines = list[bytes]


def number(lines: Lines, rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    found = list(_NUMBER.finditer(lines[at]))
    if found:
        one, text = rng.choice(found), extremes.number(rng).encode()
        lines[at] = lines[at][: one.start()] + text + lines[at][one.end() :]


def numbers(lines: Lines, rng: random.Random) -> None:
    text = extremes.number(rng).encode()
    at = rng.randrange(len(lines))
    lines[at] = _NUMBER.sub(text, lines[at])


def drop(lines: Lines, rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    del lines[at : at + rng.choice((1, 1, 5))]


def repeat(lines: Lines, rng: random.Random) -> None:
    """Up to some 16 MB: a file of 100 MB takes longer than an answer may by its size alone."""
    at = rng.randrange(len(lines))
    some, times = lines[at : at + 3], rng.choice((1, 2, 300))
    lines[at:at] = some * min(times, (16 << 20) // max(sum(map(len, some)), 1) + 1)


def swap(lines: Lines, rng: random.Random) -> None:
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def join(lines: Lines, rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines[at : at + 2] = [b"".join(lines[at : at + 2])]


def cut(lines: Lines, rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]


def word(lines: Lines, rng: random.Random) -> None:
    """A word of a line becomes another text."""
    at = rng.randrange(len(lines))
    words = lines[at].split(b" ")
    words[rng.randrange(len(words))] = extremes.cell(rng).encode()
    lines[at] = b" ".join(words)


def bad_byte(lines: Lines, rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    inside = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:inside] + rng.choice(extremes.BYTES) + lines[at][inside:]


def long_line(lines: Lines, rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines[at] = (lines[at] or b"x") * rng.choice((50, 3000))


CHANGES: tuple[Callable[[Lines, random.Random], None], ...] = (
    number, number, number, numbers, drop, repeat, swap, join, cut, word, word, bad_byte, long_line,
)  # fmt: skip


def change(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The lines with one change, and its name."""
    lines = data.split(b"\n")
    chosen = rng.choice(CHANGES)
    chosen(lines, rng)
    return b"\n".join(lines), f"lines.{chosen.__name__}"
