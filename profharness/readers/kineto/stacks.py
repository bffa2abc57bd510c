"""Kineto's events to columns where Python's frames are wanted too: `python_function` spans, which
torch.profiler records with stacks.

They may be nine tenths of a file, and only tables by module and by stack need them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from profharness.readers.kineto import sorting
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.unions import Timed, UsualWithFrames
from profharness.trace.wanted import Wanted


class StackRows(KinetoRows):
    """All rows, and those of Python functions and modules."""

    usual: ClassVar[object] = UsualWithFrames
    wanted: ClassVar[Wanted] = Wanted.STACKS

    def _adders(self) -> dict[str, Callable[[Any], None]]:
        return super()._adders() | {sorting.FRAME: self._add_frames}

    def _add_frames(self, events: Sequence[Timed]) -> None:
        events, start, dur = self._timed(events)
        self.frames.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            pid=self.odd.whole("pid", [e.pid for e in events]),
            tid=self.odd.whole("tid", [e.tid for e in events], signed=True),
        )


class ShownRows(StackRows):
    """The same rows for a trace that is drawn, whose figures leave the frames out."""

    wanted: ClassVar[Wanted] = Wanted.SHOWN
