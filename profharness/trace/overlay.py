"""Lays the passes of a run over its bare pass, point by point, to look at them side by side. Pure.

For looking only: figures that need two passes are joined by point, never by time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profharness.trace.clocks import TIME_COLUMNS, rows_by_source
from profharness.trace.model import I64, NULL, Table, Trace

Shifts = tuple[I64, I64]


def overlay(trace: Trace, bare: str = "bare") -> Trace:
    """The trace with the points of every other pass moved to where the bare pass had them.

    The trace must be aligned and its sources must name their passes. A point begins where it began in the bare pass,
    or where the point before it in its own pass now ends, if that is later: points never overlap. What lies between
    two points moves with the one before, what lies before the first with the first. Sources without a pass (telemetry)
    and passes without common points stay; durations never change.
    """
    spans = _point_spans(trace)
    shifts: list[Shifts | None] = []
    for source in trace.sources:
        own = spans.get(source.pass_name, {})
        there = spans.get(bare, {})
        movable = source.pass_name not in ("", bare) and own.keys() & there.keys()
        shifts.append(_shifts(own, there) if movable else None)
    changed = {name: _moved(table, TIME_COLUMNS[name], shifts) for name, table in trace.tables() if name in TIME_COLUMNS}
    sources = tuple(replace(source, alignment=f"{source.alignment}; laid over pass {bare}".lstrip("; ")) if shift else source
                    for source, shift in zip(trace.sources, shifts, strict=True))
    return replace(trace, sources=sources, **changed)  # type: ignore[arg-type] # each table keeps its own type


def _point_spans(trace: Trace) -> dict[str, dict[int, tuple[int, int]]]:
    """By pass, then by point code: first start and last end over all ranks, from marks of kind point."""
    marks = trace.marks
    spans: dict[str, dict[int, tuple[int, int]]] = {}
    for row in np.flatnonzero((marks.kind == trace.strings.find("point")) & (marks.point != NULL)):
        points = spans.setdefault(trace.sources[marks.source[row]].pass_name, {})
        start, end = int(marks.start_ns[row]), int(marks.start_ns[row] + marks.dur_ns[row])
        first, last = points.get(int(marks.point[row]), (start, end))
        points[int(marks.point[row])] = (min(first, start), max(last, end))
    return spans


def _shifts(own: dict[int, tuple[int, int]], there: dict[int, tuple[int, int]]) -> Shifts:
    """Starts of the pass's points in rising order, and what to add from each on."""
    starts: list[int] = []
    shifts: list[int] = []
    free_from: int | None = None
    for point, (start, end) in sorted(own.items(), key=lambda item: item[1]):
        wanted = there[point][0] if point in there else start + (shifts[-1] if shifts else 0)
        placed = wanted if free_from is None else max(wanted, free_from)
        starts.append(start)
        shifts.append(placed - start)
        free_from = placed + end - start
    return np.array(starts, np.int64), np.array(shifts, np.int64)


def _moved(table: Table, columns: tuple[str, ...], shifts: list[Shifts | None]) -> Table:
    changed = {column: getattr(table, column).copy() for column in columns}
    for position, rows in rows_by_source(table):
        moves = shifts[position]
        if moves is None:
            continue
        segment = np.maximum(np.searchsorted(moves[0], changed[columns[0]][rows], "right") - 1, 0)
        for times in changed.values():
            times[rows] += np.where(times[rows] == NULL, 0, moves[1][segment])
    return table.with_columns(**changed)
