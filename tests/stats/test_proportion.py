from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.stats.proportion import wilson


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_that_of_another_program(counts: tuple[int, int]) -> None:
    from scipy.stats import binomtest  # half a second for each process that collects this file

    hits, samples = counts
    interval = binomtest(hits, samples).proportion_ci(0.95, method="wilson")
    assert wilson(hits, samples) == pytest.approx((interval.low, interval.high), abs=1e-12)
    low, high = wilson(hits, samples)
    assert 0 <= low <= hits / samples <= high <= 1


@pytest.mark.parametrize("counts", [(0, 0), (2, 1), (-1, 3)])
def test_what_is_no_share_is_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="is no share"):
        wilson(*counts)
