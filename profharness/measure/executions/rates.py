"""What one execution of a command came to: its rate, from what the script marked, from its output,
or from its wall time (docs/metrics.md#axes). Pure.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.executions.script_marks import StepMarks
from profharness.stats.slow_start import slow_steps

_NS = 1e9


@dataclass(frozen=True)
class Said:
    """What an execution left to read: the steps of each of its processes, its named figures, and
    its output.
    """

    steps: tuple[StepMarks, ...]
    values: dict[str, float]
    output: str


class NoRateError(Exception):
    """The execution ended well, and gives no rate; the message says why."""


def rated(said: Said, wall_ns: int, rate_regex: str = "") -> ExecutionRecord:
    """The record of an execution that exited 0. The rate is what `rate_regex` finds, where there is
    one; else it comes from the marked steps, else from the wall time. Raises NoRateError.
    """
    if rate_regex:
        figures = found(rate_regex, said.output)
        return ExecutionRecord(
            wall_ns=wall_ns,
            rate=statistics.median(figures),
            unit="figures",
            figures=len(figures),
            values=said.values,
        )
    if not said.steps:
        return ExecutionRecord(
            wall_ns=wall_ns, rate=_NS / max(wall_ns, 1), unit="runs", values=said.values
        )
    counted = all(one is not None for marks in said.steps for one in marks.items)
    parts = [_of_process(marks, wall_ns, counted=counted) for marks in said.steps]
    one_clock = len({marks.host for marks in said.steps}) == 1
    together = _together(parts) if one_clock else None
    return ExecutionRecord(
        wall_ns=wall_ns,
        rate=sum(part.rate for part in parts) if together is None else together,
        unit="items" if counted else "steps",
        steps=sum(len(marks.ends_ns) for marks in said.steps),
        dropped=sum(part.dropped for part in parts),
        items=sum(part.items for part in parts),
        values=said.values,
    )


@dataclass(frozen=True)
class _Part:
    """One process: `ends_ns` are the beginning of its first step that counts and the ends of all of
    these, `done` the items of each; both empty where it is rated by its wall time.
    """

    rate: float
    dropped: int
    items: int
    ends_ns: tuple[int, ...] = ()
    done: tuple[int, ...] = ()

    def within(self, begin_ns: int, end_ns: int) -> float:
        """Its items in a window, of a step that lies there partly its share."""
        return sum(
            items * max(min(end, end_ns) - max(before, begin_ns), 0) / max(end - before, 1)
            for (before, end), items in zip(pairwise(self.ends_ns), self.done, strict=True)
        )


def _of_process(marks: StepMarks, wall_ns: int, *, counted: bool) -> _Part:
    """A step lasts from the end of the one before it, so that the first has no length and is left
    out, with the slow ones after it. A process that marked one step is rated by its wall time.
    """
    items = [(one or 0) if counted else 1 for one in marks.items]
    durations = [end - before for before, end in pairwise(marks.ends_ns)]
    if not durations:
        return _Part(sum(items) / max(wall_ns, 1) * _NS, 0, sum(items))
    slow = slow_steps(durations)
    lasted = sum(durations[slow:])
    done = tuple(items[slow + 1 :])
    rate = sum(done) / max(lasted, 1) * _NS
    return _Part(rate, slow + 1, sum(done), marks.ends_ns[slow:], done)


def _together(parts: Sequence[_Part]) -> float | None:
    """The items of several processes over the window in which all of them made steps that count;
    None where there is none, as of processes that run one after another.
    """
    if len(parts) < 2 or not all(part.done for part in parts):
        return None
    begin_ns = max(part.ends_ns[0] for part in parts)
    end_ns = min(part.ends_ns[-1] for part in parts)
    if end_ns <= begin_ns:
        return None
    return sum(part.within(begin_ns, end_ns) for part in parts) / (end_ns - begin_ns) * _NS


def steady_spans(steps: Sequence[StepMarks]) -> tuple[tuple[int, int, int, bool], ...]:
    """The steps of the first process as (start, duration, items, whether it counts), times in ns of
    CLOCK_MONOTONIC.
    """
    if not steps or len(steps[0].ends_ns) < 2:
        return ()
    ends, items = steps[0].ends_ns, steps[0].items
    durations = [end - before for before, end in pairwise(ends)]
    slow = slow_steps(durations)
    return tuple(
        (ends[at], duration, items[at + 1] or 1, at >= slow)
        for at, duration in enumerate(durations)
        if duration > 0
    )


def found(rate_regex: str, output: str) -> list[float]:
    """The positive numbers that the expression finds. Raises NoRateError for none, and for a text
    that is no number.
    """
    texts = [match[1] or "" for match in re.finditer(rate_regex, output)]
    if not texts:
        raise NoRateError(f"its output has nothing that --rate-regex {rate_regex!r} finds")
    figures = []
    for text in texts:
        try:
            figures.append(float(text))
        except ValueError:
            raise NoRateError(f"--rate-regex found {text[:40]!r}, which is no number") from None
    good = [figure for figure in figures if math.isfinite(figure) and figure > 0]
    if not good:
        raise NoRateError("--rate-regex found no rate above 0")
    return good
