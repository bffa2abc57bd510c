"""Bytes of a file, plain or gzipped, in blocks of bounded size: what could be read is kept, what
stopped it is said.

The gzip format is RFC 1952. Python's own gzip module loses what it had decompressed when the end of
the file is missing, so the members are decompressed here.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Generator, Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from profharness.errors import InputError

GZIP = b"\x1f\x8b"
BLOCK_BYTES = 2 << 20
_WITH_HEADER = 16 + zlib.MAX_WBITS
_SMALL_BYTES = 1 << 16
_STEP = 256
_SHORTEST_STEP = 1 << 12
_TOGETHER = 1 << 16  # bytes of short members that make one block


class Growth(NamedTuple):
    """How much a gzipped file may hold: so many times its own size, and so many bytes more."""

    ratio: int
    beyond: int


LARGEST_RATIO = 100
"""DEFLATE reaches 1,032; traces in text reach 10 to 40."""
ANY_RATIO_BYTES = 64 << 20
ANY_TEXT = Growth(LARGEST_RATIO, ANY_RATIO_BYTES)


class Blocks:
    """Decompressed blocks of a file, once. After the last one, `damage` says in words why it ended
    early, if it did, and `last` is the last byte that iteration gave. `position` is how far
    `behind` has read a plain file, in bytes.

    Of a file that is `text`, blocks of nothing but zero bytes are passed over and told as damage: a
    crash of the machine, or a full disk, leaves a file's length without its data, and such a hole
    may be larger than the memory while it takes no room on the disk.
    """

    def __init__(
        self,
        path: Path,
        size: int = BLOCK_BYTES,
        *,
        text: bool = False,
        growth: Growth = ANY_TEXT,
    ) -> None:
        self.path = path
        self.size = max(size, len(GZIP))
        self.damage = ""
        self.last = b""
        self.position = 0
        self._text = text
        self._growth = growth
        self._zeros = 0
        self._lead = b""
        self._least = 0
        self._used: bytearray | None = None
        self._buffers = self._fill()

    def __iter__(self) -> Iterator[bytes]:
        """Blocks of at most `size` bytes (two at the least), none empty. Raises InputError when the
        file cannot be opened or read.
        """
        try:
            with _opened(self.path) as file:
                step = self._step(file)
                first = file.read(step)
                rest = iter(lambda: file.read(step), b"")
                if first.startswith(GZIP):
                    for block in self._inflated(first, rest):
                        self.last = block[-1:]
                        yield block
                    return
                for block in _chain(first, rest):
                    if self._text and is_empty(block):
                        self._pass_over(file, len(block))
                    else:
                        self.last = block[-1:]
                        yield block
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _step(self, file: BufferedReader) -> int:
        """How much to ask for at once: memory for it is taken before it is read, and a run may have
        thousands of small files.
        """
        return min(self.size, max(os.fstat(file.fileno()).st_size + 1, _SMALL_BYTES))

    def behind(self, lead: bytes, least: int = 0, *, used: bytearray | None = None) -> bytearray:
        """A buffer that begins with `lead`, and the next block, read to where it is to lie; only
        `lead` once the file has ended.

        The block is of `least` bytes where that is more than the usual size, unless the file ends.
        The memory of `used`, an earlier buffer, is taken where nothing refers to it any more.
        Blocks are given once, so this and iteration do not go together. Raises InputError as
        iteration does.
        """
        self._lead, self._least, self._used = lead, least, used
        return next(self._buffers, None) or bytearray(lead)

    def go_on_at(self, position: int) -> None:
        """Let `behind` read on from here in a plain file, whatever it has read so far."""
        self._buffers.close()
        self._buffers, self.position = self._fill(position), position

    def _fill(self, start: int = 0) -> Generator[bytearray]:
        try:
            with _opened(self.path) as file:
                file.seek(start)
                first = b"" if start else file.read(len(GZIP))
                if first == GZIP:
                    rest = iter(lambda: file.read(self.size), b"")
                    yield from self._gathered(self._inflated(first, rest))
                    return
                while True:
                    lead = self._lead + first
                    text = _sized(self._used, len(self._lead) + max(self.size, self._least))
                    text[: len(lead)] = lead
                    read = file.readinto(memoryview(text)[len(lead) :])
                    if not first and not read:
                        return
                    first = b""
                    self.position = file.tell()
                    del text[len(lead) + read :]
                    if self._text and is_empty(memoryview(text)[len(self._lead) :]):
                        self._pass_over(file, len(text) - len(self._lead))
                        self._used = None
                        continue
                    yield text
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _gathered(self, blocks: Iterator[bytes]) -> Iterator[bytearray]:
        found: list[bytes] = []
        size = 0
        for block in blocks:
            found.append(block)
            size += len(block)
            if size >= self._least:
                yield bytearray().join((self._lead, *found))
                found, size = [], 0
        if found:
            yield bytearray().join((self._lead, *found))

    def _pass_over(self, file: BufferedReader, length: int) -> None:
        """Goes on behind the hole in which the last `length` bytes lie, without reading it where
        the file system knows of it.
        """
        here = file.tell()
        behind = here
        # a file of its own: moving in it must not move what is buffered of the other
        with self.path.open("rb", buffering=0) as probe:
            try:
                behind = os.lseek(probe.fileno(), here, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # no data behind
                    behind = os.fstat(probe.fileno()).st_size
                # else the file system does not say, and what follows is read
        file.seek(max(behind, here))
        self._tell_zeros(length + max(behind - here, 0))

    def _tell_zeros(self, count: int) -> None:
        self._zeros += count
        self.damage = f"{self._zeros} zero bytes stand in it, as a crash of the machine leaves them"

    def _inflated(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        for block in self._inflate(first, rest):
            if self._text and is_empty(block):
                self._tell_zeros(len(block))
            else:
                yield block

    def _inflate(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        short: list[bytes] = []  # blocks of short members, which are given together
        waiting = 0
        for block in self._members(_chain(first, rest)):
            if not waiting and len(block) >= _TOGETHER:
                yield block
                continue
            short.append(block)
            waiting += len(block)
            if waiting >= min(_TOGETHER, self.size):
                yield from self._cut(b"".join(short))
                short, waiting = [], 0
        if waiting:
            yield from self._cut(b"".join(short))

    def _cut(self, block: bytes) -> Iterator[bytes]:
        return (block[at : at + self.size] for at in range(0, len(block), self.size))

    def _members(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """What each member of the file gives. Of many short members only a stretch of their own
        size is handed on at once: what is left behind one is copied.
        """
        member = zlib.decompressobj(_WITH_HEADER)
        step, used, given = self.size, 0, 0
        for compressed in chunks:
            at = 0
            while at < len(compressed):
                pending = compressed[at : at + step] if at or step < len(compressed) else compressed
                if member.eof:
                    if not pending.startswith(GZIP[: len(pending)]):
                        self.damage = "bytes that are not gzip follow its compressed data"
                        return
                    member = zlib.decompressobj(_WITH_HEADER)
                before = member.copy()
                try:
                    block = member.decompress(pending, self.size)
                except zlib.error as error:
                    yield from _salvage(before, pending)
                    self.damage = f"its compressed data is damaged ({error})"
                    return
                taken = len(pending) - len(member.unconsumed_tail or member.unused_data)
                at, used, given = at + taken, used + taken, given + len(block)
                step = max(_SHORTEST_STEP, 4 * taken) if member.eof else min(2 * step, BLOCK_BYTES)
                if block:
                    yield block
                if given > self._growth.beyond + self._growth.ratio * used:
                    self.damage = (
                        f"it holds more than {self._growth.ratio} times its size, as no "
                        "trace does; decompress it yourself to read it whole"
                    )
                    return
        if not member.eof:
            self.damage = "its compressed data ends early"


def is_empty(block: bytes | memoryview) -> bool:
    """Whether all its bytes are zero, of which there is one at least."""
    return (
        len(block) > 0
        and not (block[0] or block[-1])
        and bytes(memoryview(block)) == bytes(len(block))
    )


def _opened(path: Path) -> BufferedReader:
    """The file, open. Raises InputError for a pipe, a device or a socket, which would be waited for
    or would never end; pipes that the user names were read before (`private.spool`).
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path} is a pipe, a device or a socket, not a file", "name a file")
    return path.open("rb")


def _sized(used: bytearray | None, size: int) -> bytearray:
    """A buffer of this size: `used` with whatever it holds, or a new one where something refers to
    its memory, which then cannot change.
    """
    if used is None:
        return bytearray(size)
    try:
        used.append(0)  # only another length is refused
    except BufferError:
        return bytearray(size)
    del used[size:]
    used.extend(bytes(size - len(used)))
    return used


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
        yield from rest


def _salvage(member: zlib._Decompress, compressed: bytes) -> Iterator[bytes]:
    """What a damaged stretch of compressed data still gives, in small steps up to the damage."""
    try:
        for start in range(0, len(compressed), _STEP):
            if block := member.decompress(compressed[start : start + _STEP]):
                yield block
    except zlib.error:
        return


def read_head(path: Path, size: int) -> bytes:
    """The first `size` decompressed bytes, fewer if the file is shorter or damaged.

    Raises InputError when it is missing, a folder, unreadable or empty.
    """
    if path.is_dir():
        raise InputError(
            f"{path} is a folder, not a trace file", "name the files inside, or a run directory"
        )
    head = bytearray()
    blocks = Blocks(path, size)
    for block in blocks:
        head += block
        if len(head) >= size:
            break
    if not head:
        what = f"cannot be read: {blocks.damage}" if blocks.damage else "is empty"
        raise InputError(
            f"{path} {what}", "the writer was interrupted before it wrote anything: record again"
        )
    return bytes(head[:size])


def _unreadable(path: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path} does not exist", "check the spelling of the path")
    return InputError(
        f"{path} cannot be read: {error.strerror or error}",
        "check the permissions of the file and its disk",
    )
