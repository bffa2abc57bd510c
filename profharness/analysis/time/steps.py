"""Windows to measure in: trials, steps and the steady part of a run, from the trace's own marks
(docs/metrics.md#window).

A trace's whole length says little where a capture has a long lead-in; figures belong to trials
where the workload marked them, else to the steps after warm-up, else to all device work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.grouping import pack
from profharness.analysis.time.pieces import recorded
from profharness.analysis.time.start_up import begin_after_start_up
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Marks, Trace
from profharness.trace.parts.step_numbers import numbers_of

I64 = npt.NDArray[np.int64]
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, eq=False)
class Windows:
    """Where figures hold: a merged set of intervals and the words for it. `steps` counts the marks
    inside.
    """

    when: Intervals
    label: str
    steps: int = 0


@dataclass(frozen=True)
class Step:
    """One step or trial of one process. `items` and `number` are None where the mark does not
    say.
    """

    label: str
    start_ns: int
    end_ns: int
    items: int | None
    process: int
    """Steps of one process share this number."""
    point: str = ""
    number: int | None = None

    @property
    def dur_ns(self) -> int:
        return self.end_ns - self.start_ns


def steps(trace: Trace, point: str | None = None) -> list[Step]:
    """Trials where the trace (or the point) has any, else steps, by process and start.

    Where several sources mark them (a tool's file and the harness's own record of the trials),
    those of sources with device work count alone, else those of sources with operators: they share
    its clock. Kept with the marks: figures and findings all ask for it.
    """
    others = (trace.kernels, trace.copies, trace.ops, trace.strings)
    return trace.marks.kept((steps, point), others, lambda: _steps(trace, point)).copy()


def _steps(trace: Trace, point: str | None) -> list[Step]:
    marks = trace.marks
    for kind in ("trial", "step"):
        wanted = marks.kind == trace.strings.find(kind)
        if point is not None:
            wanted &= marks.point == trace.strings.find(point)
        rows = np.flatnonzero(wanted & (marks.kind != NULL))
        if len(rows):
            return _read(trace, _of_closest_sources(trace, rows))
    return []


def _of_closest_sources(trace: Trace, rows: I64) -> I64:
    source = trace.marks.source[rows]
    for tables in ((trace.kernels, trace.copies), (trace.ops,)):
        if not any(len(table) for table in tables):
            continue
        near = np.isin(source, np.concatenate([table.source for table in tables]))
        if near.any():
            return rows[near]
    return rows


def _read(trace: Trace, rows: I64) -> list[Step]:
    marks: Marks = trace.marks
    process = pack([marks.source[rows], marks.pid[rows]])
    order = np.lexsort((marks.start_ns[rows], process))
    numbers = numbers_of(trace, rows, ("trial", "step"))
    rows = rows[order]
    columns = [
        trace.strings.decode(marks.name[rows]),
        marks.start_ns[rows].tolist(),
        (marks.start_ns[rows] + marks.dur_ns[rows]).tolist(),
        _known(marks.items[rows]),
        process[order].tolist(),
        trace.strings.decode(marks.point[rows]),
        _known(numbers[order]),
    ]
    return [Step(*one) for one in zip(*columns, strict=True)]


def _known(column: I64) -> list[int | None]:
    return [None if value == NULL else value for value in column.tolist()]


def steady(of_process: list[Step]) -> list[Step]:
    """The steps of one process without its slow first ones.

    A leading step is dropped while it is longer than the median by more than five standard
    deviations (from the median absolute deviation) and by more than a tenth; at least two steps
    stay.
    """
    lengths = np.array([step.dur_ns for step in of_process], np.float64)
    if len(lengths) < 3:
        return of_process
    median = float(np.median(lengths))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(lengths - median)))
    limit = median + max(5 * spread, 0.1 * median)
    first = 0
    while first < len(lengths) - 2 and lengths[first] > limit:
        first += 1
    return of_process[first:]


def measured(trace: Trace, point: str | None = None) -> Windows:
    """The window that figures of the trace (or of one of its points) belong to.

    Trials: the time inside trials. Steps: from the first steady step to the last. For several
    processes the time that all of them have in common. Where marks and device work do not meet
    (their clocks are not aligned), and where there are no marks: all device work, or all operators.
    What lies between the files of processes that recorded in pieces belongs to no window.
    """
    marked = steps(trace, point)
    if marked:
        trials = bool(trace.marks.kind.size) and _are_trials(trace, point)
        window = _of_trials(marked) if trials else _of_steps(marked)
        if len(window.when) and _holds_work(trace, window.when):
            return window if trials else _recorded(trace, window)
    point_window = _of_point(trace, point)
    return point_window if point_window is not None else everything(trace)


def _recorded(trace: Trace, window: Windows) -> Windows:
    """Without the time between the files of processes that recorded in pieces. Trials lie inside of
    a recording, with what comes before their first operator.
    """
    held = recorded(trace)
    return window if held is None else replace(window, when=intervals.intersect(window.when, held))


def everything(trace: Trace) -> Windows:
    """From the first to the last device work, without start-up before it; of operators where there
    is none with times; empty for an empty trace.
    """
    for tables, words in (
        ((trace.kernels, trace.copies), "all device work"),
        ((trace.ops,), "all operators"),
        ((trace.api, trace.marks), "all host records"),
    ):
        starts = np.concatenate([table.start_ns for table in tables])
        ends = np.concatenate([table.start_ns + table.dur_ns for table in tables])
        known = starts != NULL
        if known.any():
            begin = begin_after_start_up(trace) if tables[0] is trace.kernels else None
            low = int(starts[known].min()) if begin is None else begin
            label = words if begin is None else f"{words} after start-up"
            return _recorded(trace, Windows(intervals.window(low, int(ends[known].max())), label))
    return Windows(intervals.EMPTY, "all device work" if len(trace.kernels) else "nothing")


def _are_trials(trace: Trace, point: str | None) -> bool:
    trials = trace.marks.kind == trace.strings.find("trial")
    if point is not None:
        trials &= trace.marks.point == trace.strings.find(point)
    return bool(trials.any()) and trace.strings.find("trial") != NULL


def _of_trials(trials: list[Step]) -> Windows:
    sets = [
        intervals.merge(
            intervals.of([step.start_ns for step in group], [step.end_ns for step in group])
        )
        for group in _by_process(trials)
    ]
    return Windows(
        _common(sets), f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'}", len(trials)
    )


def _of_steps(marked: list[Step]) -> Windows:
    groups = [steady(group) for group in _by_process(marked)]
    sets = [
        intervals.window(group[0].start_ns, max(step.end_ns for step in group)) for group in groups
    ]
    kept = sum(len(group) for group in groups)
    label = (
        f"{kept} {'step' if kept == 1 else 'steps'}"
        if kept == len(marked)
        else f"{kept} steady of {len(marked)} steps"
    )
    return Windows(_common(sets), label, kept)


def _by_process(marked: list[Step]) -> list[list[Step]]:
    groups: dict[int, list[Step]] = {}
    for step in marked:
        groups.setdefault(step.process, []).append(step)
    return list(groups.values())


def _common(sets: list[Intervals]) -> Intervals:
    """What all sets have in common; their union where they have nothing in common (processes that
    ran in turn).
    """
    common = sets[0]
    for other in sets[1:]:
        common = intervals.intersect(common, other)
    return common if len(common) else intervals.union(*sets)


def _of_point(trace: Trace, point: str | None) -> Windows | None:
    if point is None:
        return None
    marks = trace.marks
    code = trace.strings.find(point)
    rows = (marks.point == code) & (marks.kind == trace.strings.find("point")) & (code != NULL)
    if not rows.any():
        return None
    return Windows(
        intervals.merge(intervals.lasting(marks.start_ns[rows], marks.dur_ns[rows])),
        f"point {point}",
    )


def _holds_work(trace: Trace, when: Intervals) -> bool:
    work = [
        intervals.lasting(table.start_ns, table.dur_ns) for table in (trace.kernels, trace.copies)
    ]
    if not any(len(held) for held in work):
        return True
    return any(int(intervals.inside_ns(held, when).sum()) > 0 for held in work)
