from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.scans.search import LADDER, Rules, Seen, knee_of, next_level


def searched(
    throughput: Callable[[int], float],
    rules: Rules | None = None,
    *,
    sem: float = 0.0,
    kept: Callable[[int], bool] = lambda _: True,
    storm: Callable[[int], bool] = lambda _: False,
) -> list[Seen]:
    """All levels that a search of this server measures, in order."""
    seen: list[Seen] = []
    while (level := next_level(seen, rules or Rules())) is not None:
        assert level not in [one.level for one in seen], "a level is measured once"
        assert len(seen) < 40, "the search ends"
        seen.append(
            Seen(level, throughput(level), sem * throughput(level), kept(level), storm(level))
        )
    return seen


@given(knee=st.integers(1, 900), each=st.floats(0.1, 1e4))
def test_the_knee_of_a_sharp_server_is_found_within_5_percent(knee: int, each: float) -> None:
    seen = searched(lambda n: each * min(n, knee))
    assert max(one.throughput for one in seen) == pytest.approx(each * knee, rel=0.05)
    assert knee_of(seen) == pytest.approx(knee, rel=0.05)
    assert min(abs(one.level - knee) for one in seen) <= max(1, 0.05 * knee), (
        "it is measured at the knee"
    )
    # the ladder goes two steps beyond the knee, and no further
    assert max(one.level for one in seen) <= max(4, 8 * knee)


@given(half=st.floats(0.5, 100), sharp=st.floats(1, 8))
def test_a_smooth_server_is_left_where_clients_stop_paying(half: float, sharp: float) -> None:
    seen = searched(lambda n: 100 * n / (n**sharp + half**sharp) ** (1 / sharp))
    assert max(one.throughput for one in seen) >= 90
    assert len(seen) <= len(LADDER) + Rules().extra


def test_a_search_stops_in_a_storm_of_errors_and_looks_where_it_begins() -> None:
    seen = searched(lambda n: 10.0 * n, storm=lambda n: n >= 23)
    assert max(one.level for one in seen) == 32, (
        "no level beyond the first stormy one of the ladder"
    )
    fine, stormy = (
        [one.level for one in seen if not one.storm],
        [one.level for one in seen if one.storm],
    )
    assert min(stormy) - max(fine) <= 3


def test_a_storm_from_the_first_level_on_ends_the_search_at_once() -> None:
    assert [one.level for one in searched(lambda _: 0.0, storm=lambda _: True)] == [1]


@given(limit=st.integers(2, 600))
def test_the_highest_level_that_keeps_the_latency_limit_is_found(limit: int) -> None:
    seen = searched(lambda n: 10.0 * n, kept=lambda n: n <= limit)
    best = max(one.level for one in seen if one.kept)
    assert best <= limit
    assert limit - best <= max(1, 0.1 * limit + 1)


def test_noise_ends_the_ladder_no_earlier_than_the_knee() -> None:
    seen = searched(lambda n: float(min(n, 64)), sem=0.05)
    assert max(one.level for one in seen) >= 64


def test_the_asked_ladder_bounds_the_search() -> None:
    seen = searched(float, Rules(ladder=(2, 6, 10)))
    assert [one.level for one in seen][:3] == [2, 6, 10]
    assert all(2 <= one.level <= 10 for one in seen)
