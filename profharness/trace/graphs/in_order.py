"""The longest match of two sequences in their order (longest common subsequence). Pure.

One bit per element of the second sequence and one long integer per element of the first: the
bit-parallel method of Hyyro (2004), which takes a fraction of a second for thousands of elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]


def longest_match(first: Sequence[int], second: Sequence[int]) -> I64:
    """For each element of the first sequence the position of its partner in the second, NULL for
    none. Partners are equal, stand in the same order in both, and are as many as can be.
    """
    partner = np.full(len(first), NULL, np.int64)
    shorter = min(len(first), len(second))
    head = 0
    while head < shorter and first[head] == second[head]:
        head += 1
    tail = 0
    while tail < shorter - head and first[-1 - tail] == second[-1 - tail]:
        tail += 1
    partner[:head] = np.arange(head)
    if tail:
        partner[-tail:] = np.arange(len(second) - tail, len(second))
    inner = slice(head, len(first) - tail), slice(head, len(second) - tail)
    for row, column in _pairs(first[inner[0]], second[inner[1]]):
        partner[head + row] = head + column
    return partner


def _pairs(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    """Positions of partners, the last first."""
    rows = _rows(first, second)
    row, column = len(first), len(second)
    pairs = []
    while row and column:
        if rows[row - 1] >> (column - 1) & 1:
            column -= 1
            continue
        row -= 1
        if not row or rows[row - 1] >> (column - 1) & 1:
            column -= 1
            pairs.append((row, column))
    return pairs


def _rows(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Per element of the first sequence, all of it up to there against the second: bit j is 0 where
    the length of the longest match grows with the second's element j.
    """
    places: dict[int, int] = {}
    for position, element in enumerate(second):
        places[element] = places.get(element, 0) | 1 << position
    every = (1 << len(second)) - 1
    rows, bits = [], every
    for element in first:
        taken = bits & places.get(element, 0)
        bits = ((bits + taken) | (bits - taken)) & every
        rows.append(bits)
    return rows
