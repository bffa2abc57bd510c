"""Lanes and event order: properties that make a viewer's stack give back every span."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profharness.writers.groups import group_rows
from profharness.writers.lanes import flat_lanes, nested_lanes, order_events, stack_lanes

SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 8)), max_size=25)


def columns(spans: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    group, start, dur = (np.asarray([s[i] for s in spans], np.int64) for i in range(3))
    return group, start, dur


def replayed(spans: list[tuple[int, int, int]], lanes: np.ndarray) -> Counter[tuple[int, int, int]]:
    """What a viewer shows: one stack per group and lane, ends close the innermost."""
    events = order_events(*columns(spans))
    stacks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    shown: Counter[tuple[int, int, int]] = Counter()
    latest: dict[int, int] = {}
    for span, begin in zip(events.span.tolist(), events.begin.tolist(), strict=True):
        group, start, dur = spans[span]
        now = start if begin else start + dur
        assert latest.get(group, 0) <= now
        latest[group] = now
        stack = stacks[group, int(lanes[span])]
        if begin:
            stack.append((start, span))
        else:
            opened, _ = stack.pop()
            shown[group, opened, now - opened] += 1
    assert not any(stacks.values())
    return shown


@given(SPANS)
def test_flat_lanes_hold_no_overlap_and_are_as_few_as_possible(
    spans: list[tuple[int, int, int]],
) -> None:
    lanes = flat_lanes(order_events(*columns(spans)))
    assert replayed(spans, lanes) == Counter(spans)
    by_lane = defaultdict(list)
    for (group, start, dur), lane in zip(spans, lanes.tolist(), strict=True):
        by_lane[group, lane].append((start, start + dur))
    for rows in by_lane.values():
        for a in rows:
            assert sum(a[0] < b[1] and b[0] < a[1] for b in rows if b is not a) == 0
    for group in {s[0] for s in spans}:
        mine = [(s, s + d) for g, s, d in spans if g == group]
        # at its start a span is open beside the others; an empty one only beside those that it lies
        # strictly inside
        deepest = max(
            sum(s < at < e for s, e in mine) + 1 if at == end else sum(s <= at < e for s, e in mine)
            for at, end in mine
        )
        assert len({lane for g, lane in by_lane if g == group}) == deepest


@given(SPANS)
def test_nested_lanes_replay_every_span(spans: list[tuple[int, int, int]]) -> None:
    group, start, dur = columns(spans)
    assert replayed(spans, nested_lanes(order_events(group, start, dur), start, dur)) == Counter(
        spans
    )


@given(SPANS)
def test_nested_lanes_use_one_lane_where_nothing_crosses(spans: list[tuple[int, int, int]]) -> None:
    group, start, dur = columns(spans)
    lanes = nested_lanes(order_events(group, start, dur), start, dur)
    for number in {s[0] for s in spans}:
        mine = [(s, s + d) for g, s, d in spans if g == number]
        if not any(a[0] < b[0] < a[1] < b[1] for a in mine for b in mine):
            assert set(lanes[group == number].tolist()) <= {0}


def test_calls_inside_ops_stay_on_their_thread() -> None:
    start, dur = np.asarray([0, 10, 12, 30]), np.asarray([100, 50, 5, 10])
    assert nested_lanes(order_events(np.zeros(4, int), start, dur), start, dur).tolist() == [
        0,
        0,
        0,
        0,
    ]


def test_a_child_that_ends_one_ns_late_moves_aside() -> None:
    start, dur = np.asarray([0, 10, 20]), np.asarray([50, 41, 5])
    assert nested_lanes(order_events(np.zeros(3, int), start, dur), start, dur).tolist() == [
        0,
        1,
        0,
    ]


@given(SPANS)
def test_a_span_takes_the_first_lane_on_which_it_nests_or_is_free(
    spans: list[tuple[int, int, int]],
) -> None:
    group, start, dur = columns(spans)
    events = order_events(group, start, dur)
    lanes = nested_lanes(events, start, dur)
    stacks: dict[tuple[int, int], list[int]] = {}
    for row in events.span[events.begin].tolist():
        first, end = int(start[row]), int(start[row] + dur[row])
        for lane in range(int(lanes[row]) + 1):
            stack = stacks.setdefault((int(group[row]), lane), [])
            while stack and stack[-1] <= first:
                stack.pop()
            taken = not stack or stack[-1] >= end
            assert taken == (lane == lanes[row])
        stack.append(end)


class _Time(int):
    """Counts how often ends are compared with other times."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        _Time.compared += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        _Time.compared += 1
        return int(self) > int(other)

    def __le__(self, other: int) -> bool:
        _Time.compared += 1
        return int(self) <= int(other)

    def __ge__(self, other: int) -> bool:
        _Time.compared += 1
        return int(self) >= int(other)


def test_spans_that_all_cross_one_another_are_not_compared_with_each_lane() -> None:
    count = 1_000
    ends = [_Time(start + count) for start in range(count)]
    assert stack_lanes([1] * count, range(count), ends) == list(range(count))
    assert _Time.compared < 50 * count


def test_times_near_the_end_of_the_range_keep_their_order() -> None:
    start = np.asarray([0, 2**61, 2**61 + 5, 7])
    dur = np.asarray([2**61, 5, 3, 1])
    spans = [(g, int(s), int(d)) for g, s, d in zip([0, 0, 9, 9], start, dur, strict=True)]
    assert replayed(
        spans, nested_lanes(order_events(np.asarray([0, 0, 9, 9]), start, dur), start, dur)
    ) == Counter(spans)


@given(
    st.lists(
        st.tuples(st.integers(-1, 3), st.integers(-(2**62), 2**62), st.sampled_from([0, 2**40])),
        max_size=20,
    )
)
def test_groups_are_rows_that_agree(rows: list[tuple[int, int, int]]) -> None:
    if not rows:
        assert len(group_rows(np.zeros(0, np.int64))) == 0
        return
    groups = group_rows(*(np.asarray(column, np.int64) for column in zip(*rows, strict=True)))
    assert [rows[groups.first[g]] for g in groups.of] == rows
    assert len(groups) == len(set(rows))
    assert [rows[i] for i in groups.first] == sorted(set(rows))
    assert groups.sizes().sum() == len(rows)


@given(
    st.lists(st.tuples(*[st.sampled_from([0, 7, 12_288, 200_000])] * 3), min_size=1, max_size=40)
)
def test_groups_of_few_values_in_wide_ranges(rows: list[tuple[int, int, int]]) -> None:
    """As sizes in bytes are: the ranks of the values are what is combined."""
    groups = group_rows(*(np.asarray(column, np.int32) for column in zip(*rows, strict=True)))
    assert [rows[i] for i in groups.first] == sorted(set(rows))
    assert [rows[groups.first[g]] for g in groups.of] == rows
    assert groups.first.tolist() == [rows.index(row) for row in sorted(set(rows))]
