"""A file's decompressed bytes as Arrow reads them, and the end of its reading ahead."""

from __future__ import annotations

import codecs
import io
import threading
from collections.abc import Iterator
from typing import Any, Self

from profharness.rundir.blocks import Blocks

_MOST_READS = 16
_PREFIXES = (b"0x", b"0X")


class ArrowBytes(io.RawIOBase):
    """The decompressed bytes of a file as Arrow wants to read them."""

    def __init__(self, blocks: Blocks, *, clean: bool = False) -> None:
        """`clean` replaces bytes that are no UTF-8, as the texts of fields are decoded anyway."""
        self._supply = _as_utf8(blocks) if clean else iter(blocks)
        self._rest = memoryview(b"")
        self._is_over = self._told_end = False
        self._before = b""
        self.has_hexadecimal = False
        """Whether `0x` stands in what was read so far: Arrow takes it for the begin of a number."""

    def __enter__(self) -> Self:
        """Arrow hands blocks from the thread that reads to those that compute: of each kind one
        works here, so that what was asked for first is done first.
        """
        _ONE_THREAD.begin()
        return self

    def readable(self) -> bool:
        """Arrow asks before it reads."""
        return True

    def __exit__(self, *_: object) -> None:
        """Nothing more is given, and no thread of Arrow knows any of it: at the end of a file, too,
        where one may still let go of the last block.
        """
        self._is_over = True
        self._wait_for_reads()
        _ONE_THREAD.end()

    def readinto(self, buffer: Any) -> int:
        """How many bytes were put into the buffer; none at the end or after an error."""
        target = memoryview(buffer)
        if self._is_over:
            return 0
        if not self._rest:
            block = next(self._supply, b"")
            if not self.has_hexadecimal:
                border = self._before + block[:1]
                self.has_hexadecimal = any(x in text for text in (border, block) for x in _PREFIXES)
                self._before = block[-1:]
            self._rest = memoryview(block)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def stream(self) -> io.BufferedReader:
        """What Arrow is given to read."""
        return _Stream(self, 1 << 16)

    def tell_end(self) -> None:
        """Arrow has read nothing, and will not ask again."""
        self._told_end = True

    def _wait_for_reads(self) -> None:
        """Arrow reads ahead in a thread of its own, which goes on after an error. A process that
        ends meanwhile is aborted, since the thread comes back into an interpreter that is gone.

        Its only thread for reading takes one task after the other, and each read asks for the next
        one, until it is told that the file has ended: with a task of our own between them, a few
        reads lie ahead at the most. Where the reader was given up, none comes that could be told.
        """
        for _ in range(_MOST_READS):
            told = self._told_end
            _read_something()
            if told:
                return


class _OneThread:
    """Arrow's threads for reading and for computing, one of each while any file is read here: a
    program may read several in threads of its own. Those that compute are as many as before when
    the last one has been read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers, self._before = 0, 1

    def begin(self) -> None:
        """One file more is read."""
        import pyarrow as pa

        with self._lock:
            if not self._readers:
                self._before = pa.cpu_count()
                pa.set_io_thread_count(1)
                pa.set_cpu_count(1)
            self._readers += 1

    def end(self) -> None:
        """One file less is read."""
        import pyarrow as pa

        with self._lock:
            self._readers -= 1
            if not self._readers:
                pa.set_cpu_count(self._before)


_ONE_THREAD = _OneThread()


class _Stream(io.BufferedReader):
    raw: ArrowBytes

    def read(self, size: int | None = -1, /) -> bytes:
        block = super().read(size)
        if not block:
            self.raw.tell_end()
        return block


def _read_something() -> None:
    """Of Arrow's own memory: a thread may let go of it when nobody waits any more, and to let go of
    an object of Python it would need the interpreter.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    memory = pa.BufferOutputStream()
    memory.write(b"a\n1\n")
    # by the thread that reads, and by the one that computes
    options = arrow_csv.ReadOptions(use_threads=True)
    arrow_csv.read_csv(pa.BufferReader(memory.getvalue()), read_options=options)


def _as_utf8(blocks: Blocks) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for block in blocks:
        if text := decoder.decode(block).encode():
            yield text
    yield decoder.decode(b"", final=True).encode()
