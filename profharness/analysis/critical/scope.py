"""What one critical path is about: a process, its window, its steps, and its main thread.

A process is what shares correlation ids: the sources of one pass, host, rank and process, and of
one point of a scan. The window is that of the figures: from the begin of the first steady step on
the devices to the end of the last (`analysis.time.steps`). Of steps that are known by their marks
alone it reaches on to the end of the device work that they launched, since a path ends with the
last end; without steps it is all that the process recorded after its start-up, and each piece by
itself where it recorded in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profharness.analysis.host.timeline import MARKS, HostRows, Timeline, host_rows
from profharness.analysis.time.believed import believed
from profharness.analysis.time.device_work import Work, work_of
from profharness.analysis.time.not_recorded import not_recorded
from profharness.analysis.time.start_up import begin_after_start_up
from profharness.analysis.time.steps import Step, device_steps, steady, steps
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.launches import correlated_process
from profharness.trace.model import Source, Trace
from profharness.trace.parts.select import by_source
from profharness.trace.pieces import recording_process

_TRIALS = "trials"  # the format of our own record of a point's trials
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scope:
    """One process in one window, in ns. `main` is a number of `HostRows.thread`; `work` are the
    rows of `records` that reach into the window, by start.
    """

    trace: Trace
    records: Work
    rows: HostRows
    start: int
    end: int
    host_end: int
    """Where the main thread's part of the window ends."""
    main: int
    work: I64
    ending: Mask
    """Which of `work` the window's steps launched: the window ends with the last of them."""
    label: str
    steps: tuple[Step, ...]
    """The steady steps of the process."""
    whole: Trace
    """All processes, which may share a device."""
    lines: dict[int, Timeline] = field(default_factory=dict)
    """Timelines by thread, as they are made."""

    @property
    def source(self) -> Source:
        """The source that stands for the process."""
        return self.trace.sources[0]

    @property
    def window_ns(self) -> int:
        return self.end - self.start

    @property
    def not_recorded_share(self) -> float:
        """The share of the window, of the device with most of it, in which that device may have run
        work that is not in the file.
        """
        window = intervals.window(self.start, self.end)
        held = (
            intervals.intersect(self._not_recorded(device), window).total
            for device in distinct(self.records.device[self.work]).tolist()
        )
        return max(held, default=0) / self.window_ns

    def _not_recorded(self, device: int) -> Intervals:
        """Of the process's records, without what others recorded on the same device."""
        stretches = not_recorded(self.trace, self.records, device)
        if self.whole is self.trace or device == NULL or not len(stretches):
            return stretches
        place = self.whole.devices.index(self.trace.devices[device])
        tables = (self.whole.kernels, self.whole.copies)
        ran = [table.take(table.device == place) for table in tables]
        busy = [intervals.merge(intervals.lasting(own.start_ns, own.dur_ns)) for own in ran]
        return intervals.subtract(stretches, intervals.union(*busy))

    @property
    def ends_on_device(self) -> bool:
        """Whether the window ends with device work, whatever the host does then."""
        return any(step.ran for step in self.steps) and bool(self.ending.any())


def scopes(trace: Trace) -> Iterator[Scope]:
    """The processes of a trace that recorded operators or host calls, in order of their sources."""
    groups: dict[object, list[bool]] = {}
    for position, source in enumerate(trace.sources):
        key = (correlated_process(source), source.point)
        groups.setdefault(key, [False] * len(trace.sources))[position] = True
    for members in groups.values():
        of_process = trace if all(members) else by_source(trace, members)
        if len(of_process.ops) or len(of_process.api):
            for piece in _pieces(_with_trials(trace, members, of_process)):
                scope = _scope(piece, trace)
                if scope is not None:
                    yield scope


def _with_trials(trace: Trace, members: list[bool], of_process: Trace) -> Trace:
    """A process of whose steps its tool says nothing (onnxruntime), with the trials that our worker
    recorded of it: without them all trials of a point would be one step.
    """
    own = {_worker(source) for source in of_process.sources}
    joined = [
        member or (source.format == _TRIALS and _worker(source) in own)
        for source, member in zip(trace.sources, members, strict=True)
    ]
    return of_process if joined == members or steps(of_process) else by_source(trace, joined)


def _worker(source: Source) -> tuple[object, ...]:
    return source.pass_name, source.host, source.rank, source.pid, source.point


def _pieces(trace: Trace) -> list[Trace]:
    """The files of a process without steps that recorded in pieces: nothing tells what it did
    between them. Else all of it.
    """
    files = [recording_process(source) for source in trace.sources]
    pieces = [at for at, file in enumerate(files) if file is not None and files.count(file) > 1]
    if not pieces or steps(trace):
        return [trace]
    return [
        by_source(trace, [at == piece or at not in pieces for at in range(len(files))])
        for piece in pieces
    ]


def _scope(trace: Trace, whole: Trace) -> Scope | None:
    trace, whole = believed(trace), believed(whole)
    work, rows = work_of(trace), host_rows(trace)
    if not len(rows):
        return None
    marked = _steady_steps(trace)
    main = _main_thread(trace, rows, marked)
    launched = work.start != NULL
    if marked:
        start, host_end = marked[0].start_ns, max(step.end_ns for step in marked)
        launched &= (work.launched >= start) & (work.launched < host_end)
        if marked[0].ran:
            start, end = marked[0].span_ns[0], marked[-1].span_ns[1]
            launched &= work.end <= end
            host_end = min(max(host_end, start), end)
        label = f"{len(marked)} {'step' if len(marked) == 1 else 'steps'}"
    else:
        mine = rows.thread == main
        start, host_end = int(rows.start.min()), int(rows.end[mine].max())
        if launched.any():
            start = min(start, int(work.start[launched].min()))
        label = "all records"
        begin = begin_after_start_up(trace)
        if begin is not None:
            start = int(work.launched[launched & (work.start >= begin)].min())
            launched &= work.launched >= start
            label = "all records after start-up"
    end = max(host_end, int(work.end[launched].max())) if launched.any() else host_end
    if end <= start:
        return None
    reach = np.flatnonzero((work.start != NULL) & (work.end > start) & (work.start < end))
    order = np.lexsort((reach, work.end[reach], work.start[reach]))
    reach = reach[order]
    ending = launched[reach]
    own = tuple(marked)
    return Scope(trace, work, rows, start, end, host_end, main, reach, ending, label, own, whole)


def _steady_steps(trace: Trace) -> list[Step]:
    """The steady steps of the process; of several processes in one file those of the first."""
    marked = device_steps(trace)
    return steady([step for step in marked if step.process == marked[0].process])


def _main_thread(trace: Trace, rows: HostRows, marked: list[Step]) -> int:
    """The thread that marks the steps, else the process's first one (whose id on Linux is the
    process's), else the one with most operators and calls.
    """
    counts = np.bincount(rows.thread[rows.table != MARKS], minlength=len(rows.owners))
    if marked:
        marks = trace.marks
        of_step = np.flatnonzero(
            (marks.start_ns == marked[0].start_ns) & (marks.dur_ns == marked[0].dur_ns)
        )
        stepping = (rows.owners[:, 1] == marks.pid[of_step[0]]) & (
            rows.owners[:, 2] == marks.tid[of_step[0]]
        )
        if stepping.any():
            return int(np.flatnonzero(stepping)[0])
    first = np.flatnonzero((rows.owners[:, 1] == rows.owners[:, 2]) & (counts > 0))
    return int(first[0]) if len(first) else int(np.argmax(counts))
