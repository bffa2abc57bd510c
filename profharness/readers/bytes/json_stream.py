"""Decode the events of a Chrome trace (JSON object or list form) block by block, so that memory
does not grow with the file.

A block is cut at what looks like the border between two events and decoded as one list of typed
records. If `[` + block + `]` is valid JSON and the block began at an event, then the border was a
true one; if not, the ends of the events are found by an exact scan, and events that are no valid
JSON are repaired or counted. The format is described in "Trace Event Format" (the Chromium
project); Kineto writes its object form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from profharness.errors import InputError
from profharness.readers.bytes import json_scan
from profharness.readers.bytes.limits import records_of
from profharness.rundir.blocks import BLOCK_BYTES, Blocks
from profharness.trace.model import Problem

EventT = TypeVar("EventT")
_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE = re.compile(rb'"(baseTimeNanoseconds)"\s*:\s*(-?\d+)')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BETWEEN = b", \t\r\n"
_LIST = b"[]"
WINDOW = 1 << 16
_LONGEST_EVENT = 8 << 20  # an exact scan takes 20 times as much; real ones have some kilobytes
_TOO_LONG = f"an event is longer than {_LONGEST_EVENT >> 20} MiB"
_AROUND = 64 << 20  # before and behind the events; real files have some kilobytes there
_FAR = f"more than {_AROUND >> 20} MiB stand behind its events"
_MOST_REPAIRED = 8 << 20  # taking a text apart takes some 30 times its size
_TOO_MANY = "it holds more events than a file of its size can"
_UNUSUAL = 16  # blocks in a row
_HINT = "the writer was interrupted or the file was damaged on its way: record or copy it again"


def _of_lists(event: object) -> Any:
    return msgspec.json.Decoder(list[event])  # type: ignore[valid-type]  # a class, as a value


class EventStream(Generic[EventT]):
    """The events of one file, in lists, once; the attributes are complete when the last list was
    given.

    `keys` holds the raw JSON of the other top-level keys, before and behind the events. `damage`
    says in words why the file ended early, if it did. `unreadable` counts events that are no valid
    JSON or do not fit the type (`first_error` is the reason of the first), `repaired` those that
    were after a repair.
    """

    def __init__(
        self,
        path: Path,
        event: type[EventT],
        block_bytes: int = BLOCK_BYTES,
        *,
        usual: object = None,
    ) -> None:
        """`usual` is a narrower type, faster to decode: a block is decoded as that throughout, or
        else as `event` throughout.
        """
        self.path = path
        self.keys: dict[str, bytes] = {}
        self.events = 0
        self.unreadable = 0
        self.repaired = 0
        self.first_error = ""
        self.damage = ""
        self.is_list = False
        self._decoder: msgspec.json.Decoder[list[EventT]] = _of_lists(event)
        self._usual: msgspec.json.Decoder[list[EventT]] | None = _of_lists(usual) if usual else None
        self._unusual = 0
        self._blocks = Blocks(path, block_bytes, text=True)
        self._text = bytearray()
        self._start = 0
        self._closed = self._is_mended = False

    def __iter__(self) -> Iterator[list[EventT]]:
        """Lists of decoded events in file order. Raises InputError when the file holds no list of
        events, or no usable event.
        """
        prefix = self._find_list()
        yield from self._batches()
        if not self.is_list:
            self._read_keys(prefix)
        if not self.damage:
            self.damage = self._blocks.damage
        if not self.events and (self.damage or self.unreadable):
            raise InputError(
                f"{self.path} holds no readable trace event: {self.damage or self.first_error}",
                _HINT,
            )

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the file itself, to pass on once all events were read."""
        where = str(self.path)
        if self.damage:
            yield Problem(
                "error",
                where,
                1,
                f"the file is cut or damaged: {self.damage}; {self.events} events were read",
            )
        if self.unreadable:
            yield Problem(
                "warning",
                where,
                self.unreadable,
                "events are no valid JSON, or of an unexpected form, and were left out (first: "
                f"{self.first_error})",
            )
        if self.repaired:
            yield Problem(
                "info",
                where,
                self.repaired,
                f"events were no valid JSON and were repaired (first: {self.first_error})",
            )
        if self._is_mended:
            yield Problem(
                "info",
                where,
                1,
                "what the file says of itself was no valid JSON and was repaired: a key or value "
                "of it may be lost",
            )

    def _find_list(self) -> bytes:
        """Read up to the list of events; the text before it. The same key in a string or a nested
        object is passed over.
        """
        searched = 0
        while self._more(len(self._text)):
            if self._text.startswith(_BYTE_ORDER_MARK):
                del self._text[: len(_BYTE_ORDER_MARK)]
            if self._text.lstrip().startswith(b"["):
                self.is_list = True
                self._start = self._text.index(b"[") + 1
                return b""
            opened = json_scan.first_at_depth(
                self._text, [match.span() for match in _KEY.finditer(self._text, searched)], 1
            )
            if opened is not None:
                self._start = opened
                return bytes(self._text[:opened])
            searched = max(len(self._text) - 4096, 0)
            if len(self._text) >= _AROUND:
                raise InputError(
                    f"{self.path} holds no list of trace events within its first "
                    f"{_AROUND >> 20} MiB",
                    _HINT,
                )
        damage = f": {self._blocks.damage}" if self._blocks.damage else ""
        raise InputError(f"{self.path} holds no list of trace events{damage}", _HINT)

    def _more(self, least: int = 0) -> bool:
        """Add a block, or `least` bytes, to the text; False when the file had nothing more.

        It takes the old text's memory unless what was decoded from it still refers to that. Once
        the list is found, a bracket stands in front of what is left, so that it can be decoded
        where it lies.
        """
        lead = b"[" if self._start else b""
        kept = b"".join((lead, memoryview(self._text)[self._start :]))
        self._text, self._start = self._blocks.behind(kept, least, used=self._text), len(lead)
        return len(self._text) > len(kept)

    def _batches(self) -> Iterator[list[EventT]]:
        ended = False
        most = records_of(self.path)
        while True:
            batch = None if ended else self._by_guess()
            if batch is None:
                batch = self._by_scan()
            left = len(self._text) - self._start
            too_long = left > _LONGEST_EVENT
            if not batch and not self._closed and (ended or too_long):
                batch = self._by_borders()
                if not batch and too_long:
                    self.damage = _TOO_LONG
                    return
            any_events = bool(batch)
            if batch:
                self.events += len(batch)
                yield batch
                del (
                    batch
                )  # before the next is decoded: its memory, still in the cache, is used again
            if self._closed:
                return
            if self.events + self.unreadable > most:
                self.damage = _TOO_MANY
                return
            if ended:
                rest = self._text[self._start :].strip(_BETWEEN)
                self.damage = (
                    "it ends inside an event" if rest else "its list of events is not closed"
                )
                return
            ended = not self._more(0 if any_events else left)

    def _by_guess(self) -> list[EventT] | None:
        """All events up to what looks like the last border, if they are valid."""
        border = json_scan.last_border(self._text, self._start, WINDOW)
        if border is None:
            return None
        try:
            batch = self._by_type(self._start, border[0])
        except json_scan.NOT_JSON:
            return None
        self._start = border[1]
        return batch

    def _by_type(self, start: int, end: int) -> list[EventT]:
        """A block of usual events where it is one. A file that has others in block after block is
        no more tried.
        """
        if self._usual is not None:
            try:
                batch = self._decode(start, end, self._usual)
            except msgspec.ValidationError:
                self._unusual += 1
                if self._unusual > _UNUSUAL:
                    self._usual = None
            else:
                self._unusual = 0
                return batch
        return self._decode(start, end, self._decoder)

    def _by_scan(self) -> list[EventT]:
        """All complete events in the text, by an exact scan; notices the end of the list."""
        scan = json_scan.scan(memoryview(self._text)[self._start :])
        ends = (scan.ends + self._start).tolist()
        batch: list[EventT] = []
        if ends:
            try:
                batch = self._decode(self._start, ends[-1], self._decoder)
            except json_scan.NOT_JSON:
                starts = [self._start, *ends[:-1]]
                batch = self._one_by_one(
                    bytes(self._text[a:b]) for a, b in zip(starts, ends, strict=True)
                )
        if scan.closed is not None:
            self._closed = True
            self._start += scan.closed + 1
        elif ends:
            self._start = ends[-1]
        return batch

    def _by_borders(self) -> list[EventT]:
        """What can be saved where quotes or brackets do not match, so that a scan finds no end: all
        but the last piece.
        """
        pieces = json_scan.pieces_at_borders(bytes(self._text[self._start :]))
        before = self.unreadable, self.first_error
        batch = self._one_by_one(pieces[:-1])
        if batch:
            self._start = len(self._text) - len(pieces[-1])
        else:
            self.unreadable, self.first_error = before
        return batch

    def _one_by_one(self, pieces: Iterable[bytes]) -> list[EventT]:
        batch: list[EventT] = []
        for whole in pieces:
            scalars, brace, piece = whole.partition(
                b"{"
            )  # elements without brackets have no end of their own
            if scalars.strip(_BETWEEN):
                self.unreadable += 1
                self.first_error = self.first_error or "a value that is no object"
            decoded = self._decode_one(brace + piece)
            if decoded is None:
                parts = json_scan.pieces_at_borders(brace + piece)
                saved = [self._decode_one(part) for part in parts] if len(parts) > 1 else [None]
                self.unreadable += saved.count(None)
                decoded = [event for events in saved if events for event in events]
            batch += decoded
        return batch

    def _decode_one(self, piece: bytes) -> list[EventT] | None:
        piece = piece.strip(_BETWEEN)
        try:
            return self._decoder.decode(b"[" + piece + b"]")
        except json_scan.NOT_JSON as error:
            self.first_error = self.first_error or str(error)
        try:
            events = self._decoder.decode(b"[" + json_scan.repair(piece) + b"]")
        except json_scan.NOT_JSON:
            return None
        self.repaired += len(events)
        return events

    def _decode(
        self, start: int, end: int, decoder: msgspec.json.Decoder[list[EventT]]
    ) -> list[EventT]:
        """The events in `text[start:end]` as one list, without a copy: its brackets replace the
        bytes around for so long.
        """
        text = self._text
        first = json_scan.skip_gap(text, start) - 1
        if end == len(text):
            return decoder.decode(b"".join((b"[", memoryview(text)[first + 1 :], b"]")))
        around = text[first], text[end]
        text[first], text[end] = _LIST
        try:
            return decoder.decode(memoryview(text)[first : end + 1])
        finally:
            text[first], text[end] = around

    def _read_keys(self, prefix: bytes) -> None:
        """The other keys of the object. Where what follows the events is cut, those before them and
        the base time.
        """
        while self._closed and self._more(len(self._text) - self._start):
            if len(self._text) - self._start > _AROUND:
                self.damage = _FAR
                break
        tail = bytes(memoryview(self._text)[self._start :]) if self._closed else b""
        keys, self._is_mended = _top_level(prefix + b"]" + tail)
        if not keys:
            keys, self._is_mended = _top_level(prefix + b"]}")
            keys.update((key.decode(), value) for key, value in _BASE.findall(tail))
            self.damage = self.damage or "it ends early or is damaged behind its events"
        keys.pop("traceEvents", None)
        self.keys = keys


def _top_level(text: bytes) -> tuple[dict[str, bytes], bool]:
    """Raw values of a JSON object by key, and whether it was almost JSON and repaired; nothing
    where `text` is no such object.
    """
    mended = False
    try:
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except json_scan.NOT_JSON:
        if len(text) > _MOST_REPAIRED:
            return {}, False
        mended = True
        try:
            found = msgspec.json.decode(json_scan.repair(text), type=dict[str, msgspec.Raw])
        except json_scan.NOT_JSON:
            return {}, False
    return {key: bytes(value) for key, value in found.items()}, mended
