"""Replays of device graphs that show fewer kernels than their graph has, and when these may have
run (docs/metrics.md#graph-losses).

Tracers have lost kernels of graph launches: ROCm 7.2.0 recorded 448 of 512, and later ones all but
the last of each graph. Replays are compared where the file names the graph, or where the shorter
one has the kernels of the fuller one, in their order and with their grids, at the same place of the
steps. The witnesses are the fullest replay and the capture: most replays may have lost kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import patterns
from profharness.analysis.kernels.grouping import pack
from profharness.analysis.time.device_work import Work
from profharness.analysis.time.steps import Step, steps_of_calls
from profharness.analysis.verdict.host_files import of_host_files
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.call_names import CAPTURE_BEGIN
from profharness.trace.columns.keys import coded, distinct
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import Capture, captured_graphs
from profharness.trace.graphs.in_order import longest_match
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NEEDED_STEPS = 3
"""Two steps may hold as many replays by chance."""
_LEAST_ROUNDS, _MOST_GRAPHS = 2, 512
_NEEDED_REPLAYS = 8
"""Without the first and the last, which may be cut, two rounds of up to three graphs are seen."""


@dataclass(frozen=True, eq=False)
class GraphLosses:
    """The launches of graphs that show too little, each by its row in `api`: `shown` kernels, and
    `lost` that the fullest replay or the capture has besides (0 where nothing tells), which take
    `lost_ns` there (NULL: not known). Those that are not `judged` are the first and the last of a
    process, which the recording may have cut. `launches` counts all graph launches.
    """

    launches: int
    call: I64
    shown: I64
    lost: I64
    lost_ns: I64
    judged: Mask

    def __len__(self) -> int:
        return len(self.call)


@dataclass(frozen=True, eq=False)
class _Replay:
    """One launch of a graph: its row in `api`, when it began, its kernels in order of start, what
    each of them is (name and grid), and their graph as the tool numbers it.
    """

    call: int
    start_ns: int
    kernels: I64
    what: tuple[int, ...]
    graph: int


def graph_losses(trace: Trace, work: Work) -> GraphLosses:
    """Kept with the kernels: a finding and each device ask for it."""
    others = (trace.api, trace.marks, trace.strings)
    return trace.kernels.kept(graph_losses, others, lambda: _graph_losses(trace, work))


def of_lost_graph_kernels(trace: Trace, work: Work, device: int) -> Intervals:
    """For each replay that shows too little the time from its launch to the first work that was
    launched later, as far as its lost kernels would take; a contributor to `not_recorded`.
    """
    if not patterns.matching(trace.strings, trace.api, patterns.GRAPH_LAUNCH).any():
        return intervals.EMPTY
    losses = graph_losses(trace, work)
    call = losses.call[_on_device(work, losses.call, device)] if len(losses) else losses.call
    rows = np.flatnonzero((work.device == device) & (work.end > work.start))
    if not len(call) or not len(rows):
        return intervals.EMPTY
    rows = rows[np.argsort(work.launched[rows], kind="stable")]
    low = trace.api.start_ns[call]
    begun = np.append(np.minimum.accumulate(work.start[rows][::-1])[::-1], work.end[rows].max())
    high = np.maximum(begun[np.searchsorted(work.launched[rows], low, "right")], low)
    takes = losses.lost_ns[np.isin(losses.call, call)]
    known = takes != NULL
    high[known] = np.minimum(high, _after_free(work.busy(device).times, low, takes))[known]
    return Intervals(low, high)


def _on_device(work: Work, calls: I64, device: int) -> Mask:
    """Which of these launches may have run on the device: by their kernels, else by those of the
    other graphs.
    """
    graphs = np.flatnonzero(work.links.in_graph)
    ran = np.isin(calls, work.call[graphs])
    here = graphs[work.device[graphs] == device]
    mine: Mask = np.where(ran, np.isin(calls, work.call[here]), len(here) > 0 or not len(graphs))
    return mine


def _after_free(busy: Intervals, low: I64, takes: I64) -> I64:
    """When a device that is busy at these times has been free for so long since each start."""
    start = np.append(int(low.min()), busy.end)
    end = np.maximum(np.append(busy.start, np.iinfo(np.int64).max), start)
    before = np.append(0, np.cumsum(end[:-1] - start[:-1]))
    at = np.maximum(np.searchsorted(start, low, "right") - 1, 0)
    wanted = before[at] + np.clip(low - start[at], 0, end[at] - start[at]) + takes
    place = np.maximum(np.searchsorted(before, wanted, "left") - 1, 0)
    after: I64 = start[place] + wanted - before[place]
    return after


def _graph_losses(trace: Trace, work: Work) -> GraphLosses:
    found: dict[int, tuple[int, int, int, bool]] = {}
    of_each = _by_process(trace, work)
    alone = sum(map(len, of_each)) == 1 and not work.kernels
    copying = set(distinct(work.call[work.kernels :]).tolist())
    unnamed = set(distinct(trace.kernels.source[trace.kernels.correlation == NULL]).tolist())
    capture = _only_capture(trace) if of_each else None
    marked = steps_of_calls(trace, np.array([replays[0].call for replays in of_each], np.int64))
    for replays, own in zip(of_each, marked, strict=True):
        for group in _groups(replays, own):
            for replay, lost, lost_ns in _short(trace, group, capture):
                found[replay.call] = (len(replay.kernels), lost, lost_ns, True)
        for replay in replays:
            empty = not len(replay.kernels) and replay.call not in copying
            if empty and trace.api.source[replay.call] not in unnamed:
                found.setdefault(replay.call, (0, 0, NULL, True))
        for replay in () if alone else (replays[0], replays[-1]):
            if replay.call in found:
                found[replay.call] = (*found[replay.call][:3], False)
    rows = sorted(found)
    table = np.array([found[row] for row in rows], np.int64).reshape(-1, 4)
    return GraphLosses(
        sum(map(len, of_each)),
        np.array(rows, np.int64),
        table[:, 0],
        table[:, 1],
        table[:, 2],
        table[:, 3] == 1,
    )


def _by_process(trace: Trace, work: Work) -> list[list[_Replay]]:
    """The graph launches of each process in order of time, without driver calls inside a runtime
    call.
    """
    api, kernels = trace.api, trace.kernels
    launches = np.flatnonzero(
        patterns.matching(trace.strings, api, patterns.GRAPH_LAUNCH)
        & ~of_host_files(trace)[api.source]
    )
    if not len(launches):
        return []
    call = work.call[: work.kernels]
    rows = np.flatnonzero(work.links.in_graph & (call != NULL))
    rows = rows[np.lexsort((kernels.start_ns[rows], call[rows]))]
    columns = (kernels.name, kernels.workgroups, kernels.workgroup_size_x)
    what = coded(pack([column[rows] for column in columns]))[1] if len(rows) else rows
    first, last = (np.searchsorted(call[rows], launches, side) for side in ("left", "right"))
    kept = _outermost(trace, launches, last - first)
    process = pack([api.source[launches], api.pid[launches]])
    order = np.lexsort((api.start_ns[launches], process))
    found: dict[int, list[_Replay]] = {}
    for at in order[kept[order]].tolist():
        mine = rows[first[at] : last[at]]
        found.setdefault(int(process[at]), []).append(
            _Replay(
                int(launches[at]),
                int(api.start_ns[launches[at]]),
                mine,
                tuple(what[first[at] : last[at]].tolist()),
                int(kernels.graph[mine[0]]) if len(mine) else NULL,
            )
        )
    return list(found.values())


def _outermost(trace: Trace, launches: I64, counted: I64) -> Mask:
    """The launches that hold kernels or do not begin before an earlier one of the thread has
    returned.
    """
    api = trace.api
    order = np.lexsort(
        (api.start_ns[launches], api.tid[launches], api.pid[launches], api.source[launches])
    )
    rows = launches[order]
    end = api.start_ns[rows] + api.dur_ns[rows]
    nested = np.zeros(len(rows), np.bool_)
    nested[1:] = api.start_ns[rows[1:]] < end[:-1]
    for column in (api.tid, api.pid, api.source):
        nested[1:] &= column[rows[1:]] == column[rows[:-1]]
    keep = np.ones(len(rows), np.bool_)
    keep[order] = ~nested | (counted[order] > 0)
    return keep


def _groups(replays: Sequence[_Replay], marked: Sequence[Step]) -> Iterator[list[_Replay]]:
    """The replays of one process that are of one graph: by its number; else by their place in the
    steps that it marked; without steps all, where they are many, do not come in turns, and none has
    what the fullest lacks.
    """
    by_number: dict[int, list[_Replay]] = {}
    for replay in replays:
        by_number.setdefault(replay.graph, []).append(replay)
    others = by_number.pop(NULL, [])
    yield from by_number.values()
    if not others:
        return
    if marked:
        for group in _places(marked, others):
            fullest = max(group, key=lambda one: len(one.what))
            parts = {what for what in {one.what for one in group} if _has_all(what, fullest.what)}
            yield [one for one in group if one.what in parts]
    elif len(others) >= _NEEDED_REPLAYS and not _in_turns([replay.what for replay in others]):
        fullest = max(others, key=lambda one: len(one.what))
        if all(_has_all(what, fullest.what) for what in {one.what for one in others}):
            # with no step to tell that they are of one graph, most of it must be lost
            yield [one for one in others if 2 * len(one.what) < len(fullest.what)] + [fullest]


def _places(marked: Sequence[Step], replays: Sequence[_Replay]) -> list[list[_Replay]]:
    """The replays at each place of the steps; nothing where a process marks fewer than three steps,
    or they hold different numbers of replays.
    """
    by_process: dict[int, list[Step]] = {}
    for step in marked:
        by_process.setdefault(step.process, []).append(step)
    starts = np.array([replay.start_ns for replay in replays])
    for of_process in by_process.values():
        first = np.searchsorted(starts, [step.start_ns for step in of_process])
        sizes = np.searchsorted(starts, [step.end_ns for step in of_process]) - first
        if len(of_process) >= _NEEDED_STEPS and sizes[0] > 0 and (sizes == sizes[0]).all():
            return [[replays[at + place] for at in first] for place in range(int(sizes[0]))]
    return []


def _in_turns(shown: Sequence[tuple[int, ...]]) -> bool:
    """Whether different graphs come again in the same order, apart from the first and the last,
    which the recording may have cut.
    """
    numbers: dict[tuple[int, ...], int] = {}
    inner = np.array([numbers.setdefault(what, len(numbers)) for what in shown[1:-1]])
    longest = min(len(inner) // _LEAST_ROUNDS, _MOST_GRAPHS)
    return any(bool((inner[length:] == inner[:-length]).all()) for length in range(1, longest + 1))


def _short(
    trace: Trace, group: Sequence[_Replay], capture: Capture | None
) -> Iterator[tuple[_Replay, int, int]]:
    """Of the replays of one graph those that show fewer kernels than the fullest one or the
    capture; how many they lack, and how long these take (NULL: not known).

    Where neither number nor grid tells graphs apart, two that take turns, of which the fuller has a
    few kernels more, may be two graphs.
    """
    fullest = max(group, key=lambda one: len(one.what))
    captured = 0 if capture is None else _captured(trace, fullest, capture)
    times = Counter(one.what for one in group)
    vague = fullest.graph == NULL and not (trace.kernels.workgroups[fullest.kernels] != NULL).any()
    taken: dict[tuple[int, ...], int] = {}
    for one in group:
        if len(one.what) >= len(fullest.what):
            if captured:
                yield one, captured, NULL
            continue
        most_is_there = 2 * len(one.what) >= len(fullest.what)
        if vague and most_is_there and times[one.what] >= times[fullest.what]:
            continue
        if one.what not in taken:
            partner = longest_match(one.what, fullest.what)
            lost = np.delete(fullest.kernels, partner[partner != NULL])
            taken[one.what] = int(trace.kernels.dur_ns[lost].sum())
        lacking = len(fullest.what) - len(one.what) + captured
        yield one, lacking, NULL if captured else taken[one.what]


def _only_capture(trace: Trace) -> Capture | None:
    """The capture of a trace that holds one, with the names of the kernels."""
    if not patterns.matching(trace.strings, trace.api, CAPTURE_BEGIN).any():
        return None
    captures = captured_graphs(trace)
    return captures[0] if len(captures) == 1 and captures[0].named else None


def _captured(trace: Trace, fullest: _Replay, capture: Capture) -> int:
    """How many kernels the capture of a graph has besides the fullest replay; 0 where it is of
    another graph.
    """
    if capture.begin_ns > fullest.start_ns:
        return 0
    names = capture.kernel.tolist()
    more = len(names) - len(fullest.kernels)
    shown = tuple(trace.kernels.name[fullest.kernels].tolist())
    return more if more > 0 and _has_all(shown, names) else 0


def _has_all(shorter: Sequence[int], fuller: Sequence[int]) -> bool:
    """Whether the fuller sequence has all of the shorter one in its order."""
    rest = iter(fuller)
    return all(one in rest for one in shorter)
