"""Lays the passes of a run over its bare pass, point by point, to look at them side by side. Pure.

For looking only: figures that need two passes are joined by point, never by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from profharness.trace.clocks.align import TIME_COLUMNS, rows_by_source
from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import I64, Source, Trace

Shifts = tuple[I64, I64]


BARE = "bare"
PointSpans = Mapping[str, Mapping[str, tuple[int, int]]]
"""By pass, then by point: first start and last end over all ranks."""


def overlay(trace: Trace, bare: str = BARE, spans: PointSpans | None = None) -> Trace:
    """The trace with the points of every other pass moved to where the bare pass had them.

    The trace must be aligned and its sources must name their passes. A point begins where it began
    in the bare pass, or where the point before it in its own pass now ends, if that is later:
    points never overlap. What lies between two points moves with the one before, what lies before
    the first with the first. Sources without a pass (telemetry) and passes without common points
    stay; durations never change. `spans` are those of the whole of which `trace` is a part.
    """
    spans = point_spans(trace) if spans is None else spans
    movable = [_movable(source, spans, bare) for source in trace.sources]
    shifts = [
        _shifts(spans[source.pass_name], spans[bare]) if moves else None
        for source, moves in zip(trace.sources, movable, strict=True)
    ]
    changed = {
        name: _moved(table, TIME_COLUMNS[name], shifts)
        for name, table in trace.tables()
        if name in TIME_COLUMNS
    }
    # each table keeps its own type
    sources = laid_over(trace.sources, spans, bare)
    return replace(trace, sources=sources, **changed)  # type: ignore[arg-type]  # kinds by name


def laid_over(sources: Sequence[Source], spans: PointSpans, bare: str = BARE) -> tuple[Source, ...]:
    """The sources as `overlay` leaves them: those that it moves say so."""
    return tuple(
        replace(source, alignment=f"{source.alignment}; laid over pass {bare}".lstrip("; "))
        if _movable(source, spans, bare)
        else source
        for source in sources
    )


def _movable(source: Source, spans: PointSpans, bare: str) -> bool:
    return source.pass_name not in ("", bare) and bool(
        spans.get(source.pass_name, {}).keys() & spans.get(bare, {}).keys()
    )


def point_spans(trace: Trace) -> dict[str, dict[str, tuple[int, int]]]:
    """The spans of the points of each pass, from marks of kind point."""
    marks = trace.marks
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    for row in np.flatnonzero((marks.kind == trace.strings.find("point")) & (marks.point != NULL)):
        start, end = int(marks.start_ns[row]), int(marks.start_ns[row] + marks.dur_ns[row])
        add_spans(
            spans,
            {
                trace.sources[marks.source[row]].pass_name: {
                    trace.strings[int(marks.point[row])]: (start, end)
                }
            },
        )
    return spans


def add_spans(spans: dict[str, dict[str, tuple[int, int]]], more: PointSpans) -> None:
    """Widen `spans` by those of another part."""
    for pass_name, points in more.items():
        own = spans.setdefault(pass_name, {})
        for point, (start, end) in points.items():
            first, last = own.get(point, (start, end))
            own[point] = (min(first, start), max(last, end))


def _shifts(own: Mapping[str, tuple[int, int]], there: Mapping[str, tuple[int, int]]) -> Shifts:
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
