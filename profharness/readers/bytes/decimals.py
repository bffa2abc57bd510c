"""Decimal microseconds, as text, to integer nanoseconds: exact, vectorised, never through floating
point.

Chrome's trace format counts in microseconds; with the time of day in them a float64 keeps a quarter
of one at best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context
from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.limits import decimal_of

_COMMA, _DOT, _ZERO = ord(","), ord("."), ord("0")
_LARGEST_US = (2**63 - 1) // 1000
_DIGITS = (
    16  # an integer part of up to 16 digits stays exact in int64 and is checked against _LARGEST_US
)
_DIGIT_TEXT = b"0123456789"
_TO_ZERO = bytes.maketrans(_DIGIT_TEXT, b"0" * len(_DIGIT_TEXT))
_TOO_LONG = b"0" * _DIGITS + b"."  # fewer digits than these fit int64 in nanoseconds
_HALF = (
    9  # digits: exact in float64, and in single precision a BLAS may be told to compute with less
)
_NARROWEST, _WIDEST = 6, 20  # "0.000," to 18 digits: more may not fit int64
_EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN)
_IS_DIGIT = np.zeros(256, np.bool_)
_IS_DIGIT[_ZERO : _ZERO + 10] = True
_IS_PLAIN = _IS_DIGIT.copy()
_IS_PLAIN[[_COMMA, _DOT]] = True


@dataclass(frozen=True, eq=False)
class Times:
    """`ns[i]` is exact where `valid[i]`, else 0. `rounded` counts values with digits below a
    nanosecond (half to even).
    """

    ns: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]
    rounded: int


def microseconds(texts: Sequence[bytes | msgspec.Raw]) -> Times:
    """Nanoseconds of JSON numbers in microseconds (strings that hold one as well). Anything else,
    or more than int64 holds, is invalid.
    """
    joined = b",".join(texts)
    if texts and (aligned := _of_equal_width(joined, len(texts))) is not None:
        return Times(aligned, np.ones(len(texts), np.bool_), 0)
    if texts and _is_uniform(joined, len(texts)):
        # all have three digits behind the point: without it they count nanoseconds
        ns = np.fromstring(joined.translate(None, b".").decode(), np.int64, sep=",")
        return Times(ns, np.ones(len(ns), np.bool_), 0)
    text = np.frombuffer(joined + b",", np.uint8)
    ends = np.flatnonzero(text == _COMMA)
    if len(ends) != len(texts):
        return _each(texts, np.zeros(len(texts), np.int64), np.arange(len(texts)))
    points = np.flatnonzero(text == _DOT)
    starts = np.concatenate(([0], ends[:-1] + 1))
    first = np.searchsorted(points, starts)
    following = np.append(points, len(text))[first]
    point = np.minimum(following, ends)
    digits = text.astype(np.int64) - _ZERO
    whole = _whole_numbers(digits, starts, point)
    fraction = np.zeros(len(ends), np.int64)
    for place in range(3):
        at = point + 1 + place
        fraction += np.where(at < ends, digits.take(at, mode="clip"), 0) * 10 ** (2 - place)
    hard = (
        (np.searchsorted(points, ends) - first > 1)
        | (point == starts)
        | (point - starts > _DIGITS)
        | (ends - point > 4)
        | (whole >= _LARGEST_US)
    )
    hard[np.searchsorted(ends, np.flatnonzero(~_IS_PLAIN[text]))] = True
    return _each(texts, np.where(hard, 0, whole * 1000 + fraction), np.flatnonzero(hard))


def _of_equal_width(joined: bytes, count: int) -> npt.NDArray[np.int64] | None:
    """Nanoseconds of plain digits with exactly three behind a point, all numbers of one width, as
    neighbours' starts are; None for others.
    """
    text = joined + b","
    width = text.index(b",") + 1
    if len(text) != count * width or not _NARROWEST <= width <= _WIDEST:
        return None
    digits = np.frombuffer(text, np.uint8) - np.uint8(_ZERO)
    if np.count_nonzero(digits > 9) != 2 * count:
        return None
    rows = digits.reshape(count, width)
    if (
        not (rows[:, -1] == (_COMMA - _ZERO) % 256).all()
        or not (rows[:, -5] == (_DOT - _ZERO) % 256).all()
    ):
        return None
    sums = (rows.astype(np.float64) @ _place_values(width)).astype(np.int64)
    ns: npt.NDArray[np.int64] = sums[:, 0] + sums[:, 1] * 10**_HALF
    return ns


@cache
def _place_values(width: int) -> npt.NDArray[np.float64]:
    """(width, 2): what a digit at each place of `123.456,` adds to the lowest nine digits of the
    nanoseconds, and to the others.
    """
    values = np.zeros((width, 2))
    for power, place in enumerate((*range(width - 2, width - 5, -1), *range(width - 6, -1, -1))):
        values[place, power // _HALF] = 10 ** (power % _HALF)
    return values


def _is_uniform(joined: bytes, count: int) -> bool:
    """Whether all numbers are plain digits with exactly three behind a point, few enough to fit
    int64; by searches alone.
    """
    if joined.translate(None, _DIGIT_TEXT) != b".," * (count - 1) + b".":
        return False
    shape = joined.translate(_TO_ZERO)
    return (
        shape.count(b"0.000,") == count - 1 and shape.endswith(b"0.000") and _TOO_LONG not in shape
    )


def _whole_numbers(
    digits: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The digits in [start, end) of each number, up to `_DIGITS` of them."""
    whole = np.zeros(len(ends), np.int64)
    for place in range(min(int((ends - starts).max(initial=0)), _DIGITS)):
        at = ends - 1 - place
        whole += np.where(at >= starts, digits.take(at, mode="clip"), 0) * 10**place
    return whole


def _each(
    texts: Sequence[bytes | msgspec.Raw], ns: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> Times:
    """Fill in the rows that need exact arithmetic: exponents, signs, strings, digits below a
    nanosecond.
    """
    valid = np.ones(len(ns), np.bool_)
    rounded = 0
    for row in rows.tolist():
        exact = exact_ns(bytes(texts[row]))
        valid[row] = exact is not None
        if exact is not None:
            ns[row], inexact = exact
            rounded += inexact
    return Times(ns, valid, rounded)


def exact_ns(text: bytes) -> tuple[int, bool] | None:
    """Nanoseconds of one decimal number of microseconds, and whether digits were rounded off; None
    if it is none or beyond int64.
    """
    try:
        value = decimal_of(text.strip(b'" ').decode("ascii"))
    except ValueError:  # UnicodeDecodeError is one
        return None
    if not value.is_finite():
        return None
    if not value or value.adjusted() < -_DIGITS:
        return 0, bool(value)
    if value.adjusted() > _DIGITS:
        return None
    scaled = value.scaleb(3, _EXACT)
    nearest = scaled.to_integral_value(ROUND_HALF_EVEN, _EXACT)
    if abs(nearest) >= 2**63:
        return None
    return int(nearest), nearest != scaled
