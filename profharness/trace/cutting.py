"""Parts of a trace for a viewer: a stretch of time, some steps, some ranks; and what was left out. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace import select
from profharness.trace.clocks import TIME_COLUMNS
from profharness.trace.launches import join
from profharness.trace.model import I64, NULL, Requests, Table, Trace

Mask = npt.NDArray[np.bool_]
_STEP = re.compile(r"^(?:ProfilerStep#|profharness\.step:)(\d+)")
_FAR = np.iinfo(np.int64)


@dataclass(frozen=True)
class Cut:
    """What to keep: None is everything. Ends that are None are open.

    `window` is in ns after `origin_ns`. `steps` are numbers of steps, the second one not included; each process keeps
    its own steps, from the start of the first to the end of the last, and what was launched in them.
    """

    window: tuple[int | None, int | None] | None = None
    steps: tuple[int | None, int | None] | None = None
    ranks: frozenset[int] | None = None

    @property
    def is_all(self) -> bool:
        return self.window is None and self.steps is None and self.ranks is None

    def words(self) -> str:
        """What was asked for."""
        asked = []
        if self.window is not None:
            low, high = (None if end is None else f"{end / 1e9:g} s" for end in self.window)
            asked.append(f"the window {low or 'start'} to {high or 'end'}")
        if self.steps is not None:
            asked.append(f"steps {'' if self.steps[0] is None else self.steps[0]}:{'' if self.steps[1] is None else self.steps[1]}")
        if self.ranks is not None:
            asked.append(f"ranks {', '.join(str(rank) for rank in sorted(self.ranks))}")
        return " and ".join(asked)


def cut(trace: Trace, wanted: Cut, origin_ns: int) -> tuple[Trace, Counter[str]]:
    """The records that are wanted, whole, and how many of each table were left out.

    A record is inside if it starts inside; in steps, device work is where its launching call is.
    """
    before = {name: len(table) for name, table in trace.tables()}
    part = trace
    if wanted.ranks is not None:
        part = select.by_source(part, [source.rank in wanted.ranks for source in part.sources])
    if wanted.steps is not None:
        part = _steps(part, wanted.steps)
    if wanted.window is not None:
        low, high = wanted.window
        part = select.window(part, _FAR.min if low is None else origin_ns + low, _FAR.max if high is None else origin_ns + high)
    return part, Counter({name: before[name] - len(table) for name, table in part.tables() if before[name] > len(table)})


def first_ns(trace: Trace) -> int | None:
    """The earliest start of any record but telemetry; None without any."""
    starts = [int(_starts(table).min()) for name, table in trace.tables() if name in TIME_COLUMNS and name != "samples" and len(table)]
    return min(starts, default=None)


def step_numbers(trace: Trace) -> I64:
    """For each mark the number of the step that it is, NULL for other marks."""
    marks = trace.marks
    names, place = np.unique(marks.name, return_inverse=True)
    found = [_STEP.match(trace.strings[int(code)]) for code in names]
    numbers = np.array([NULL if match is None else int(match[1]) for match in found], np.int64)
    is_step = marks.kind == trace.strings.find("step")
    return np.where(is_step, numbers[place], NULL) if len(marks) else np.zeros(0, np.int64)


def _steps(trace: Trace, steps: tuple[int | None, int | None]) -> Trace:
    low, high = _step_windows(trace, steps)
    kept: dict[str, Mask] = {}
    for name, table in trace.tables():
        if name in TIME_COLUMNS:
            kept[name] = _inside(_starts(table), *_of_source(table, low, high))
    for name, records in (("kernels", trace.kernels), ("copies", trace.copies)):
        call = join(trace, records).call
        linked = call != NULL
        kept[name][linked] = kept["api"][call[linked]]
    kept["counters"] = trace.counters.kernel != NULL
    return select.rows(trace, kept)


def _step_windows(trace: Trace, steps: tuple[int | None, int | None]) -> tuple[I64, I64]:
    """Start and end of the wanted steps of each source, and (last) of all together; sources without steps have those of all."""
    numbers, marks = step_numbers(trace), trace.marks
    wanted = (numbers != NULL) & (numbers >= (0 if steps[0] is None else steps[0])) & (numbers < (_FAR.max if steps[1] is None else steps[1]))
    count = len(trace.sources)
    low, high = np.full(count + 1, _FAR.max), np.full(count + 1, _FAR.min)
    for place in (marks.source[wanted], np.full(int(wanted.sum()), count)):
        np.minimum.at(low, place, marks.start_ns[wanted])
        np.maximum.at(high, place, (marks.start_ns + marks.dur_ns)[wanted])
    stepping = np.zeros(count + 1, np.bool_)
    stepping[marks.source[numbers != NULL]] = True
    return np.where(stepping, low, low[count]), np.where(stepping, high, high[count])


def _of_source(table: Table, low: I64, high: I64) -> tuple[I64, I64]:
    source: npt.NDArray[np.int32] = table.source  # type: ignore[attr-defined]  # every timed table has a source
    return low[source], high[source]


def _inside(at: I64, low: I64, high: I64) -> Mask:
    inside: Mask = (at >= low) & (at < high)
    return inside


def _starts(table: Table) -> I64:
    if isinstance(table, Requests):
        return table.sent_ns
    start: I64 = getattr(table, "at_ns" if hasattr(table, "at_ns") else "start_ns")
    return start
