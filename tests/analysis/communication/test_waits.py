"""Who waits for whom in a collective, set against the words of its definition."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.communication.waits import NOTICEABLE_NS, awaited

RANKS = st.integers(1, 6).flatmap(
    lambda ranks: st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=ranks, max_size=ranks
    )
)


def by_words(start: list[int], end: list[int]) -> list[int]:
    """Of a call in which not all meet: the first of the ranks that came last, of those that had
    come and were done when it was done, if that came later.
    """
    found = []
    for own, (came, done) in enumerate(zip(start, end, strict=True)):
        if done == min(end) and done <= max(start):
            found.append(own)
            continue
        given = [
            (-other, column)
            for column, (other, left) in enumerate(zip(start, end, strict=True))
            if other <= done and left <= done + NOTICEABLE_NS and other > came
        ]
        found.append(min(given)[1] if given else own)
    return found


@given(RANKS, st.sampled_from([1, NOTICEABLE_NS // 3, NOTICEABLE_NS]))
def test_a_rank_waits_for_the_last_that_gave_it_something(ranks, scale):
    start = [scale * begun for begun, _ in ranks]
    end = [begun + scale * dur for begun, (_, dur) in zip(start, ranks, strict=True)]
    found = awaited(np.array([start]), np.array([end]), np.array([False]))
    assert found[0].tolist() == by_words(start, end)


@pytest.mark.alone
@pytest.mark.slow
def test_the_time_does_not_grow_with_the_square_of_the_ranks():
    def cost(ranks: int) -> float:
        rng = np.random.default_rng(1)
        start = rng.integers(0, 10**6, (1000, ranks))
        end = start + rng.integers(0, 10**6, (1000, ranks))
        begun = time.process_time()
        awaited(start, end, np.zeros(1000, bool))
        return time.process_time() - begun

    few, many = min(cost(64) for _ in range(3)), min(cost(512) for _ in range(3))
    assert many < 24 * max(few, 0.01)  # 8 times the ranks; the square would be 64
