"""Critical paths of a trace as records: by class, by name, by step, and what changes are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical import classes
from profharness.analysis.critical.changes import Change
from profharness.analysis.critical.forecast import forecast, unchanged
from profharness.analysis.critical.graph import Graph, graph_of
from profharness.analysis.critical.records import (
    KEPT_ROWS,
    CriticalPath,
    Forecast,
    PathPart,
    PathRow,
    PathStep,
    RankPath,
)
from profharness.analysis.critical.scope import Scope, scopes
from profharness.analysis.critical.segments import Segments, segments_of
from profharness.analysis.critical.walk import path_of
from profharness.analysis.host.kinds import without_address
from profharness.analysis.time.steps import Step
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]


def critical_path(
    trace: Trace, changes: Sequence[Change] = (), batches: Mapping[str, int] = {}
) -> CriticalPath | None:
    """The paths of all processes of one pass, with what each change is worth; None where no process
    recorded operators or host calls. `batches` are the batch sizes of points.
    """
    return _of_all([_of_process(scope, changes, batches) for scope in scopes(trace)])


def together(paths: Sequence[CriticalPath]) -> CriticalPath | None:
    """The paths of several files; None of none."""
    return _of_all([path for found in paths for path in found.processes])


def _of_all(paths: Sequence[RankPath]) -> CriticalPath | None:
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
    )


def paths_of(trace: Trace) -> list[tuple[Scope, Segments]]:
    """The segments of each process's path, for what draws them."""
    made = []
    for scope in scopes(trace):
        graph = graph_of(scope)
        made.append((scope, segments_of(graph, path_of(graph))))
    return made


def _of_process(scope: Scope, changes: Sequence[Change], batches: Mapping[str, int]) -> RankPath:
    graph = graph_of(scope)
    found = segments_of(graph, path_of(graph))
    source = scope.source
    return RankPath(
        process=process_name(scope),
        point=source.point,
        rank=source.rank,
        window=scope.label,
        start_ns=scope.start,
        window_ns=scope.window_ns,
        segments=_by_class(found),
        rows=_rows(scope, found),
        steps=tuple(_step(step, found) for step in scope.steps),
        what_if=_forecasts(graph, changes, batches.get(source.point)),
    )


def process_name(scope: Scope) -> str:
    """How a process is told apart: its rank, or its number."""
    source = scope.source
    if source.rank is not None:
        return f"rank {source.rank}"
    pid = source.pid if source.pid is not None else int(scope.rows.owners[scope.main][1])
    return f"process {pid}" if pid != NULL else "process"


def _forecasts(graph: Graph, changes: Sequence[Change], batch: int | None) -> tuple[Forecast, ...]:
    known = [made for change in changes if (made := change.of_batch(batch)) is not None]
    if not changes:
        return ()
    check = unchanged(graph)
    return (check, *(forecast(graph, change, check.residual_ns) for change in known))


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


def _rows(scope: Scope, found: Segments) -> tuple[PathRow, ...]:
    """Segments by class, name and operator, largest first."""
    key = pack([found.kind, found.name, found.operator])
    first, place = first_rows(key)
    length = np.zeros(len(first), np.int64)
    np.add.at(length, place, found.length)
    count = np.bincount(place, minlength=len(first))
    strings = scope.trace.strings

    def text(code: int) -> str:
        return without_address(strings[code]) if code != NULL else ""

    ns, segments = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for group, row in enumerate(first.tolist()):
        of = text(int(found.name[row])), text(int(found.operator[row]))
        named = classes.KEYS[int(found.kind[row])], *of
        ns[named] += int(length[group])
        segments[named] += int(count[group])
    rows = [
        PathRow(
            kind=named[0],
            name=named[1],
            operator=named[2],
            ns=total,
            share=total / scope.window_ns,
            segments=segments[named],
        )
        for named, total in ns.items()
    ]
    rows.sort(key=lambda row: (-row.ns, row.kind, row.name, row.operator))
    return tuple(rows[:KEPT_ROWS])


def _step(step: Step, found: Segments) -> PathStep:
    """The path inside of a step, by class."""
    low = int(np.searchsorted(found.end, step.start_ns, "right"))
    high = int(np.searchsorted(found.start, step.end_ns, "left"))
    start = np.maximum(found.start[low:high], step.start_ns)
    length = np.minimum(found.end[low:high], step.end_ns) - start
    parts = np.zeros(len(classes.KEYS), np.int64)
    np.add.at(parts, found.kind[low:high], length)
    held = {key: int(parts[code]) for code, key in enumerate(classes.KEYS) if parts[code]}
    return PathStep(
        step=step.label,
        number=step.number,
        start_ns=step.start_ns,
        window_ns=step.dur_ns,
        segments=dict(sorted(held.items(), key=lambda item: (-item[1], item[0]))),
    )
