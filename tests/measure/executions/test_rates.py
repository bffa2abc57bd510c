"""What one execution came to, from what it left."""

from __future__ import annotations

import pytest

from profharness.measure.executions.rates import NoRateError, Said, rated, steady_spans
from profharness.rundir.executions.script_marks import StepMarks

MS = 1_000_000
WALL = 2_000 * MS


def marks(durations_ms: list[float], items: int | None = 10) -> StepMarks:
    ends = [5_000 * MS]
    for duration in durations_ms:
        ends.append(ends[-1] + round(duration * MS))
    return StepMarks(tuple(ends), (items,) * len(ends))


def said(*steps: StepMarks, output: str = "", **values: float) -> Said:
    return Said(steps, values, output)


def test_items_over_the_time_of_the_steps_that_count() -> None:
    record = rated(said(marks([50, 50, *[10] * 20]), accuracy=0.5), WALL)
    assert record.unit == "items"
    assert record.rate == pytest.approx(10 / 0.010)
    assert (record.steps, record.dropped, record.items) == (23, 3, 200)
    assert record.values == {"accuracy": 0.5}


def test_steps_without_items_are_counted() -> None:
    record = rated(said(marks([20] * 10, items=None)), WALL)
    assert (record.unit, record.rate) == ("steps", pytest.approx(50))


def test_processes_add_up() -> None:
    record = rated(said(marks([10] * 8), marks([20] * 8)), WALL)
    assert record.rate == pytest.approx(1000 + 500)


def shifted(steps: StepMarks, by_ms: float, host: str = "") -> StepMarks:
    return StepMarks(tuple(end + round(by_ms * MS) for end in steps.ends_ns), steps.items, host)


def test_processes_are_rated_while_all_of_them_work() -> None:
    """The first has 10 ms alone and then 20 ms beside the second: its first half does not count."""
    alone, beside = marks([10] * 20 + [20] * 10), shifted(marks([20] * 10), 200)
    assert rated(said(alone, beside), WALL).rate == pytest.approx(500 + 500, rel=0.01)
    # a step that lies in the window by half counts by half
    later = shifted(marks([20] * 10), 210)
    assert rated(said(alone, later), WALL).rate == pytest.approx(500 + 500, rel=0.01)


@pytest.mark.parametrize("host", ["", "other"])
def test_processes_without_a_common_window_add_up(host: str) -> None:
    """Of one after another, and of nodes, whose clocks have nothing in common."""
    second = shifted(marks([20] * 10), 200 if host else 500, host)
    record = rated(said(marks([10] * 20 + [20] * 10), second), WALL)
    assert record.rate == pytest.approx(300 / 0.4 + 500, rel=0.01)


def test_one_mark_is_rated_by_the_wall_time() -> None:
    assert rated(said(marks([], items=30)), WALL).rate == pytest.approx(15)


def test_without_marks_runs_per_second() -> None:
    record = rated(said(), WALL)
    assert (record.unit, record.rate) == ("runs", pytest.approx(0.5))


def test_the_median_of_what_the_expression_finds() -> None:
    output = "img/s: 10\nloss: 3\nimg/s: 40.5\nimg/s: 42\n"
    record = rated(said(marks([10] * 8), output=output), WALL, r"img/s: ([\d.]+)")
    assert (record.unit, record.rate, record.figures) == ("figures", 40.5, 3)


@pytest.mark.parametrize("output", ["", "img/s: 0\n", "img/s: .\n"])
def test_an_output_without_a_rate_is_a_failure(output: str) -> None:
    with pytest.raises(NoRateError):
        rated(said(output=output), WALL, r"img/s: ([\d.]+)")


def test_spans_say_which_steps_count() -> None:
    spans = steady_spans((marks([50, *[10] * 8]),))
    assert [span[3] for span in spans] == [False, *[True] * 8]
    assert spans[0][:3] == (5_000 * MS, 50 * MS, 10)
    assert steady_spans(()) == ()
