"""Where values of known shapes stand in a text: each rule is tried around its stem, and only in the
parts of the text that the sieve leaves. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from profharness.secrets.shapes import SHAPES

Part = tuple[int, int]
"""Start and end of a part of a text."""
Span = tuple[int, int, str]

_LONGEST = 1 << 16
_LONGEST_STEMLESS = 128
_SHORT = 4096


def spans(text: bytes, parts: Sequence[Part], small: bytes) -> Iterator[Span]:
    """Start, end and label of the values that begin in these parts of a text; `small` is the text
    in small letters.
    """
    is_short = len(small) <= _SHORT
    for place, shape in enumerate(SHAPES):
        # of millions of short cells hardly any holds a stem, and this is the fastest look
        if is_short and shape.stem and shape.stem not in small:
            continue
        for match in _matches(place, text, parts, small):
            value = match.re.groups
            if shape.holds is None or shape.holds(match[value]):
                yield (*match.span(value), shape.label)


def places(block: bytes, parts: Sequence[Part], small: bytes) -> Iterator[int]:
    """Where in any bytes a value may stand: those before and after it may be of a binary format,
    and look like parts of a word.
    """
    for place in range(len(SHAPES)):
        for match in _matches(place, block, parts, small, is_binary=True):
            yield match.start()


def sieves() -> Iterator[str]:
    """In RE2's syntax, what a text in small letters holds if it holds a value of any shape."""
    return (shape.sieve or re.escape(shape.stem.decode()) for shape in SHAPES)


def hits(small: bytes, stem: bytes, parts: Iterable[Part]) -> Iterator[int]:
    """Where the stem begins in these parts."""
    for low, high in parts:
        end = high + len(stem) - 1
        at = small.find(stem, low, end)
        while at >= 0:
            yield at
            at = small.find(stem, at + 1, end)


def _matches(
    place: int, text: bytes, parts: Sequence[Part], small: bytes, *, is_binary: bool = False
) -> Iterator[re.Match[bytes]]:
    shape = SHAPES[place]
    whole = _pattern(place, is_binary)
    after = ending = 0
    for hit in _starts(place, text, parts, small):
        if hit < after:
            continue
        if shape.end and ending < hit:
            ending = text.find(shape.end, hit)
            if ending < 0:
                return
        if ending > hit + _LONGEST:
            continue
        match: re.Match[bytes] | None
        if shape.back:
            # each start by itself: a search would go on behind the stem, to the end of the text
            starts = range(max(hit - shape.back, after), hit + 1)
            found = (whole.match(text, start, hit + _LONGEST) for start in starts)
            match = next((one for one in found if one and hit < one.end()), None)
        else:
            match = whole.match(text, hit)
        if match:
            after = match.end()
            yield match


def _starts(place: int, text: bytes, parts: Sequence[Part], small: bytes) -> Iterator[int]:
    if SHAPES[place].stem:
        yield from hits(small, SHAPES[place].stem, parts)
        return
    # a pattern that begins with a set of letters is searched for fast, one with a look back is not
    core = _pattern(place, is_binary=True)
    for low, high in parts:
        # no further: what lies behind the part is looked at as a part of its own, or not at all
        for match in core.finditer(text, low, high + _LONGEST_STEMLESS):
            if match.start() >= high:
                break
            yield match.start()


@lru_cache(maxsize=512)
def _pattern(place: int, is_binary: bool) -> re.Pattern[bytes]:
    shape = SHAPES[place]
    return re.compile(shape.core if is_binary else shape.before + shape.core + shape.after)
