"""Values that readers do not expect: at and beyond the borders of numbers, texts of every evil, and
things of another kind.
"""

from __future__ import annotations

import random

NUMBERS = (
    "0", "-0", "-1", "1", "127", "255", "32768", "2147483647", "2147483648", "-2147483649",
    "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
    "999999999999", "1" + 30 * "0", "1" + 400 * "0", "9" * 5000, "0.1", "1.5e300", "-1.7e308",
    "1e309", "-1e309", "5e-324", "NaN", "Infinity", "-Infinity", "1e-400", "00012", "0x10", "1_000",
)  # fmt: skip
"""Number texts, from harmless to beyond every type. Not all of them are numbers to every parser."""

TEXTS = (
    "", " ", "0", "-1", "nan", "inf", "null", "None", "abc", "\0", "a\0b", "\n", '"', "'", ",", "\t",
    "\x1b[31mred", "\x1b]0;title\x07", "\u202eevil", "\ufeff", "\U0001f4a5", "é" * 100, "=1+1",
    "../../../../etc/passwd", "/dev/zero", "%s%n%x", "{0.__class__}", "<script>alert(1)</script>",
    "A" * 70_000, "[" * 3000, "{" * 3000, "(" * 3000, "<" * 3000, "1" * 5000, "0000-00-00",
    "999999-99-99T99:99:99", "Cijk_MT" + "9" * 40 + "x" + "9" * 40 + "x16", "float[9999999999999]",
)  # fmt: skip

BYTES = (
    b"\xff",
    b"\xfe\xff",
    b"\x80",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\0",
    b"\xf4\x90\x80\x80",
    b"\r",
)
"""Bytes that are no UTF-8, and two that are no text."""


def number(rng: random.Random) -> str:
    """A number's text, extreme or random."""
    if rng.random() < 0.2:
        return str(rng.choice((-1, 1)) * rng.randrange(1 << rng.randrange(1, 70)))
    return rng.choice(NUMBERS)


def text(rng: random.Random) -> str:
    return rng.choice(TEXTS)


def cell(rng: random.Random) -> str:
    """What may stand in a cell of a table."""
    return number(rng) if rng.random() < 0.6 else text(rng)
