"""Windows to measure in: trials, steps and the steady part of a run, from the trace's own marks
(docs/metrics.md#window).

A trace's whole length says little where a capture has a long lead-in; figures belong to trials
where the workload marked them, else to the steps after warm-up, else to all device work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from profharness.analysis.kernels.grouping import pack
from profharness.analysis.time.believed import believed
from profharness.analysis.time.by_launch import Launched, launched_steps, process_keys
from profharness.analysis.time.pieces import apart, recorded
from profharness.analysis.time.start_up import begin_after_start_up
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Marks, Trace
from profharness.trace.parts.step_numbers import numbers_of
from profharness.units import format_ns

_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class DeviceTime:
    """When a step ran on a device, by what it launched. `has_length` is False where nothing says
    when it began; then it begins with its first work. `apart_ns` lies between it and the step
    before. Not `launched`: the step launched nothing there.
    """

    device: int
    start_ns: int
    end_ns: int
    has_length: bool = True
    apart_ns: int = 0
    launched: bool = True


@dataclass(frozen=True)
class Step:
    """One step or trial of one process; `start_ns` and `end_ns` are those of its mark. `items` and
    `number` are None where the mark does not say. `kernels` is how many it launched, and `ran` when
    it ran on each device: None and empty where its mark is all that is known.
    """

    label: str
    start_ns: int
    end_ns: int
    items: int | None
    process: int
    """Steps of one process share this number."""
    point: str = ""
    number: int | None = None
    kernels: int | None = None
    ran: tuple[DeviceTime, ...] = ()

    @property
    def dur_ns(self) -> int:
        """The length of the mark."""
        return self.end_ns - self.start_ns

    @property
    def length_ns(self) -> float | None:
        """How long it took: on the devices that it launched work on, in the mean, else by its mark.
        None where nothing says when it began.
        """
        if not self.ran:
            return self.dur_ns
        known = [one.end_ns - one.start_ns for one in self._its_own if one.has_length]
        return sum(known) / len(known) if known else None

    @property
    def span_ns(self) -> tuple[int, int]:
        """From its begin on the first of its devices to its end on the last, else its mark."""
        if not self.ran:
            return self.start_ns, self.end_ns
        return min(one.start_ns for one in self._its_own), max(one.end_ns for one in self._its_own)

    @property
    def _its_own(self) -> tuple[DeviceTime, ...]:
        """The devices that it launched work on; all of them where it launched none at all."""
        return tuple(one for one in self.ran if one.launched) or self.ran


def steps(trace: Trace, point: str | None = None) -> list[Step]:
    """Trials where the trace (or the point) has any, else steps, by process and start: as they are
    marked.

    Where several sources mark them (a tool's file and the harness's own record of the trials),
    those of sources with device work count alone, else those of sources with operators: they share
    its clock. Kept with the marks: figures and findings all ask for it.
    """
    others = (trace.kernels, trace.copies, trace.ops, trace.strings)
    return trace.marks.kept(
        (steps, point), others, lambda: _read(trace, _rows(trace, point)[0])
    ).copy()


def steps_of_calls(trace: Trace, calls: I64) -> list[list[Step]]:
    """For each of these host calls the steps of its process, as they are marked."""
    rows, _ = _rows(trace, None)
    if not len(rows) or not len(calls):
        return [[] for _ in calls]
    mark_key, call_key = process_keys(trace, rows, calls)
    found: dict[int, list[Step]] = {}
    for key, step in zip(mark_key.tolist(), steps(trace), strict=True):
        found.setdefault(key, []).append(step)
    return [found.get(key, []) for key in call_key.tolist()]


def device_steps(trace: Trace, point: str | None = None) -> list[Step]:
    """The same with when each ran on the devices, by what it launched (docs/metrics.md#step).

    Then steps of processes that launch nothing are left out, and those at the ends of a process
    that launch nothing. Trials stay as they are marked: they end when their devices have. So do all
    steps where none launches anything, as on a CPU.
    """
    trace = believed(trace)
    others = (trace.kernels, trace.copies, trace.api, trace.ops, trace.strings)
    return trace.marks.kept(
        (device_steps, point), others, lambda: _device_steps(trace, point)
    ).copy()


def _device_steps(trace: Trace, point: str | None) -> list[Step]:
    marked = steps(trace, point)
    ran, by_process = [], {group[0].process: group for group in _by_process(marked)}
    for number, launched in launched_by(trace, point).items():
        of_process = by_process[number]
        for place, at in enumerate(launched.steps.tolist()):
            times = tuple(
                DeviceTime(
                    one.device,
                    int(one.begin[place]),
                    int(one.end[place]),
                    bool(one.has_length[place]),
                    int(one.apart_ns[place]),
                    bool(one.launches[place]),
                )
                for one in launched.devices
            )
            ran.append(replace(of_process[at], kernels=int(launched.kernels[place]), ran=times))
    return ran or marked


def launched_by(trace: Trace, point: str | None = None) -> dict[int, Launched]:
    """What the steps of each process launched, by `Step.process`; empty where marks hold."""
    trace = believed(trace)
    rows, kind = _rows(trace, point)
    if kind != "step":
        return {}
    others = (trace.kernels, trace.copies, trace.api, trace.ops, trace.strings)
    return trace.marks.kept(
        (launched_by, point),
        others,
        lambda: launched_steps(trace, rows, _process(trace.marks, rows)),
    )


def _rows(trace: Trace, point: str | None) -> tuple[I64, str]:
    """The marks that count, by process and start, and their kind."""
    marks = trace.marks
    for kind in ("trial", "step"):
        wanted = marks.kind == trace.strings.find(kind)
        if point is not None:
            wanted &= marks.point == trace.strings.find(point)
        rows = np.flatnonzero(wanted & (marks.kind != NULL))
        if len(rows):
            rows = _of_closest_sources(trace, rows)
            return rows[np.lexsort((marks.start_ns[rows], _process(marks, rows)))], kind
    return np.empty(0, np.int64), ""


def _process(marks: Marks, rows: I64) -> I64:
    return pack([marks.source[rows], marks.pid[rows]])


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
    columns = [
        trace.strings.decode(marks.name[rows]),
        marks.start_ns[rows].tolist(),
        (marks.start_ns[rows] + marks.dur_ns[rows]).tolist(),
        _known(marks.items[rows]),
        _process(marks, rows).tolist(),
        trace.strings.decode(marks.point[rows]),
        _known(numbers_of(trace, rows, ("trial", "step"))),
    ]
    return [Step(*one) for one in zip(*columns, strict=True)]


def _known(column: I64) -> list[int | None]:
    return [None if value == NULL else value for value in column.tolist()]


def steady(of_process: list[Step]) -> list[Step]:
    """The steps of one process without its slow first ones.

    A leading step is dropped while it is longer than the median by more than five standard
    deviations (from the median absolute deviation) and by more than a tenth; at least two steps
    stay. A first step of unknown length goes with those that are dropped behind it, or where its
    own work alone lasts too long.
    """
    if of_process and of_process[0].length_ns is None:
        first, rest = of_process[0], of_process[1:]
        start, end = first.span_ns
        lengths = _lengths(rest)
        kept = steady(rest)
        too_long = len(lengths) > 1 and end - start > _limit(lengths)
        return kept if too_long or len(kept) < len(rest) else of_process
    lengths = _lengths(of_process)
    if len(lengths) < 3:
        return of_process
    limit = _limit(lengths)
    first_kept = 0
    while first_kept < len(lengths) - 2 and lengths[first_kept] > limit:
        first_kept += 1
    return of_process[first_kept:]


def _lengths(of_process: list[Step]) -> F64:
    return np.array([step.length_ns for step in of_process], np.float64)


def _limit(lengths: F64) -> float:
    """Beyond which a leading step is no steady one."""
    median = float(np.median(lengths))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(lengths - median)))
    return median + max(5 * spread, 0.1 * median)


def measured(trace: Trace, point: str | None = None) -> Windows:
    """The window that figures of the trace (or of one of its points) belong to.

    Trials: the time inside trials. Steps: on each device from the begin of the first steady step to
    the end of the last, by what they launched, else by their marks. For several processes the time
    that all of them have in common. Where marks and device work do not meet (their clocks are not
    aligned), and where there are no marks: all device work, or all operators. What lies between the
    files of processes that recorded in pieces, or between the processes of one file, belongs to no
    window. Lengths that cannot be true are none. Kept with the marks.
    """
    trace = believed(trace)
    others = (trace.kernels, trace.copies, trace.api, trace.ops, trace.strings, trace.sources)
    return trace.marks.kept((measured, point), others, lambda: _measured(trace, point))


def _measured(trace: Trace, point: str | None) -> Windows:
    marked = device_steps(trace, point)
    if marked:
        trials = _rows(trace, point)[1] == "trial"
        window = _of_trials(marked) if trials else _of_steps(marked)
        if window.of_device or (len(window.when) and _holds_work(trace, window.when)):
            return window if trials else _recorded(trace, window)
    point_window = _of_point(trace, point)
    return point_window if point_window is not None else everything(trace)


def _recorded(trace: Trace, window: Windows) -> Windows:
    """Without the time between files or processes in which nothing was recorded. Trials lie inside
    of a recording, with what comes before their first operator.
    """
    held = recorded(trace)
    return window if held is None else window.limited(held)


def everything(trace: Trace) -> Windows:
    """From the first to the last device work, without start-up before it; of operators where there
    is none with times; empty for an empty trace. Processes of one file that ran at different times
    have this each.
    """
    parts = apart(trace)
    for names, words in (
        (("kernels", "copies"), "all device work"),
        (("ops",), "all operators"),
        (("api", "marks"), "all host records"),
    ):
        spans = [(part, span) for part in parts if (span := _span(part, names)) is not None]
        begins = [begin_after_start_up(part) for part, _ in spans if names[0] == "kernels"]
        lows = [
            span[0] if begin is None else begin for (_, span), begin in zip_longest(spans, begins)
        ]
        if spans:
            label = words if set(begins) <= {None} else f"{words} after start-up"
            when = intervals.merge(intervals.of(lows, [span[1] for _, span in spans]))
            return _recorded(trace, Windows(when, label))
    return Windows(intervals.EMPTY, "all device work" if len(trace.kernels) else "nothing")


def _span(trace: Trace, names: Sequence[str]) -> tuple[int, int] | None:
    """The first start and the last end of the rows of some tables that have times; None without."""
    tables = [getattr(trace, name) for name in names]
    starts = np.concatenate([table.start_ns for table in tables])
    ends = np.concatenate([table.start_ns + table.dur_ns for table in tables])
    known = starts != NULL
    return (int(starts[known].min()), int(ends[known].max())) if known.any() else None


def _of_trials(trials: list[Step]) -> Windows:
    sets = [
        intervals.merge(
            intervals.of([step.start_ns for step in group], [step.end_ns for step in group])
        )
        for group in _by_process(trials)
    ]
    return Windows(
        in_common(sets), f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'}", len(trials)
    )


def _of_steps(marked: list[Step]) -> Windows:
    groups = [steady(group) for group in _by_process(marked)]
    kept = sum(len(group) for group in groups)
    label = (
        f"{kept} {'step' if kept == 1 else 'steps'}"
        if kept == len(marked)
        else f"{kept} steady of {len(marked)} steps"
    )
    marks = in_common(
        [
            intervals.window(group[0].start_ns, max(step.end_ns for step in group))
            for group in groups
        ]
    )
    if not marked[0].ran:
        return Windows(marks, label, kept)
    sets: dict[int, list[Intervals]] = {}
    longest_apart = 0
    for group in groups:
        for first, *rest in zip(*(step.ran for step in group), strict=True):
            last = rest[-1] if rest else first
            longest_apart = max(longest_apart, sum(one.apart_ns for one in rest))
            if any(one.launched for one in (first, *rest)):
                when = intervals.window(first.start_ns, last.end_ns)
                sets.setdefault(first.device, []).append(when)
    own = {device: in_common(windows) for device, windows in sets.items()}
    if longest_apart:
        label = f"{label}, {format_ns(longest_apart)} between them"
    common = in_common(list(own.values()))
    return Windows(common, label, kept, {} if len(own) == 1 else own, marks)


def _by_process(marked: list[Step]) -> list[list[Step]]:
    groups: dict[int, list[Step]] = {}
    for step in marked:
        groups.setdefault(step.process, []).append(step)
    return list(groups.values())


def in_common(sets: Sequence[Intervals]) -> Intervals:
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
