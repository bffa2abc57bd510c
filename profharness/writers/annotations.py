"""What a viewer shows when a span is clicked: debug annotations per kind of span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.writers.groups import Ints, group_rows
from profharness.writers.interning import by_frequency, entry
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import Double, Field, Message, Same, Varint
from profharness.writers.protobuf.schema import Annotation, Interned, TrackEvent
from profharness.writers.protobuf.varints import Mask
from profharness.writers.spans import API, MARKS, OPS, REQUESTS, Spans


@dataclass(frozen=True)
class Note:
    """One annotation: the column of `table` that it shows, under `label`."""

    table: int
    column: str
    label: str


INTEGER_NOTES = (
    Note(API, "correlation", "correlation"),
    Note(OPS, "external", "external id"),
    Note(OPS, "sequence", "sequence number"),
    Note(MARKS, "items", "items"),
    Note(REQUESTS, "items", "items"),
    Note(REQUESTS, "client", "client"),
    Note(REQUESTS, "intended_ns", "intended ns"),
    Note(REQUESTS, "think_ns", "think ns"),
    Note(REQUESTS, "server_queue_ns", "server queue ns"),
    Note(REQUESTS, "server_compute_ns", "server compute ns"),
    Note(REQUESTS, "execution", "execution"),
)
TEXT_NOTES = (
    Note(OPS, "shapes", "shapes"),
    Note(OPS, "dtype", "types"),
    Note(OPS, "strides", "strides"),
    Note(OPS, "point", "point"),
    Note(MARKS, "point", "point"),
    Note(REQUESTS, "point", "point"),
)
DOUBLE_NOTES = (Note(OPS, "flops", "flops"),)
_LABELS = tuple(dict.fromkeys(note.label for note in (*INTEGER_NOTES, *TEXT_NOTES, *DOUBLE_NOTES)))
_LABEL_IID = {label: iid for iid, label in enumerate(_LABELS, 1)}


def label_entries() -> tuple[bytes, ...]:
    """Interned annotation names; the same in every sequence."""
    return tuple(
        entry(Interned.DEBUG_ANNOTATION_NAMES, iid, label) for label, iid in _LABEL_IID.items()
    )


@dataclass(frozen=True)
class Texts:
    """Interned text values of one sequence: codes in order, their numbers, and the entries."""

    codes: I64
    iids: I64
    entries: tuple[bytes, ...]

    def iid(self, codes: Ints) -> I64:
        """Numbers of these codes, which must be among those collected."""
        return self.iids[np.searchsorted(self.codes, codes)]


def collect_texts(trace: Trace, spans: Spans) -> Texts:
    """Every text that annotations of these spans show."""
    used = [column_values(trace, note, spans.row[spans.table == note.table]) for note in TEXT_NOTES]
    codes = np.concatenate([values[values != NULL] for values in used]).astype(np.int64)
    groups = group_rows(codes)
    iids = by_frequency(groups.sizes())
    distinct = codes[groups.first]
    entries = tuple(
        entry(
            Interned.DEBUG_ANNOTATION_STRING_VALUES, int(iids[i]), spans.strings[int(distinct[i])]
        )
        for i in np.argsort(iids)
    )
    return Texts(distinct, iids, entries)


def notes(trace: Trace, table: Ints, row: Ints, begin: Mask, texts: Texts) -> Iterator[Field]:
    """Annotation fields for these events; only begin events carry any."""
    for note in INTEGER_NOTES:
        mine, values = _values(trace, note, table, row, begin)
        present = _spread(mine, values >= 0)
        if present.any():
            yield _annotation(
                note, Varint(Annotation.INT, _filled(mine, values).clip(min=0)), present
            )
    for note in TEXT_NOTES:
        mine, values = _values(trace, note, table, row, begin)
        present = _spread(mine, values != NULL)
        if present.any():
            iids = np.zeros(len(row), np.int64)
            iids[present] = texts.iid(values[values != NULL])
            yield _annotation(note, Varint(Annotation.STRING_IID, iids), present)
    for note in DOUBLE_NOTES:
        mine, figures = _values(trace, note, table, row, begin)
        present = _spread(mine, np.isfinite(figures))
        if present.any():
            yield _annotation(note, Double(Annotation.DOUBLE, _filled(mine, figures)), present)


def column_values(trace: Trace, note: Note, rows: Ints) -> npt.NDArray[Any]:
    """The noted column at these rows of its table."""
    table = {API: trace.api, OPS: trace.ops, MARKS: trace.marks, REQUESTS: trace.requests}[
        note.table
    ]
    values: npt.NDArray[Any] = getattr(table, note.column)[rows]
    return values


def _values(
    trace: Trace, note: Note, table: Ints, row: Ints, begin: Mask
) -> tuple[Mask, npt.NDArray[Any]]:
    mine = begin & (table == note.table)
    return mine, column_values(trace, note, row[mine])


def _spread(mine: Mask, present: Mask) -> Mask:
    out = np.zeros(len(mine), np.bool_)
    out[mine] = present
    return out


def _filled(mine: Mask, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = np.zeros(len(mine), values.dtype)
    out[mine] = values
    return out


def _annotation(note: Note, value: Field, present: Mask) -> Field:
    name = Same(wire.integer(Annotation.NAME_IID, _LABEL_IID[note.label]))
    return Message(TrackEvent.DEBUG_ANNOTATIONS, (name, value), present)
