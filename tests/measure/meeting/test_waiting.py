"""How often a wait looks, when it ends, and what it says of it, on a clock that sleep alone moves."""

from __future__ import annotations

import time

import pytest

from profharness.measure.meeting import waiting
from profharness.measure.meeting.waiting import Patience, begin_limit_s, end_limit_s


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of all sleeps; time passes by them only."""
    found: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0 + sum(found))
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def test_looks_grow_rarer_and_what_came_is_seen_soon(slept: list[float]) -> None:
    patience, waited = Patience(120.0), []
    while patience.again():
        waited.append(patience.waited_s)
    assert sum(slept) == pytest.approx(120)
    assert slept[0] == waiting.FIRST_S
    assert max(slept) == waiting.MOST_S
    # whenever something comes, the next look is late by an eighth of the time waited, or 50 ms
    for before, pause in zip([0.0, *waited], slept, strict=False):
        assert pause <= max(waiting.FIRST_S, before / 8 + 1e-9)
    assert len(slept) < 6000 / 60  # of those every 20 ms


def test_the_limit_begins_anew_with_what_came(slept: list[float]) -> None:
    patience, came = Patience(10.0), 0
    while patience.again():
        if came < 3 and patience.waited_s > 9 * (came + 1):
            patience.progress()
            came += 1
    assert 37 <= sum(slept) <= 41


@pytest.mark.usefixtures("slept")
def test_a_long_wait_says_for_whom_how_long_and_what_ends_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    patience = Patience(120.0, lambda: "rank 0 waits for rank 7 of 8 to end")
    while patience.again():
        pass
    lines = capsys.readouterr().err.splitlines()
    # the first after 10 s, then each time that three times as long has passed
    said = [int(line.split(": ")[2].split(" s")[0]) for line in lines]
    assert said == pytest.approx([10, 30, 90], abs=2)
    for line in lines:
        assert line.startswith("profharness: rank 0 waits for rank 7 of 8 to end: ")
        assert line.endswith("s more at most (--rank-limit SECONDS sets it)")


@pytest.mark.usefixtures("slept")
def test_a_short_wait_and_one_of_a_rank_that_does_not_speak_say_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for patience in (Patience(9.0, lambda: "short"), Patience(500.0)):
        while patience.again():
            pass
    assert capsys.readouterr().err == ""


def test_limits_follow_what_is_written_and_what_was_asked_for() -> None:
    assert begin_limit_s(None) == 120
    assert begin_limit_s(900.0) == 900
    assert end_limit_s(None, 0, 0.0) == 60
    assert end_limit_s(None, 10**9, 5.0) == 60 + 200 + 5
    assert end_limit_s(30.0, 10**9, 5.0) == 30
