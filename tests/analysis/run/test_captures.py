"""Captures that hold none of a command's steps, and ranks that captured different ones."""

from __future__ import annotations

import pytest

from profharness.analysis.run.captures import capture_findings
from profharness.trace.model import FIRST_STEP, STEPS
from tests.analysis.run.test_steps import Log, of_command


def held(first: int, count: int) -> tuple[tuple[str, str], ...]:
    return (FIRST_STEP, str(first)), (STEPS, str(count))


def said(log: Log) -> list[tuple[str, str]]:
    return [(item.id, item.message) for item in capture_findings(of_command(), log.trace())]


def test_captures_of_the_same_steps_are_nothing_to_say() -> None:
    log = Log()
    for pid in (7, 8):
        starts, ends = log.steps([1] * 30, pid=pid)
        log.window(starts[5], ends[24], pid=pid, details=held(5, 20))
    assert said(log) == []


def test_a_window_that_closed_before_the_steps_is_said() -> None:
    log = Log()
    starts, _ = log.steps([1] * 30)
    log.window(starts[0] - 6_000_000_000, starts[0] - 1_000_000)
    assert said(log) == [
        (
            "steps-not-captured",
            (
                "torch recorded 5.999 s of process 7, and none of its 30 steps: "
                "the figures are of what came before or after them"
            ),
        )
    ]


def test_a_short_script_whose_steps_were_all_recorded_has_nothing_to_say() -> None:
    log = Log()
    starts, ends = log.steps([1] * 3)
    log.window(starts[0] - 1_000_000, ends[2])
    assert said(log) == []


def test_ranks_that_captured_different_steps_are_named() -> None:
    log = Log()
    starts, ends = log.steps([1] * 30)
    log.window(starts[5], ends[24], details=held(5, 20))
    starts, ends = log.steps([1] * 30, pid=8)
    log.window(starts[0], ends[4], pid=8)
    assert said(log) == [
        (
            "captures-differ",
            (
                "the processes captured different steps with torch "
                "(process 7: 5 to 24; process 8: none)"
            ),
        )
    ]


@pytest.mark.parametrize("processes", [6])
def test_few_of_many_processes_are_listed(processes: int) -> None:
    log = Log()
    for pid in range(processes):
        starts, ends = log.steps([1] * 30, pid=pid)
        log.window(starts[pid], ends[24], pid=pid, details=held(pid, 25 - pid))
    ((kind, message),) = said(log)
    assert kind == "captures-differ"
    assert message.endswith("process 3: 3 to 24; and 2 more)")
