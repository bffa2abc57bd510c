"""A Chrome trace that several processes read at once: one reads from the beginning, others read
stretches of it, which are joined where the first would have read the same.

Cutting a file at a multiple of the block size is a guess, too: what looks like the border between
two events before it may stand inside of one. Reading from the beginning cuts at the same guess,
but knows whether it was right; so a stretch is right where both say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profharness.readers.bytes import json_scan
from profharness.readers.bytes.json_stream import WINDOW, EventStream, EventT
from profharness.readers.bytes.limits import records_of
from profharness.rundir.blocks import BLOCK_BYTES


@dataclass(frozen=True)
class Stretch:
    """What `SharedStream.stretch` found between two positions of a plain file, `start` and `stop`:
    where its first event and the first behind it stand, and the counts of its events.
    """

    start: int
    stop: int
    first: int
    behind: int
    events: int
    unreadable: int
    repaired: int
    first_error: str


class SharedStream(EventStream[EventT]):
    """The events of a plain file, which other processes read, too."""

    def __init__(
        self,
        path: Path,
        event: type[EventT],
        block_bytes: int = BLOCK_BYTES,
        *,
        usual: object = None,
    ) -> None:
        super().__init__(path, event, block_bytes, usual=usual)
        self._begin = 0
        self._first: int | None = None

    @property
    def position(self) -> int:
        """How far a plain file has been read; the next event begins before it."""
        return self._blocks.position

    def stretch(self, start: int, stop: int) -> Iterator[list[EventT]]:
        """Lists of the events of one stretch of a plain file, from what looks like the first event
        that does not end before `start`; the last event may end behind `stop`, and is not given.

        Reading the whole file cuts it at the same places if both are multiples of the block size.
        `as_stretch` gives what `join` needs to find out.
        """
        with self.path.open("rb") as file:
            low = max(start - WINDOW, 0)
            file.seek(low)
            before = file.read(start - low)
        border = json_scan.last_border(before, 0, WINDOW)
        if border is None:
            return
        self._begin, self._first = start, low + border[1]
        self._go_on_with(before[border[1] :], start)
        if not self._more():
            return
        for batch in self._batches():
            yield batch
            del batch
            if self.position >= stop:
                return

    def as_stretch(self, stop: int) -> Stretch | None:
        """What `stretch` has read; None where it met damage, the end of the list or an event as
        long as a block: whoever comes from the front then reads this stretch by himself.
        """
        if self._closed or self._damaged or self._first is None or self.position != stop:
            return None
        return Stretch(
            self._begin,
            stop,
            self._first,
            self._next_event,
            self.events,
            self.unreadable,
            self.repaired,
            self.first_error,
        )

    def join(self, stretch: Stretch) -> bool:
        """Go on behind a stretch that was read elsewhere, between two lists. False, and nothing
        done, unless this stream would have read the same: it stands at the stretch's start, and
        its next event is the stretch's first.
        """
        here = (stretch.start, stretch.first) == (self.position, self._next_event)
        count = self.events + self.unreadable + stretch.events + stretch.unreadable
        if not here or self._closed or self.damage or count > records_of(self.path):
            return False
        with self.path.open("rb") as file:
            file.seek(stretch.behind)
            rest = file.read(stretch.stop - stretch.behind)
        self._go_on_with(rest, stretch.stop)
        self.events += stretch.events
        self.unreadable += stretch.unreadable
        self.repaired += stretch.repaired
        self.first_error = self.first_error or stretch.first_error
        return True

    @property
    def _next_event(self) -> int:
        """Where in a plain file the next event begins."""
        return self.position - len(self._text) + json_scan.skip_gap(self._text, self._start)

    @property
    def _damaged(self) -> bool:
        return bool(self.damage or self._blocks.damage)

    def _go_on_with(self, rest: bytes, position: int) -> None:
        """Take this as what is left of the text, which ends at a position of the file."""
        self._text, self._start = bytearray(b"[" + rest), 1
        self._blocks.go_on_at(position)
