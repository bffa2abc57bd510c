"""Interned names of one packet sequence: text is written once, records hold small numbers.

Numbers start at 1 (0 means unset in the format) and go to the most frequent entry first, because
numbers below 128 take one byte.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.trace.model import I64, Strings
from profharness.writers.groups import Ints, group_rows
from profharness.writers.protobuf import wire

_UNNAMED = "(no name recorded)"


@dataclass(frozen=True)
class Interned:
    """`iid` per row; `entries` are encoded InternedData fields."""

    iid: I64
    entries: tuple[bytes, ...]


def by_frequency(sizes: I64) -> I64:
    """Numbers from 1 for each group, the largest group first."""
    numbers = np.empty(len(sizes), np.int64)
    numbers[np.argsort(-sizes, kind="stable")] = np.arange(1, len(sizes) + 1)
    return numbers


def entry(number: int, iid: int, name: str) -> bytes:
    """An interned entry of the common shape: iid = 1, text or bytes = 2."""
    return wire.blob(number, wire.integer(1, iid) + wire.text(2, name))


def intern_codes(number: int, codes: Ints, strings: Strings) -> Interned:
    """Entries for the texts of `codes`; NULL gets a placeholder, so that no record is without a
    name.
    """
    groups = group_rows(codes)
    numbers = by_frequency(groups.sizes())
    texts = [strings[int(code)] or _UNNAMED for code in codes[groups.first]]
    order = np.argsort(numbers)
    return Interned(
        numbers[groups.of], tuple(entry(number, int(numbers[i]), texts[i]) for i in order)
    )
