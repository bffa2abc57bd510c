"""One Kineto file read by several processes at once, with the same rows as by one.

The process that wants the rows reads the file from its beginning. Helpers read stretches of it,
the last first, and send their rows as arrays. Where the reader comes to a stretch that a helper
has read, it takes the helper's rows if it would have begun the stretch at the same event: all that
a stretch depends on. Otherwise (damage, a string that looks like events) it reads this stretch
itself, so that no answer and no message depends on who read what. It also does if a helper dies.

A helper ends when its pipes close, and Ctrl-C in a terminal does not reach it: none outlives the
reader.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Protocol

from profharness.node.cores import READING, processes_for
from profharness.node.spare import take
from profharness.readers.bytes.allocation import keep_freed_memory
from profharness.readers.bytes.json_stretches import SharedStream
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.packed import PackedRows, add_packed, pack
from profharness.readers.kineto.streams import open_stream
from profharness.readers.kineto.unions import Record
from profharness.rundir.blocks import BLOCK_BYTES, GZIP
from profharness.trace.model import Strings
from profharness.trace.wanted import Wanted

_STRETCHES = 64  # of a file: at the end one process waits for the other's last


@dataclass(frozen=True)
class Task:
    """What a helper is told once: the file, what is wanted of it, and the size of its blocks."""

    path: str
    wanted: Wanted
    block_bytes: int = BLOCK_BYTES


class Helper(Protocol):
    """Who reads stretches, in the order in which they are asked for."""

    def ask(self, start: int, stop: int) -> None:
        """Let it read what lies between these positions."""

    def answer(self, *, waits: bool) -> PackedRows | None:
        """The rows of the stretch that was asked for first among those not answered; None where
        they cannot be joined. Raises BlockingIOError where there are none yet, unless it `waits`,
        and EOFError where there will be none.
        """

    def close(self) -> None:
        """It is needed no more."""


class Sharing:
    """The stretches of a file, and who reads which: this process from the front, helpers from the
    back. `edges` are the positions between stretches, multiples of the block size; what lies before
    the first and behind the last is read here.
    """

    def __init__(self, edges: Sequence[int], helpers: Sequence[Helper]) -> None:
        self._edges = edges
        self._asked: dict[Helper, deque[int]] = {helper: deque() for helper in helpers}
        self._read: dict[int, PackedRows | None] = {}
        self._front = 0  # the next stretch that nobody has begun to read, or that a helper has
        self._back = len(edges) - 1  # the first that a helper has
        self._ask()

    def go_on(self, stream: SharedStream[Record], rows: KinetoRows) -> None:
        """After each list of events that was read here: hear the helpers, and let `stream` and
        `rows` go on behind what they have read.
        """
        if not self._asked and not self._read:
            return
        self._hear(waits=False)
        while self._front < len(self._edges) - 1 and stream.position >= self._edges[self._front]:
            if self._front >= self._back and stream.position == self._edges[self._front]:
                self._take(stream, rows)
            self._read.pop(self._front, None)
            self._front += 1
        if self._front == len(self._edges) - 1:
            self.close()
        else:
            self._ask()

    def close(self) -> None:
        """Do without helpers from here on."""
        for helper in self._asked:
            helper.close()
        self._asked.clear()
        self._read.clear()

    def _take(self, stream: SharedStream[Record], rows: KinetoRows) -> None:
        """Join the stretch at the front, which a helper reads, if it can be joined."""
        while self._front not in self._read:
            self._hear(waits=True)
        found = self._read[self._front]
        if found is not None and stream.join(found.stretch):
            add_packed(rows, found)

    def _hear(self, *, waits: bool) -> None:
        """Take what helpers have read; with `waits`, of the one that reads what is needed next."""
        for helper, asked in list(self._asked.items()):
            while asked:
                try:
                    found = helper.answer(waits=waits and self._front in asked)
                except BlockingIOError:
                    break
                except EOFError:
                    self._read.update(dict.fromkeys(asked))
                    del self._asked[helper]
                    helper.close()
                    break
                place = asked.popleft()
                if place >= self._front:
                    self._read[place] = found
        self._ask()

    def _ask(self) -> None:
        """Keep each helper busy; near the end without a stretch in reserve, for which this process
        would have to wait.
        """
        for helper, asked in self._asked.items():
            left = self._back - self._front
            while left > 0 and len(asked) < (2 if left > 2 * len(self._asked) else 1):
                self._back -= 1
                left -= 1
                asked.append(self._back)
                helper.ask(self._edges[self._back], self._edges[self._back + 1])


@contextmanager
def shared(path: Path, wanted: Wanted, block_bytes: int) -> Iterator[Sharing]:
    """The sharing of one file by as many processes as may read it, `cores.processes_for`: by this
    one alone where that is one, where the file is gzipped, which can only be read from its
    beginning, and where it is too small to be shared.
    """
    edges = _edges(path, block_bytes) if (processes := processes_for(path)) > 1 else []
    helpers: list[Helper] = []
    if len(edges) > 1:
        task = Task(os.path.abspath(path), wanted, block_bytes)  # noqa: PTH100  it may be spooled
        count = min(processes, len(edges)) - 1
        helpers = [found for _ in range(count) if (found := _process_for(task)) is not None]
    sharing = Sharing(edges, helpers)
    try:
        yield sharing
    finally:
        sharing.close()


def _edges(path: Path, block_bytes: int) -> list[int]:
    """Where a file may be cut, at multiples of the block size; none where it cannot be."""
    with path.open("rb") as file:
        if file.read(len(GZIP)) == GZIP:
            return []
        size = os.fstat(file.fileno()).st_size
    last = (size - 1) // block_bytes * block_bytes
    step = max(size // _STRETCHES // block_bytes, 1) * block_bytes
    return [*range(step, last, step), last] if last > 0 else []


class HelperProcess:
    """A process of this machine that reads stretches. Raises OSError where none can be started."""

    def __init__(self, task: Task) -> None:
        self._process = take(READING)
        self._send(task)

    def ask(self, start: int, stop: int) -> None:
        """It reads this once it has read what it was asked for before."""
        self._send((start, stop))

    def answer(self, *, waits: bool) -> PackedRows | None:
        """As they come through its pipe."""
        if not wait([self._process.answers], None if waits else 0):
            raise BlockingIOError
        try:
            found = self._process.answers.recv()
        except OSError as error:
            raise EOFError from error
        return found if isinstance(found, PackedRows) else None

    def close(self) -> None:
        """It ends here and now, whatever it is at."""
        self._process.close()

    def _send(self, what: object) -> None:
        try:
            self._process.questions.send(what)
        except OSError:  # it died: its answer says so
            return


def _process_for(task: Task) -> HelperProcess | None:
    """A helper; None where no process can be started, which is no reason not to read."""
    try:
        return HelperProcess(task)
    except OSError:
        return None


def serve() -> None:
    """What a helper does, from the first word on its standard input to the closing of one of its
    pipes.
    """
    keep_freed_memory()
    questions = Connection(os.dup(sys.stdin.fileno()), writable=False)
    answers = Connection(os.dup(sys.stdout.fileno()), readable=False)
    try:
        task: Task = questions.recv()
        while True:
            start, stop = questions.recv()
            answers.send(read_stretch(task, start, stop))
    except (EOFError, BrokenPipeError):
        return


def read_stretch(task: Task, start: int, stop: int) -> PackedRows | None:
    """The rows of what lies between two positions of a file; None where they cannot be joined."""
    rows, stream = open_stream(Path(task.path), task.wanted, Strings(), task.block_bytes)
    for batch in stream.stretch(start, stop):
        rows.add(batch)
        del batch
    return pack(rows, stream.as_stretch(stop))
