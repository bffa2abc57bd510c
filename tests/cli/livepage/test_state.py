"""What a page is told: what changed alone, and at the end everything before the server goes."""

from __future__ import annotations

import threading

import msgspec
import pytest

from profharness.analysis.live.records import LiveAnswer, LiveRun
from profharness.cli.livepage import state as states
from profharness.cli.livepage.state import LiveState, Told
from profharness.report.live.page import Moment


class Run:
    """A run whose state and clock the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.looks = 0
        self.run = LiveRun(title="a run", state="running", done=1, planned=4, now="torch batch 2")
        self.state = LiveState(self.look, lambda: self.now)

    def look(self) -> Moment:
        self.looks += 1
        return Moment(self.run)

    def ask(self, known: frozenset[str] = frozenset(), page: str = "") -> Told:
        told = self.state.told(known)
        self.state.heard(page, told)
        return told


def marks(told: Told) -> frozenset[str]:
    return frozenset(part.mark for part in told.parts.values())


def test_a_page_gets_the_parts_that_it_does_not_have() -> None:
    run = Run()
    first = run.ask()
    assert {"head", "opening", "curve", "points", "telemetry", "passes"} == set(first.parts)
    assert first.title == "1/4 a run"
    assert run.ask(marks(first)).parts == {}
    run.now += 2
    run.run = msgspec.structs.replace(run.run, now="torch batch 4", done=2)
    then = run.ask(marks(first))
    assert set(then.parts) == {"opening"}
    assert "torch batch 4" in then.parts["opening"].html
    assert then.title == "2/4 a run"


def test_many_pages_cost_one_look_a_second() -> None:
    run = Run()
    for _ in range(50):
        run.ask()
    assert run.looks == 1
    for _ in range(10):
        run.now += 1.0
        run.ask()
    assert run.looks <= 11


def test_looks_that_cost_much_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    spent = iter(range(1_000_000))
    monkeypatch.setattr(states.time, "thread_time", lambda: float(next(spent)))  # 1 s per look
    run.ask()
    run.now += 24.0
    run.ask()
    assert run.looks == 1
    run.now += 2.0
    run.ask()
    assert run.looks == 2


def test_the_server_waits_until_every_open_page_knows_the_end() -> None:
    run = Run()
    run.ask(page="aa")
    run.ask(page="bb")
    run.now += states.RECENT_S - 1
    run.ask(page="cc")
    run.ask(page="bb")
    run.now += 2  # aa was closed
    run.state.end(LiveAnswer(answer="Best is 7 items/s."))
    told = threading.Event()

    def wait() -> None:
        if run.state.wait_told(60):
            told.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    last = run.ask(page="bb")
    assert last.ended
    assert "Best is 7 items/s." in last.parts["opening"].html
    assert not told.is_set()
    assert run.ask(page="cc").ended
    waiting.join(60)
    assert told.is_set()


def test_an_answer_from_before_the_end_does_not_count_as_the_last_one() -> None:
    """It may be on its way while the run ends."""
    run = Run()
    before = run.state.told(frozenset())
    run.state.end(LiveAnswer())
    run.state.heard("aa", before)
    assert not run.state.wait_told(0)
    assert run.ask(page="aa").ended
    assert run.state.wait_told(0)


def test_nobody_is_waited_for_where_no_page_is_open() -> None:
    run = Run()
    run.state.end(LiveAnswer())
    assert run.state.wait_told(0)


def test_a_page_that_never_comes_again_is_waited_for_so_long_and_no_longer() -> None:
    run = Run()
    run.ask(page="aa")
    run.state.end(LiveAnswer())
    assert not run.state.wait_told(0)


def test_after_the_end_nothing_is_read_again() -> None:
    run = Run()
    run.ask()
    run.state.end(LiveAnswer())
    run.ask()
    looks = run.looks
    run.now += 3600
    assert run.ask().ended
    assert run.looks == looks
