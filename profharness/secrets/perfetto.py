"""Secrets in Perfetto protobuf traces: where they stand, and the same trace without them.

rocprof-sys and the Perfetto SDK keep command lines and metadata as annotations, process descriptors
and attributes. A packet is taken apart without its schema: each field of bytes is looked at as a
text, and as a message. Secret are what `secrets` finds in a text, the value of an annotation or
attribute whose name is one (also where both are interned), and the word after an option on a
command line. A value is replaced by one of its own length, so that nothing else moves.

Field numbers: trace_packet.proto, interned_data.proto, debug_annotation.proto, trace_attributes
(google/perfetto v58).
"""

from __future__ import annotations

import gzip
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.proto_scan import I64, LENGTH, VARINT, scan
from profharness.readers.perfetto.packets import TRACK_EVENT, Packets, read_packets
from profharness.secrets.heads import NAME
from profharness.secrets.names import is_secret, looks_secret
from profharness.secrets.patterns import (
    may_hold_secrets,
    same_length_marker,
    secret_spans,
    suspicious,
)

_DEEPEST = 8
_CACHED_TEXT = 1 << 12
_LONGEST_TEXT = 16 << 20
_NO_TEXT = re.compile(rb"[\x00-\x08]")
_OVERLAP = 256  # bytes; longer than any name
_BLOCK = 8 << 20
_IID, _TEXT = 1, 2
_NOTE_NAMES, _NOTE_TEXTS = 3, 29  # of InternedData
_NOTES, _NOTE_IID, _NOTE_STRING, _NOTE_TEXT_IID = 4, 1, 6, 17
_PAIRS = ((10, 6), (1, 2), (1, 3))  # name and value: annotation, attribute in both of its forms
_OPTION = b"-"

Span = tuple[int, int, str]


@dataclass(frozen=True)
class Found:
    """The secrets of one file: its data with bundles unpacked, and where values stand in it."""

    data: np.ndarray[tuple[int], np.dtype[np.uint8]]
    spans: tuple[Span, ...]

    @property
    def counts(self) -> Counter[str]:
        """How many values of each variable or kind."""
        return Counter(label for _, _, label in self.spans)

    def write(self, out: BinaryIO | gzip.GzipFile) -> None:
        """The trace without the values."""
        at = 0
        for start, stop, _ in (*self.spans, (len(self.data), len(self.data), "")):
            for block in range(at, start, _BLOCK):
                out.write(self.data[block : min(block + _BLOCK, start)].tobytes())
            out.write(same_length_marker(stop - start))
            at = stop


def find(path: Path) -> Found:
    """The secrets of one file, plain or gzipped. Raises InputError when it cannot be read whole."""
    packets, framing = read_packets(path)
    unreadable = framing.bad_bundles + framing.zstd_bundles
    if framing.damage or framing.stopped_at < framing.size or unreadable:
        why = (
            f"{unreadable} bundles of packets cannot be unpacked"
            if unreadable
            else framing.damage or "no packet follows where one should"
        )
        raise InputError(
            f"{path} is damaged: {why}", "copy or record it again; nothing was changed"
        )
    spans = (*_in_packets(packets), *_interned(packets))
    return Found(packets.data, tuple(_apart(spans)))


def _apart(spans: Iterable[Span]) -> Iterator[Span]:
    """In order, of those that overlap the first (the one that knows its variable's name)."""
    end = 0
    for start, stop, label in sorted(spans, key=lambda span: (span[0], span[2].startswith("("))):
        if start >= end:
            yield start, stop, label
            end = stop


# ---------------------------------------------------------------- texts of packets


@dataclass(frozen=True, eq=False)
class _Texts:
    """Fields of bytes: the message that each stands in, its number, and its place.

    Messages are numbered: first the packets that were looked at, then these fields, as which each
    may be a message too.
    """

    parent: I64
    number: I64
    start: I64
    end: I64


def _in_packets(packets: Packets) -> Iterator[Span]:
    data = packets.data
    rows = _suspected(packets)
    if not len(rows):
        return
    fields = _fields(packets, rows)
    places = list(zip(fields.start.tolist(), fields.end.tolist(), strict=True))
    texts = [
        data[start:end].tobytes() if end - start <= _LONGEST_TEXT else b"" for start, end in places
    ]
    members_of: dict[int, list[int]] = {}
    for place, parent in enumerate(fields.parent.tolist()):
        members_of.setdefault(parent, []).append(place)
    for place, ((start, _), text) in enumerate(zip(places, texts, strict=True)):
        inner = [places[member] for member in members_of.get(len(rows) + place, ())]
        for low, high, label in _spans(text):
            # what is a message as well keeps its tags and lengths
            if not inner or any(
                first <= start + low and start + high <= last for first, last in inner
            ):
                yield start + low, start + high, label
    for members in members_of.values():
        if len(members) > 1:
            yield from _pairs(fields, texts, members)


def _suspected(packets: Packets) -> I64:
    """Packets that may hold a secret: a name with `=` or a colon behind it, a name that is a whole
    text, or a known shape of value.
    """
    data, starts, size = packets.data, packets.start, len(packets.data)
    hits: list[int] = []
    for at in range(0, size, _BLOCK):
        # a little of the block before, so that nothing at the edge is missed
        first = max(at - _OVERLAP, 0)
        block = data[first : at + _BLOCK].tobytes()
        hits += [first + hit for hit in suspicious(block, partial(_is_name, block))]
    return (
        np.unique(np.searchsorted(starts, np.array(hits, np.int64), side="right") - 1).clip(min=0)
        if hits
        else np.zeros(0, np.int64)
    )


def _is_name(block: bytes, at: int) -> bool:
    """Whether the word that stands here is in a text of its own (its length stands before it) that
    is a secret's name.
    """
    for start in range(at, max(at - _OVERLAP, 0), -1):
        length = block[start - 1]
        if (
            at < start + length < start + 128
            and looks_secret(block[start : start + length].decode("ascii", "replace"))
            and NAME.fullmatch(block, start, start + length)
        ):
            return True
        if not NAME.match(block, start - 1):
            return False
    return False


def _fields(packets: Packets, rows: I64) -> _Texts:
    """All fields of bytes of these packets, at any depth; what is a text may be read as a message
    too, and then gives nothing.
    """
    start = packets.start[rows]
    # what follows the last field of bytes holds none
    end = np.maximum.reduce(
        [packets.payload_end[rows], packets.interned_end[rows], packets.defaults_end[rows], start]
    )
    parts: list[_Texts] = []
    message = np.arange(len(rows))
    known = len(rows)
    for _ in range(_DEEPEST):
        found = scan(packets.data, start, end)
        inner = found.take(
            (found.wire == LENGTH)
            & ~np.isin(found.row, np.unique(found.damaged))
            & (found.end > found.start)
        )
        if not len(inner.row):
            break
        # fields of one message stand one after the other
        order = np.lexsort((inner.start, inner.row))
        parts.append(
            _Texts(
                message[inner.row[order]], inner.number[order], inner.start[order], inner.end[order]
            )
        )
        start, end = inner.start[order], inner.end[order]
        message = np.arange(known, known + len(start))
        known += len(start)
    return _Texts(
        *(
            np.concatenate([getattr(part, name) for part in parts] or [np.zeros(0, np.int64)])
            for name in ("parent", "number", "start", "end")
        )
    )


def _spans(text: bytes) -> tuple[Span, ...]:
    """Secrets in a text, once for short ones that repeat; none in bytes that are no text."""
    return (_cached_spans if len(text) <= _CACHED_TEXT else _spans_of)(text)


def _spans_of(text: bytes) -> tuple[Span, ...]:
    if _NO_TEXT.search(text) or not may_hold_secrets(text):
        return ()
    return tuple(secret_spans(text))


@lru_cache(maxsize=1 << 16)
def _cached_spans(text: bytes) -> tuple[Span, ...]:
    return _spans_of(text)


def _pairs(fields: _Texts, texts: Sequence[bytes], members: Sequence[int]) -> Iterator[Span]:
    """Values beside their names, and words behind their options, in one message."""
    by_number: dict[int, list[int]] = {}
    for place in members:
        by_number.setdefault(int(fields.number[place]), []).append(place)
    for name, value in _PAIRS:
        if name in by_number and value in by_number:
            yield from _secret(fields, texts, texts[by_number[name][-1]], by_number[value])
    for places in by_number.values():
        for option, word in itertools.pairwise(places):
            if texts[option].startswith(_OPTION) and not texts[word].startswith(_OPTION):
                yield from _secret(fields, texts, texts[option], [word])


def _secret(
    fields: _Texts, texts: Sequence[bytes], name: bytes, places: Sequence[int]
) -> Iterator[Span]:
    variable = name.decode("utf-8", "replace")
    if not looks_secret(variable):
        return
    for place in places:
        if is_secret(variable, texts[place].decode("utf-8", "replace")):
            yield int(fields.start[place]), int(fields.end[place]), variable.lstrip("-")


# ---------------------------------------------------------------- interned names and values


def _interned(packets: Packets) -> Iterator[Span]:
    """Values of annotations whose name is told once per sequence, where the value may be too."""
    names = {key: text for key, text, _, _ in _table(packets, _NOTE_NAMES) if looks_secret(text)}
    if not names:
        return
    sequences = np.unique([sequence for sequence, _ in names])
    rows = packets.of_kind(TRACK_EVENT)
    rows = rows[np.isin(packets.sequence[rows], sequences)]
    notes = packets.payload(rows).pick(_NOTES, LENGTH)
    inner = scan(packets.data, notes.start, notes.end)
    sequence, iid = (
        packets.sequence[rows[notes.row]].tolist(),
        inner.last(_NOTE_IID, len(notes.row)).tolist(),
    )
    label = [names.get(key, "") for key in zip(sequence, iid, strict=True)]
    own = inner.pick(_NOTE_STRING, LENGTH)
    for row, start, end in zip(own.row.tolist(), own.start.tolist(), own.end.tolist(), strict=True):
        yield from _value(packets, label[row], start, end)
    shared = inner.pick(_NOTE_TEXT_IID, VARINT)
    wanted = {
        (sequence[row], value): label[row]
        for row, value in zip(shared.row.tolist(), shared.value.tolist(), strict=True)
        if label[row]
    }
    if wanted:
        for key, _, start, end in _table(packets, _NOTE_TEXTS):
            yield from _value(packets, wanted.get(key, ""), start, end)


def _table(packets: Packets, number: int) -> Iterator[tuple[tuple[int, int], str, int, int]]:
    """Entries of one kind of interned data: sequence and id, the text, and its place."""
    rows = np.flatnonzero(packets.interned_end > packets.interned_start)
    entries = scan(packets.data, packets.interned_start[rows], packets.interned_end[rows]).pick(
        number, LENGTH
    )
    inner = scan(packets.data, entries.start, entries.end)
    iid = inner.last(_IID, len(entries.row)).tolist()
    told = inner.pick(_TEXT, LENGTH)
    for row, start, end in zip(
        told.row.tolist(), told.start.tolist(), told.end.tolist(), strict=True
    ):
        yield (
            (int(packets.sequence[rows[entries.row[row]]]), iid[row]),
            packets.data[start:end].tobytes().decode("utf-8", "replace"),
            start,
            end,
        )


def _value(packets: Packets, name: str, start: int, end: int) -> Iterator[Span]:
    if name and is_secret(name, packets.data[start:end].tobytes().decode("utf-8", "replace")):
        yield start, end, name
