"""Lines of a text file, plain or gzipped, some megabytes at a time and never all at once."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from profharness.rundir.blocks import Blocks

LONGEST_LINE = 1 << 20
"""Of a line that is longer the rest is passed over: a record has some 5,000 bytes, a progress bar
that never ends its line has more."""


class TextLines:
    """The lines of a file, once. After the last one, `damage` says in words why they ended early,
    if they did, and `is_open` whether the last line has no end.

    A line ends where `str.splitlines` says, so that a progress bar's carriage returns end one.
    Bytes that are no UTF-8 become U+FFFD. A file is cut after the block in which its lines become
    more than `most`, which `limits` gives.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._blocks = Blocks(path, text=True)
        self._most = most
        self.damage = ""

    @property
    def is_open(self) -> bool:
        """Whether the last line has no end. Of an empty file: no."""
        return self._blocks.last not in (b"", b"\n", b"\r")

    def __iter__(self) -> Iterator[str]:
        """Raises InputError when the file cannot be opened or read."""
        given = 0
        for text in self._texts():
            lines = text.splitlines()
            yield from lines
            given += len(lines)
            if given > self._most:
                self.damage = "it holds more lines than a file of its size can"
                return
        self.damage = self._blocks.damage

    def _texts(self) -> Iterator[str]:
        """Whole lines each, but for the last."""
        rest: list[bytes] = []  # of the last line; joined once, however many blocks it goes through
        length, mark = 0, codecs.BOM_UTF8
        for block in self._blocks:
            whole, newline, behind = block.rpartition(b"\n")
            if newline:
                text = b"".join((*rest, whole, newline))
                yield text.removeprefix(mark).decode("utf-8", "replace")
                rest, length, mark = [behind], len(behind), b""
            elif length < LONGEST_LINE:
                rest.append(block)
                length += len(block)
        if length:
            yield b"".join(rest).removeprefix(mark).decode("utf-8", "replace")
