"""Walk through one large JSON document without holding it: enter objects and lists, decode or skip
what is inside.

Only the value that stands at the cursor is looked at. Elements of a list are decoded in batches, a
block of the file at a time; an element that is no valid JSON, or does not fit its type, is counted
and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from profharness.readers.bytes import json_scan
from profharness.readers.bytes.limits import records_of, value_bytes_of
from profharness.rundir.blocks import BLOCK_BYTES, Blocks

ValueT = TypeVar("ValueT")
_SPACE = b" \t\r\n"
_GAP = re.compile(
    rb"(?:[ \t\r\n]++|\xef[\s\S]{0,2})*+"
)  # white space, and the mark of a byte order
_FIRST_LOOK = 1 << 12
_OPENING = 32  # a list or object of its own takes as long as so many elements
_LONGER = 8  # times as much as the last look
_WINDOW = 1 << 16
_WIDE, _APART = 4 << 20, 8  # in a stretch so long brackets open so many bytes apart
_BRACKETS = b"{["
_TOO_MANY = "it holds more records than a file of its size can"


class DocumentEnds(Exception):  # noqa: N818  # not an error of the caller: what was read stays read
    """The document stops, or stops being JSON, before its end; the text says how."""


class JsonWalk:
    """A cursor in a document. All methods raise DocumentEnds where the document does; values must
    be used in their order.
    """

    def __init__(self, path: Path, block_bytes: int = BLOCK_BYTES) -> None:
        self.unreadable = 0
        self.repaired = 0
        self.first_error = ""
        self._blocks = Blocks(path, block_bytes, text=True)
        self._supply = iter(self._blocks)
        self._text = b""
        self._at = 0
        self._longest = value_bytes_of(path)
        self._left = records_of(path)  # elements that may still be read

    @property
    def damage(self) -> str:
        """Why the compressed data ended early, if it did."""
        return self._blocks.damage

    def peek(self) -> bytes:
        """The next byte that is no white space."""
        while True:
            gap = _GAP.match(self._text, self._at)
            self._at = gap.end() if gap else self._at
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._more():
                raise DocumentEnds(self.damage or "it ends early")

    def _spend(self, elements: int) -> None:
        """Raises DocumentEnds where they are more than a file of its size can hold."""
        self._left -= elements
        if self._left < 0:
            raise DocumentEnds(_TOO_MANY)

    def members(self) -> Iterator[str]:
        """The keys of the object at the cursor; whoever takes a key uses up its value."""
        self._take(b"{")
        self._spend(_OPENING)
        while self.peek() != b"}":
            key = self.value(str)
            self._take(b":")
            yield key
            self._next(b"}")
        self._at += 1

    def elements(self) -> Iterator[None]:
        """Stops before each element of the list at the cursor; whoever takes one uses it up."""
        self._take(b"[")
        self._spend(_OPENING)
        while self.peek() != b"]":
            yield None
            self._next(b"]")
        self._at += 1

    def value(self, kind: type[ValueT]) -> ValueT:
        """The whole value at the cursor. Raises DocumentEnds also where it is not of this kind."""
        raw = self._raw()
        try:
            return msgspec.json.decode(raw, type=kind)
        except json_scan.NOT_JSON as error:
            try:
                repaired = msgspec.json.decode(json_scan.repair(raw), type=kind)
            except json_scan.NOT_JSON:
                raise DocumentEnds(f"a value is not as expected ({error})") from error
            self.repaired += 1
            self.first_error = self.first_error or str(error)
            return repaired

    def value_or(self, kind: type[ValueT], otherwise: ValueT) -> ValueT:
        """`value`, or what goes in its place, counted, where it is whole but not of this kind."""
        try:
            return self.value(kind)
        except DocumentEnds as end:
            if not isinstance(end.__cause__, json_scan.NOT_JSON):
                raise
            self._lost(end.__cause__)
            return otherwise

    def _lost(self, error: BaseException) -> None:
        self.unreadable += 1
        self.first_error = self.first_error or str(error)

    def skip(self) -> None:
        """Pass over the value at the cursor, of any size."""
        if self.peek() == b"[":
            for _ in self._stretches():
                pass
        elif self.peek() == b"{":
            for _ in self.members():
                self.skip()
        else:
            self._raw()

    def count(self) -> int:
        """Pass over the list at the cursor; how many objects or lists it holds."""
        return sum(len(ends) for _, ends in self._stretches())

    def batches(self, kind: type[ValueT]) -> Iterator[list[ValueT]]:
        """The elements of the list at the cursor, objects or lists themselves, in lists."""
        decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # a class as a value
        for stretch, ends in self._stretches():
            self._spend(len(ends))
            try:
                batch = decoder.decode(b"[" + stretch + b"]")
            except json_scan.NOT_JSON:
                batch = self._one_by_one(decoder, stretch, ends)
            if batch:
                yield batch
            del batch  # before the next is decoded: its memory is used again

    def _one_by_one(
        self, decoder: msgspec.json.Decoder[list[ValueT]], stretch: bytes, ends: list[int]
    ) -> list[ValueT]:
        batch: list[ValueT] = []
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            piece = stretch[json_scan.skip_gap(stretch, start) : end]
            try:
                batch += decoder.decode(b"[" + piece + b"]")
            except json_scan.NOT_JSON as error:
                self.unreadable += 1
                self.first_error = self.first_error or str(error)
        return batch

    def _stretches(self) -> Iterator[tuple[bytes, list[int]]]:
        """Whole elements of the list at the cursor, as much as a block holds at once, and where
        each ends. The first looks are short: a block may hold thousands of lists.
        """
        self._take(b"[")
        self._spend(_OPENING)
        if self.peek() == b"]":
            self._at += 1
            return
        look = _FIRST_LOOK
        while True:
            behind = self._at + look
            self._check_density(self._at, min(behind, len(self._text)))
            scan = json_scan.scan(memoryview(self._text)[self._at : behind])
            ends = scan.ends.tolist()
            if ends:
                first = json_scan.skip_gap(self._text, self._at)
                yield (
                    self._text[first : self._at + ends[-1]],
                    [self._at + end - first for end in ends],
                )
            if scan.closed is not None:
                self._at += scan.closed + 1
                return
            self._at += ends[-1] if ends else 0
            if behind < len(self._text):
                look *= _LONGER
                continue
            if len(self._text) - self._at > self._longest or not self._more(
                0 if ends else len(self._text) - self._at
            ):
                raise DocumentEnds(self.damage or "it ends inside a list")

    def _raw(self) -> bytes:
        """The text of the value at the cursor."""
        opening = self.peek()
        look = _FIRST_LOOK
        while True:
            self._check_density(self._at, min(self._at + look, len(self._text)))
            text = self._text[self._at : self._at + look]
            end = self._end(opening, text)
            if end is not None:
                self._at += end
                return text[:end]
            if look <= len(self._text) - self._at:
                look *= _LONGER
            elif len(self._text) - self._at > self._longest or not self._more(look):
                raise DocumentEnds(self.damage or "it ends inside a value")

    def _check_density(self, start: int, end: int) -> None:
        """Raises DocumentEnds for a long stretch of little but brackets: to look for its end takes
        some thirty times its size.
        """
        if end - start <= _WIDE:
            return
        opened = sum(self._text.count(bracket, start, end) for bracket in (b"[", b"{"))
        if opened > (end - start) // _APART:
            raise DocumentEnds("a value of it holds little but brackets")

    @staticmethod
    def _end(opening: bytes, text: bytes) -> int | None:
        """Where the value that `text` begins with ends; None where it goes on behind it."""
        if opening in _BRACKETS:
            ends = json_scan.scan(text).ends
            return int(ends[0]) if len(ends) else None
        if opening == b'"':
            return json_scan.string_end(text)
        return next((at for at, byte in enumerate(text) if byte in b",]}" + _SPACE), None)

    def _take(self, wanted: bytes) -> None:
        char = self.peek()
        if char != wanted:
            raise DocumentEnds(
                f"{char.decode('latin-1')!r} stands where {wanted.decode()!r} should"
            )
        self._at += 1

    def _next(self, closing: bytes) -> None:
        if self.peek() != closing:
            self._take(b",")

    def _more(self, least: int = 0) -> bool:
        """Add a block, or `least` bytes, to what is left of the text; False when the file had
        nothing more.
        """
        added, size = [self._text[self._at :]], 0
        for block in self._supply:
            added.append(block)
            size += len(block)
            if size >= least:
                break
        self._text, self._at = b"".join(added), 0
        return size > 0
