"""`--trace-ranks`: which texts name ranks, and which ranks there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import UsageError
from profharness.options import trace_ranks
from profharness.options.request import Request
from profharness.options.settings import from_mapping


def request(**settings: object) -> Request:
    return from_mapping(
        {"command": ("python", "t.py"), "profile": "rocprofv3", **settings}, "the command line"
    )


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("0", (0,)),
        ("0,3", (0, 3)),
        ("3,0,3", (0, 3)),
        ("0-3,8", (0, 1, 2, 3, 8)),
        (" 2 - 2 , 1", (1, 2)),
        ([4, 1], (4, 1)),
    ],
)
def test_ranks_and_ranges(text: object, ranks: tuple[int, ...]) -> None:
    assert request(trace_ranks=text, ranks=9).trace_ranks == ranks


@pytest.mark.parametrize("text", ["", "x", "1,", "3-1", "-1", "1-", "1..3", "0-99999999999"])
def test_other_texts_are_told(text: str) -> None:
    with pytest.raises(UsageError, match="--trace-ranks") as caught:
        request(trace_ranks=text)
    assert "0-3,8" in caught.value.hint


@given(st.sets(st.integers(0, 60), min_size=1, max_size=12))
def test_what_is_shown_names_the_same_ranks(ranks: set[int]) -> None:
    shown = trace_ranks.shown(sorted(ranks))
    assert trace_ranks.parse(shown, "--trace-ranks") == tuple(sorted(ranks))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"trace_ranks": "0,3", "ranks": 2}, "there is no rank 3 among 2 ranks"),
        ({"trace_ranks": "0", "profile": ""}, "add --profile"),
        ({"trace_ranks": "0", "profile": "telemetry"}, "add --profile"),
    ],
)
def test_ranks_that_nobody_can_trace(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        request(**settings)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_the_world_is_what_the_launcher_started() -> None:
    trace_ranks.check((0, 7), 8)
    trace_ranks.check((), 1)
    with pytest.raises(UsageError, match="no rank 8 among 8") as caught:
        trace_ranks.check((0, 8), 8)
    assert caught.value.hint == "name ranks from 0 to 7"
    with pytest.raises(UsageError, match="as one, rank 0") as caught:
        trace_ranks.check((1,), 1)
    assert "srun" in caught.value.hint
