"""Which sample speaks for which gap between operators, on generated threads whose lines are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.host.gaps import pieces, shared
from profharness.stats import intervals
from tests.analysis.host.sampled_threads import MS, SampledThread
from tests.analysis.host.test_account import told, window

SLEEPS = "ddp.py:7"


@pytest.mark.parametrize("sleep_ms", [10, 30])
@pytest.mark.parametrize("seed", range(3))
def test_a_line_that_sleeps_gets_its_time_and_not_the_next_one(sleep_ms: int, seed: int) -> None:
    """Forty steps of a sleep and eight operators with a little Python between, looked at every 13
    to 39 ms: seldom more than once a sleep.
    """
    thread = SampledThread(seed)
    for _ in range(40):
        thread.line("ddp.py", 7, sleep_ms * MS)
        for number in range(8):
            thread.operator(f"aten::op{number}", 2 * MS)
            thread.line("ddp.py", 8, MS // 5)
    found = told(window(thread.trace(every_ns=26 * MS), 0, thread.now))
    ms = {name: ns / 40 / MS for (_, _, name), ns in found.items()}
    assert ms[SLEEPS] == pytest.approx(sleep_ms, rel=0.10)
    assert ms["ddp.py:8"] == pytest.approx(8 * 0.2, abs=0.1 * sleep_ms + 0.2)


def test_of_two_lines_in_one_gap_each_gets_about_its_own() -> None:
    thread = SampledThread(5)
    for _ in range(60):
        thread.line("train.py", 3, 20 * MS)
        thread.line("train.py", 4, 40 * MS)
        thread.operator("aten::mm", 30 * MS)
    found = told(window(thread.trace(every_ns=10 * MS), 0, thread.now))
    assert found["", "python", "train.py:3"] / 60 / MS == pytest.approx(20, rel=0.15)
    assert found["", "python", "train.py:4"] / 60 / MS == pytest.approx(40, rel=0.15)


def test_a_sample_that_the_thread_held_up_speaks_for_its_delay() -> None:
    """Line 2 holds the interpreter from 30 on; the sampler wanted to look at 40 and did at 90."""
    at, late = np.array([20, 90]), np.array([0, 50])
    found = pieces(at, at[:1], late, intervals.of([0], [100]))
    assert {(int(one), int(ns)) for one, ns in zip(found.sample, found.ns, strict=True)} == {
        (0, 10),
        (1, 60),
    }


def test_a_thread_without_any_gap_leaves_samples_nothing_to_tell() -> None:
    found = pieces(np.array([20, 90]), np.array([20]), np.array([0, 0]), intervals.EMPTY)
    assert not len(found.sample)


@given(
    st.lists(st.integers(0, 500), min_size=2, max_size=20, unique=True),
    st.lists(st.integers(0, 500), min_size=2, max_size=30, unique=True),
    st.integers(0, 40),
)
def test_the_pieces_are_all_of_the_gaps_that_samples_follow(
    at: list[int], edges: list[int], late: int
) -> None:
    moments, edges = np.array(sorted(at)), sorted(edges)
    held = intervals.merge(intervals.of(edges[: len(edges) // 2 * 2 : 2], edges[1::2]))
    found = pieces(moments, moments[:-1], np.full(len(moments), late), held)
    known = intervals.window(int(moments[0]), int(moments[-1]))
    assert int(found.ns.sum()) == intervals.intersect(held, known).total
    assert (found.ns > 0).all()


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**12), min_size=1, max_size=9))
def test_shares_sum_to_the_whole(ns: int, weights: list[int]) -> None:
    parts = shared(ns, weights)
    assert sum(parts) == ns
    exact = [ns * weight / sum(weights) for weight in weights]
    assert all(abs(part - of) < 1 + 1e-6 * of for part, of in zip(parts, exact, strict=True))
