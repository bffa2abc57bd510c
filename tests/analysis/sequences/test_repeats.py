"""Repeated words against a brute-force search on short rows of codes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.sequences.choice import chosen, saved
from profharness.analysis.sequences.repeats import Repeat, apart, repeats

ROWS = st.lists(st.integers(0, 2), max_size=24)
SHORTEST, LONGEST = 2, 64


def places(row: list[int], word: tuple[int, ...]) -> list[int]:
    size = len(word)
    return [at for at in range(len(row) - size + 1) if tuple(row[at : at + size]) == word]


def maximal(row: list[int]) -> set[tuple[int, ...]]:
    """All words of two codes or more that occur twice, and whose places have neither one code
    before nor one behind them in common.
    """
    found = set()
    for size in range(SHORTEST, len(row)):
        for start in range(len(row) - size + 1):
            word = tuple(row[start : start + size])
            at = places(row, word)
            before = {row[one - 1] if one else None for one in at}
            behind = {row[one + size] if one + size < len(row) else None for one in at}
            if len(at) > 1 and len(before) > 1 and len(behind) > 1:
                found.add(word)
    return found


def period(row: list[int], word: tuple[int, ...]) -> tuple[int, ...]:
    """The word, or its shortest part that follows itself, until none does or it is one code."""
    while True:
        at = places(row, word)
        nearest = min((b - a for a, b in pairwise(at)), default=len(word))
        if nearest >= len(word) or nearest < 2:
            return word
        word = word[:nearest]


def found_in(row: list[int], shortest: int = SHORTEST, longest: int = LONGEST) -> list[Repeat]:
    return repeats(np.array(row, np.int64), shortest, longest)


@given(ROWS)
@settings(deadline=None)
def test_they_are_the_maximal_repeats_of_a_brute_force_search(row):
    mine = {tuple(row[one.starts[0] :][: one.length]) for one in found_in(row)}
    theirs = {period(row, word) for word in maximal(row)}
    assert mine == {
        word for word in theirs if len(apart(np.array(places(row, word)), len(word))) > 1
    }


@given(ROWS, st.integers(2, 5))
@settings(deadline=None)
def test_places_hold_the_word_and_share_no_code(row, longest):
    for one in found_in(row, 2, longest):
        assert 2 <= one.length <= longest
        word = tuple(row[one.starts[0] :][: one.length])
        assert set(one.starts.tolist()) <= set(places(row, word))
        assert len(one.starts) > 1
        assert (np.diff(one.starts) >= one.length).all()


@given(ROWS, st.data())
@settings(deadline=None)
def test_chosen_ones_share_no_code_and_begin_with_the_best(row, data):
    saves = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(row), max_size=len(row))))
    every = found_in(row)
    taken = chosen(every, saves.astype(np.float64), 5)
    codes = [at + step for one in taken for at in one.starts for step in range(one.length)]
    assert len(codes) == len(set(codes))
    before = np.cumsum(saves)
    best = max((saved(one, before) for one in every), default=0)
    assert (saved(taken[0], before) if taken else 0) == best
    values = [saved(one, before) for one in taken]
    assert values == sorted(values, reverse=True)


def test_layers_of_a_stack_are_one_sequence_that_repeats():
    row = [9, *[1, 2, 3, 4] * 5, 8]
    (first, *_) = chosen(found_in(row), np.ones(len(row)), 1)
    assert (first.length, first.starts.tolist()) == (4, [1, 5, 9, 13, 17])


@pytest.mark.parametrize("row", [[], [1], [1, 2, 3], [-1, -2, -3]])
def test_nothing_repeats(row):
    assert found_in(row) == []


@pytest.mark.slow
def test_a_million_codes_take_seconds():
    import time

    rng = np.random.default_rng(0)
    step = rng.integers(0, 40, 1000)
    noisy = np.where(
        rng.random(1_000_000) < 0.01, rng.integers(0, 40, 1_000_000), np.tile(step, 1000)
    )
    start = time.process_time()
    assert repeats(noisy.astype(np.int64), 9, 512)
    assert time.process_time() - start < 20
