"""Where the elements of a JSON list end (exactly, vectorised), and repairs for text that is almost
JSON.

It works on bytes that stand inside a list, from the border between two elements on. Syntax is RFC
8259.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

# what decoding raises for bytes that are no JSON, not of the type asked for, not UTF-8, or nested
# too deep
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_STEP = np.zeros(256, np.int8)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_NEAR = 1 << 12  # longer than most events
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_GAP = re.compile(rb"[\s,]*")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(rb'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\')
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_FIRST_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NOT_FINITE = re.compile(rb"-?\b(?:nan|inf(?:inity)?)\b(?:\([^)]*\))?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Scan:
    """`ends`: positions just behind each complete element that has brackets; `closed`: where the
    list's own `]` stands, if it does.
    """

    ends: npt.NDArray[np.int64]
    closed: int | None


def scan(text: bytes | memoryview) -> Scan:
    """The ends of the elements in `text`, which starts between two elements of a list."""
    codes = np.frombuffer(text, np.uint8)
    quotes = _string_borders(codes)
    brackets = np.flatnonzero(_STEP[codes])
    brackets = brackets[np.searchsorted(quotes, brackets) % 2 == 0]
    depth = np.cumsum(_STEP[codes[brackets]], dtype=np.int64)
    below = np.flatnonzero(depth < 0)
    stop = int(below[0]) if len(below) else len(brackets)
    ends = brackets[:stop][depth[:stop] == 0] + 1
    return Scan(ends, int(brackets[stop]) if len(below) else None)


def first_at_depth(
    text: bytes | bytearray, spans: Sequence[tuple[int, int]], depth: int
) -> int | None:
    """The end of the first of these stretches that begins inside so many brackets and outside of
    strings; None for none. The text begins outside of all.

    `spans` are keys with their quotes, in rising order; one scan serves for all of them.
    """
    if not spans:
        return None
    codes = np.frombuffer(bytes(text[: spans[-1][1]]), np.uint8)
    quotes = _string_borders(codes)
    brackets = np.flatnonzero(_STEP[codes])
    brackets = brackets[np.searchsorted(quotes, brackets) % 2 == 0]
    depths = np.concatenate(([0], np.cumsum(_STEP[codes[brackets]], dtype=np.int64)))
    starts = np.array([start for start, _ in spans], np.int64)
    outside = np.searchsorted(quotes, starts) % 2 == 0
    found = np.flatnonzero(outside & (depths[np.searchsorted(brackets, starts)] == depth))
    return spans[int(found[0])][1] if len(found) else None


def _string_borders(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Positions of the quotes that open or close a string: those behind an even run of
    backslashes.
    """
    quotes = np.flatnonzero(codes == _QUOTE)
    slashes = np.flatnonzero(codes == _BACKSLASH)
    if not len(slashes):
        return quotes
    run = np.concatenate(([True], np.diff(slashes) != 1))
    first = slashes[np.flatnonzero(run)[np.cumsum(run) - 1]]
    escaping = slashes[(slashes - first) % 2 == 0] + 1
    return quotes[~np.isin(quotes, escaping)]


def string_end(text: bytes) -> int | None:
    """Just behind the string that `text` begins with; None where it goes on behind the text."""
    match = _FIRST_STRING.match(text)
    return match.end() if match else None


def last_border(text: bytes | bytearray, start: int, window: int) -> tuple[int, int] | None:
    """The last `}` `,` `{` behind `start` within the last `window` bytes: the end of one object and
    the start of the next.

    It is a guess, as the same bytes may stand inside an element; only decoding what is before
    proves it.
    """
    for size in (min(_NEAR, window), window):
        last = None
        for match in _BORDER.finditer(text, max(len(text) - size, start)):
            last = match
        if last is not None:
            return last.start() + 1, last.end()
    return None


def pieces_at_borders(text: bytes) -> list[bytes]:
    """`text` cut at everything that looks like a border between objects: the last resort where
    quotes do not match.
    """
    cuts = [match.end() for match in _BORDER.finditer(text)]
    starts = [0, *cuts]
    return [text[a:b].rstrip(b", \t\r\n") for a, b in zip(starts, [*cuts, len(text)], strict=True)]


def skip_gap(text: bytes | bytearray, start: int = 0) -> int:
    """The position of the next element: behind white space and commas."""
    match = _GAP.match(text, start)
    return match.end() if match else start


def repair(text: bytes) -> bytes:
    """Almost-JSON that tracers write, made JSON: numbers that are not finite become null, bytes
    that are not UTF-8, control characters and unknown escapes inside strings are replaced.

    Other text is returned as it is.
    """
    text = text.decode("utf-8", "replace").encode()
    strings = _STRINGS.findall(text)
    between = _STRINGS.split(text)
    kept = [_repair_string(s) for s in strings]
    plain = [_NOT_FINITE.sub(b"null", part) for part in between]
    return b"".join(part for pair in zip(plain, [*kept, b""], strict=True) for part in pair)


def _repair_string(text: bytes) -> bytes:
    text = _ESCAPE.sub(lambda match: match[0] if len(match[0]) > 1 else b"\\\\", text)
    return _CONTROL.sub(lambda match: b"\\u%04x" % match[0][0], text)
