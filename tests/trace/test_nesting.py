from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace import nesting
from profharness.trace.columns.table import NULL
from profharness.trace.nesting import innermost, nest, threads
from tests.steps import calls_of


@st.composite
def call_trees(draw: st.DrawFn) -> list[tuple[int, int, int, int, int]]:
    """Properly nested spans with distinct borders: (start, duration, thread, depth, parent row)."""
    spans: list[list[int]] = []
    for thread in range(draw(st.integers(1, 3))):
        clock, stack = 0, []
        for opens in draw(st.lists(st.booleans(), max_size=30)):
            clock += draw(st.integers(1, 5))
            if opens:
                spans.append([clock, 0, thread, len(stack), stack[-1] if stack else NULL])
                stack.append(len(spans) - 1)
            elif stack:
                row = stack.pop()
                spans[row][1] = clock - spans[row][0]
        while stack:
            clock += 1
            row = stack.pop()
            spans[row][1] = clock - spans[row][0]
    return [tuple(s) for s in spans]  # type: ignore[misc]  # five numbers each


def columns(spans: list[tuple[int, int, int, int, int]]) -> list[np.ndarray]:
    return (
        [np.array(column, np.int64) for column in zip(*spans, strict=True)]
        if spans
        else [np.zeros(0, np.int64)] * 5
    )


@pytest.mark.slow
@given(call_trees(), st.randoms())
def test_depth_and_parent_of_call_trees(
    spans: list[tuple[int, int, int, int, int]], random: object
) -> None:
    start, dur, thread, depth, parent = columns(spans)
    shuffled = list(range(len(spans)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    order = np.array(shuffled, np.int64)
    found = nest(start[order], dur[order], thread[order])
    assert found.depth.tolist() == depth[order].tolist()
    back = np.where(found.parent == NULL, NULL, order[found.parent] if len(order) else NULL)
    assert back.tolist() == parent[order].tolist()


@given(call_trees(), st.lists(st.tuples(st.integers(0, 160), st.integers(0, 3)), max_size=20))
def test_innermost_agrees_with_a_search(
    spans: list[tuple[int, int, int, int, int]], asked: list[tuple[int, int]]
) -> None:
    start, dur, thread, depth, _ = columns(spans)
    at = np.array([a for a, _ in asked], np.int64)
    on = np.array([t for _, t in asked], np.int64)
    found = innermost(start, dur, thread, nest(start, dur, thread), (at, on))
    for (time, where), row in zip(asked, found.tolist(), strict=True):
        holding = [
            i
            for i in range(len(spans))
            if thread[i] == where and start[i] <= time <= start[i] + dur[i]
        ]
        if not holding:
            assert row == NULL
        else:
            assert row in holding
            assert (
                depth[row] == max(depth[i] for i in holding)
                or start[row] == time
                or start[row] + dur[row] == time
                or any(start[i] + dur[i] == time for i in holding)
            )


def test_spans_without_length_contain_nothing() -> None:
    start, dur = np.array([0, 5, 5, 5]), np.array([10, 0, 0, 3])
    found = nest(start, dur, np.zeros(4, np.int64))
    assert found.depth.tolist() == [0, 2, 2, 1]
    assert found.parent.tolist() == [NULL, 3, 3, 0]


def test_spans_that_touch_are_siblings() -> None:
    found = nest(np.array([0, 10]), np.array([10, 5]), np.zeros(2, np.int64))
    assert found.depth.tolist() == [0, 0]


def test_of_two_equal_spans_the_first_row_is_outside() -> None:
    found = nest(np.array([0, 0]), np.array([10, 10]), np.zeros(2, np.int64))
    assert found.depth.tolist() == [0, 1]
    assert found.parent.tolist() == [NULL, 0]


def test_overlap_without_nesting_gives_no_wrong_parent() -> None:
    found = nest(np.array([0, 5, 12]), np.array([10, 15, 2]), np.zeros(3, np.int64))
    assert found.depth.tolist() == [0, 1, 1]
    assert found.parent.tolist() == [NULL, 0, NULL]


def test_threads_need_both_numbers() -> None:
    assert len(set(threads(np.array([1, 1, 2, 2]), np.array([1, 2, 1, 2])).tolist())) == 4
    assert threads(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


@given(
    st.lists(
        st.tuples(st.integers(-5, 40), st.integers(0, 12), st.integers(-2, 4)),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.tuples(st.integers(-8, 60), st.integers(-3, 6)), max_size=20),
)
def test_ways_for_many_threads_and_levels_answer_the_same(
    spans: list[tuple[int, int, int]], asked: list[tuple[int, int]]
) -> None:
    start, dur, thread = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    at = (
        np.array([time for time, _ in asked], np.int64),
        np.array([on for _, on in asked], np.int64),
    )
    usual = nest(start, dur, thread)
    inside = innermost(start, dur, thread, usual, at)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nesting, "_FEW_THREADS", 0)
        for few_levels in (1 << 10, 0):
            patched.setattr(nesting, "_FEW_LEVELS", few_levels)
            found = nest(start, dur, thread)
            assert found.depth.tolist() == usual.depth.tolist()
            assert found.parent.tolist() == usual.parent.tolist()
            assert innermost(start, dur, thread, found, at).tolist() == inside.tolist()


@pytest.mark.parametrize("deep", [True, False])
def test_a_hundred_thousand_threads_or_levels_take_no_square_of_time(deep: bool) -> None:
    rows = np.arange(100_000)
    start = rows if deep else np.zeros_like(rows)
    dur = 400_000 - 2 * rows if deep else np.ones_like(rows)
    thread = np.zeros_like(rows) if deep else rows
    at = (start[-1:], thread[-1:])
    found = nest(start, dur, thread)
    row = innermost(start, dur, thread, found, at)
    # no step for each thread or level, each of which would look at all rows
    assert calls_of(lambda: innermost(start, dur, thread, nest(start, dur, thread), at)) < 2_000
    assert row.tolist() == [99_999]
    assert int(found.depth.max()) == (99_999 if deep else 0)
