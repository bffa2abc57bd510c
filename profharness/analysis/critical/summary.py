"""Critical paths of a trace as records: by class, by name, by step, and what changes are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.critical import classes
from profharness.analysis.critical.changes import Change, Unforeseeable, largest_halved
from profharness.analysis.critical.crossing import Stretch, Walks
from profharness.analysis.critical.forecast import forecast, unchanged
from profharness.analysis.critical.graph import Graph, graph_of
from profharness.analysis.critical.meetings import meetings
from profharness.analysis.critical.records import (
    BatchForecast,
    CriticalPath,
    Forecast,
    Meetings,
    PathPart,
    PathStep,
    RankPath,
    Refusal,
)
from profharness.analysis.critical.rows import path_rows
from profharness.analysis.critical.scaling import FURTHEST
from profharness.analysis.critical.scan_forecasts import NO_SCAN, Scan, scan_forecasts
from profharness.analysis.critical.scope import Scope, scopes
from profharness.analysis.critical.segments import Segments, columns_of
from profharness.analysis.time.steps import Step
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
MOST_REPLAYED = 300_000
"""Instants of a window that a report forecasts changes of: each takes some seconds beyond."""


def critical_path(
    traces: Trace | Sequence[Trace],
    changes: Sequence[Change] = (),
    scan: Scan = NO_SCAN,
    *,
    for_report: bool = False,
) -> CriticalPath | None:
    """The paths of all processes of one pass, or of files of several ranks, with what each change
    is worth; None where no process recorded operators or host calls. Of a scan each batch size is
    forecast from the others. A report also wants to know what the largest operator is worth, and no
    forecasts that take long.
    """
    traces = [traces] if isinstance(traces, Trace) else traces
    found = [scope for trace in traces for scope in scopes(trace)]
    asked = [change for change in changes if change.batch]
    sizes = [change.batch for change in asked if change.batch is not None]
    batches = scan_forecasts(found, scan, sizes)
    refused: list[Refusal] = []
    measured = {point.size for point in scan.points.values()}
    if len(measured) > 1:
        told = {made.size for made in batches}
        refused += [
            Refusal(change=change.text, why=_too_little(measured))
            for change in asked
            if change.batch not in told
        ]
        changes = [change for change in changes if change not in asked]
    asking = _Asking(changes, scan, for_report, refused)
    made, met = _of_processes(found, asking)
    return _of_all(made, batches, refused, met)


def together(paths: Sequence[CriticalPath]) -> CriticalPath | None:
    """The paths of several files; None of none."""
    return _of_all(
        [path for found in paths for path in found.processes],
        [made for found in paths for made in found.batches],
        [one for found in paths for one in found.refused],
    )


def _of_all(
    paths: Sequence[RankPath],
    batches: Sequence[BatchForecast],
    refused: Sequence[Refusal],
    told: Meetings | None = None,
) -> CriticalPath | None:
    if not paths:
        return None
    total: dict[str, PathPart] = {}
    for path in paths:
        for key, part in path.segments.items():
            so_far = total.get(key, PathPart(ns=0, segments=0))
            total[key] = PathPart(ns=so_far.ns + part.ns, segments=so_far.segments + part.segments)
    return CriticalPath(
        window_ns=sum(path.window_ns for path in paths),
        segments=_largest_first(total),
        processes=tuple(paths),
        batches=tuple(batches),
        refused=tuple(dict.fromkeys(refused)),
        meetings=told,
    )


def paths_of(trace: Trace) -> list[tuple[Scope, list[tuple[Scope, Segments]]]]:
    """The segments of each process's path, for what draws them: with the process that they lie
    on.
    """
    graphs = [graph_of(scope) for scope in scopes(trace)]
    made = []
    for group in _meeting(graphs):
        members = [graphs[place] for place in group]
        walks = Walks(members, meetings(members))
        for place, graph in enumerate(members):
            stretches = walks.path_of(place)
            made.append(
                (graph.scope, [(members[one.place].scope, one.segments) for one in stretches])
            )
    return made


def _meeting(graphs: Sequence[Graph]) -> list[list[int]]:
    """Places of the processes that can meet: those of one point and pass."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, graph in enumerate(graphs):
        source = graph.scope.source
        groups.setdefault((source.pass_name, source.point), []).append(place)
    return list(groups.values())


def _of_processes(
    found: Sequence[Scope], asking: _Asking
) -> tuple[list[RankPath], Meetings | None]:
    """The paths of all processes in order, and at what they meet."""
    graphs = [graph_of(scope) for scope in found]
    paths: dict[int, RankPath] = {}
    told: Meetings | None = None
    for group in _meeting(graphs):
        members = [graphs[place] for place in group]
        met = meetings(members)
        told = told or met.told
        walks = Walks(members, met)
        for number, place in enumerate(group):
            path = _of_process(members, number, walks.path_of(number))
            made = _forecasts(graphs[place], path, met.arrivals_of(number), asking)
            paths[place] = msgspec.structs.replace(path, what_if=made)
    return [paths[place] for place in range(len(graphs))], told


def _too_little(measured: set[int]) -> str:
    return (
        "a forecast rests on two sizes besides the one asked for, and reaches to "
        f"{FURTHEST} times the largest and 1/{FURTHEST} of the smallest; this scan has "
        f"{', '.join(map(str, sorted(measured)))}"
    )


@dataclass(frozen=True)
class _Asking:
    """What is asked of each process; `refused` takes up what cannot be answered."""

    changes: Sequence[Change]
    scan: Scan
    for_report: bool
    refused: list[Refusal]


def _of_process(members: Sequence[Graph], number: int, stretches: Sequence[Stretch]) -> RankPath:
    """The path of one of the processes that meet."""
    graph = members[number]
    scope, source = graph.scope, graph.scope.source
    found = _joined(stretches)
    names = _distinct_names([member.scope for member in members])
    crosses = len({stretch.place for stretch in stretches}) > 1
    parts = [
        (members[one.place].scope, one.segments, names[one.place] if crosses else "")
        for one in stretches
    ]
    return RankPath(
        process=process_name(scope),
        point=source.point,
        rank=source.rank,
        window=scope.label,
        start_ns=scope.start,
        window_ns=scope.window_ns,
        segments=_by_class(found),
        rows=path_rows(parts, scope.window_ns),
        steps=tuple(_step(step, found) for step in scope.steps),
        places=_places(stretches, names) if crosses else {},
    )


def _joined(stretches: Sequence[Stretch]) -> Segments:
    """The segments of a path as one, whose names are of several traces and mean nothing."""
    if len(stretches) == 1:
        return stretches[0].segments
    columns = zip(*(columns_of(one.segments) for one in stretches), strict=True)
    return Segments(*(np.concatenate(column) for column in columns))


def _places(stretches: Sequence[Stretch], names: Sequence[str]) -> dict[str, int]:
    held = Counter[str]()
    for one in stretches:
        held[names[one.place]] += int(one.segments.length.sum())
    return dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))


def _distinct_names(found: Sequence[Scope]) -> list[str]:
    """The names of processes, with their file where two have the same."""
    names = [process_name(scope) for scope in found]
    return [
        name if names.count(name) == 1 else f"{name} of {PurePath(scope.source.path).name}"
        for name, scope in zip(names, found, strict=True)
    ]


def process_name(scope: Scope) -> str:
    """How a process is told apart: its rank, or its number."""
    source = scope.source
    if source.rank is not None:
        return f"rank {source.rank}"
    pid = source.pid if source.pid is not None else int(scope.rows.owners[scope.main][1])
    return f"process {pid}" if pid != NULL else "process"


def _forecasts(
    graph: Graph, path: RankPath, came_last: Mapping[int, int], asking: _Asking
) -> tuple[Forecast, ...]:
    """What changes would be worth; `came_last` is for `changes.apply`."""
    changes, known = list(asking.changes), []
    if asking.for_report:
        if len(graph.time) > MOST_REPLAYED:
            return ()
        own = [row for row in path.rows if row.process in ("", path.process)]
        changes += [made for made in (largest_halved(own),) if made is not None]
    unknown = graph.scope.not_recorded_share if changes else 0.0
    for change in changes:
        try:
            known.append(change.foreseeable(unknown))
        except Unforeseeable as why:
            asking.refused.append(Refusal(change=change.text, why=str(why)))
    if not known:
        return ()
    check = unchanged(graph)
    made = (forecast(graph, change, check.residual_ns, came_last) for change in known)
    return (check, *made)


def _by_class(found: Segments) -> dict[str, PathPart]:
    length = np.zeros(len(classes.KEYS), np.int64)
    np.add.at(length, found.kind, found.length)
    count = np.bincount(found.kind, minlength=len(classes.KEYS))
    return _largest_first(
        {
            key: PathPart(ns=int(length[code]), segments=int(count[code]))
            for code, key in enumerate(classes.KEYS)
            if length[code]
        }
    )


def _largest_first(parts: dict[str, PathPart]) -> dict[str, PathPart]:
    return dict(sorted(parts.items(), key=lambda item: (-item[1].ns, item[0])))


def _step(step: Step, found: Segments) -> PathStep:
    """The path inside of a step, by class."""
    begin, end = step.span_ns
    low = int(np.searchsorted(found.end, begin, "right"))
    high = int(np.searchsorted(found.start, end, "left"))
    start = np.maximum(found.start[low:high], begin)
    length = np.minimum(found.end[low:high], end) - start
    parts = np.zeros(len(classes.KEYS), np.int64)
    np.add.at(parts, found.kind[low:high], length)
    held = {key: int(parts[code]) for code, key in enumerate(classes.KEYS) if parts[code]}
    return PathStep(
        step=step.label,
        number=step.number,
        start_ns=begin,
        window_ns=end - begin,
        segments=dict(sorted(held.items(), key=lambda item: (-item[1], item[0]))),
    )
