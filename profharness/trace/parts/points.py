"""Cuts a trace by the scan's points: the marks that workers write into the tools' own traces say
which record is whose. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.launches import launching_calls
from profharness.trace.model import I32, I64, Source, Strings, Trace

_CUT = ("copies", "api", "ops", "marks")
LEVEL = "level"  # the format of sources that hold the window of one level of load


def assign_points(trace: Trace) -> Trace:
    """Fill the `point` of kernels, copies, calls, ops and marks that have none yet.

    A source that holds one point only (`Source.point`) gives it to all its records. Otherwise a
    record belongs to the point mark of its source in which it starts; a kernel belongs where its
    launching call started, which the device's clock cannot blur. A source without such marks uses
    those of another source of the same host, process and pass on the same clock; in a served pass,
    where that has none either, the windows of the load generator's levels.
    """
    strings = Strings(trace.strings.texts)
    whole = np.array(
        [strings.code(source.point) if source.point else NULL for source in trace.sources], np.int32
    )
    spans = _Spans(trace)
    changed: dict[str, Any] = {}
    for name in _CUT:
        table: Any = getattr(trace, name)
        if len(table):
            changed[name] = table.with_columns(
                point=_filled(table.point, table.source, table.start_ns, whole, spans)
            )
    kernels = trace.kernels
    if len(kernels):
        calls = launching_calls(trace)
        at = kernels.start_ns.copy()
        at[calls != NULL] = trace.api.start_ns[calls[calls != NULL]]
        changed["kernels"] = kernels.with_columns(
            point=_filled(kernels.point, kernels.source, at, whole, spans)
        )
    return replace(trace, strings=strings, **changed)


def _filled(point: I32, source: I32, at: I64, whole: I32, spans: _Spans) -> I32:
    """The point codes, with those that are NULL taken from the source or from the marks."""
    result = np.where(point == NULL, whole[source], point)
    for position in np.unique(source[result == NULL]):
        rows = np.flatnonzero((source == position) & (result == NULL))
        result[rows] = spans.of(int(position), at[rows])
    return result


class _Spans:
    """Point marks by source, sorted by start."""

    def __init__(self, trace: Trace) -> None:
        marks = trace.marks
        self._marks = marks
        self._sources = trace.sources
        rows = np.flatnonzero((marks.kind == trace.strings.find("point")) & (marks.point != NULL))
        rows = rows[np.argsort(marks.start_ns[rows], kind="stable")]
        self._rows = {
            int(position): rows[marks.source[rows] == position]
            for position in np.unique(marks.source[rows])
        }
        levels: dict[tuple[object, ...], list[I64]] = {}
        for position, own in self._rows.items():
            if trace.sources[position].format == LEVEL:
                levels.setdefault(_place(trace.sources[position]), []).append(own)
        # each level is a source of its own: together they are the pass, by start
        joined = {place: np.concatenate(parts) for place, parts in levels.items()}
        self._levels = {
            place: own[np.argsort(marks.start_ns[own], kind="stable")]
            for place, own in joined.items()
        }

    def of(self, source: int, at: I64) -> I32:
        """The point that runs at each time, NULL where none does; of overlapping marks the one that
        began last.
        """
        rows = self._rows.get(source)
        if rows is None:
            rows = self._rows.get(self._sibling(source))
        if rows is None:
            rows = self._levels.get(_place(self._sources[source]))
        if rows is None:
            return np.full(len(at), NULL, np.int32)
        starts, ends = (
            self._marks.start_ns[rows],
            self._marks.start_ns[rows] + self._marks.dur_ns[rows],
        )
        place = np.searchsorted(starts, at, "right") - 1
        inside = (place >= 0) & (at <= ends[np.maximum(place, 0)])
        return np.where(inside, self._marks.point[rows[np.maximum(place, 0)]], np.int32(NULL))

    def _sibling(self, source: int) -> int:
        own = self._sources[source]
        key = (own.host, own.pid, own.pass_name, own.clock)
        return next(
            (
                position
                for position in self._rows
                if own.pid is not None
                and key
                == (
                    self._sources[position].host,
                    self._sources[position].pid,
                    self._sources[position].pass_name,
                    self._sources[position].clock,
                )
            ),
            NULL,
        )


def _place(source: Source) -> tuple[object, ...]:
    return source.host, source.pass_name, source.clock
