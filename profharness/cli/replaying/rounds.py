"""The rounds of a replay: the hottest calls once, and lists of tensors again with narrower types
where the chosen one contradicts the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from profharness.analysis.replay.beside import left_out, row_of, summed
from profharness.analysis.replay.hottest import HotCall
from profharness.analysis.replay.records import NotReplayed, ReplayRow, Replays
from profharness.analysis.replay.tasks import Tasks, narrower, tasks_of
from profharness.measure.replay.process import Answers, Asked, replay
from profharness.trace.calls.plan import CallTask, ReplayLine
from profharness.understand.replay.recorded import Recorded

_NO_ANSWER = "its process ended before it was reached"


@dataclass(frozen=True)
class Done:
    """The table, and for each of its rows what the worker answered and what it was asked."""

    table: Replays
    lines: tuple[ReplayLine, ...]
    tasks: tuple[CallTask, ...]


def replay_hottest(given: Recorded, top: int, allowed: tuple[str, ...], asked: Asked) -> Done:
    """Run the `top` hottest calls alone. Raises Unavailable without torch or the device."""
    calls = tuple(call for call in given.hot.calls[:top] if call.self_ns > 0)
    tasks = tasks_of(calls, allowed)
    answers = replay(tasks.tasks, asked) if tasks.tasks else Answers()

    def row(number: int, line: ReplayLine) -> ReplayRow:
        return row_of(calls[number], line, on_device=given.hot.on_device)

    rows = {number: row(number, line) for number, line in answers.results.items()}
    _again(tasks, row, (answers, rows), asked)
    return Done(
        _table(given, calls, (tasks, answers, rows), asked),
        tuple(answers.results[number] for number in sorted(rows)),
        tuple(task for task in tasks.tasks if task.id in rows),
    )


def _again(
    tasks: Tasks,
    row: Callable[[int, ReplayLine], ReplayRow],
    found: tuple[Answers, dict[int, ReplayRow]],
    asked: Asked,
) -> None:
    """Run doubtful calls with lists once more, with a narrower type, and keep what is nearer to
    the trace.
    """
    answers, rows = found
    second = [
        msgspec.structs.replace(task, list_type=kind)
        for task in tasks.tasks
        for kind in narrower(task)
        if task.id in rows and rows[task.id].reading == "doubtful"
    ]
    if not second:
        return
    for number, line in replay(second, asked).results.items():
        other = row(number, line)
        if _distance(other) < _distance(rows[number]):
            rows[number], answers.results[number] = other, line


def _distance(row: ReplayRow) -> float:
    value = row.ratio.value or 0.0
    return max(value, 1 / value) if value > 0 else float("inf")


def _table(
    given: Recorded,
    calls: tuple[HotCall, ...],
    found: tuple[Tasks, Answers, dict[int, ReplayRow]],
    asked: Asked,
) -> Replays:
    tasks, answers, rows = found
    ordered = tuple(rows[number] for number in sorted(rows))
    outermost = given.hot.outermost(tuple(calls[number] for number in sorted(rows)))
    told = [  # a call that took longer alone did other work, and says nothing of its own time
        (row, times)
        for row, times in zip(ordered, outermost, strict=True)
        if row.reading != "doubtful"
    ]
    return Replays(
        source=given.source,
        pass_name=given.pass_name,
        device=answers.hello.device,
        device_name=answers.hello.device_name,
        torch=answers.hello.torch,
        threads=answers.hello.threads,
        threads_by=asked.threads_by,
        seed=asked.seed,
        on_device=given.hot.on_device,
        total_ns=given.hot.total_ns,
        in_trace_ns=sum(int(times.sum()) for _, times in told),
        sum=summed(tuple(row for row, _ in told), tuple(times for _, times in told)),
        rows=ordered,
        not_replayed=tuple(_left(calls, rows, {**answers.refused, **tasks.refused})),
    )


def _left(
    calls: tuple[HotCall, ...], rows: dict[int, ReplayRow], reasons: dict[int, str]
) -> list[NotReplayed]:
    return [
        left_out(call, reasons.get(number, _NO_ANSWER))
        for number, call in enumerate(calls)
        if number not in rows
    ]
