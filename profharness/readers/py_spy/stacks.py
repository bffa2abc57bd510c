"""py-spy's events as spans of stack frames, by process and thread.

py-spy writes what changed between two samples of a thread: the ends of frames that are gone, then
the begins of new ones, all at the time of the sample. It tells threads apart by their pthread
number, which a forked child shares with its parent: their samples alternate on one stack, where
each takes away what the other put there. The stack is therefore played back as py-spy played it,
and each state of it is a sample of the process and thread that its own outermost frames name.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from profharness.readers.bytes.limits import LEVELS
from profharness.trace.places import command_name

_PROCESS = re.compile(r'process (\d{1,9}):"(.*)"\Z', re.DOTALL)
_THREAD = re.compile(r"thread \((?:(\d{1,15})|0[xX]([0-9a-fA-F]{1,16}))\)(?:: (.*))?\Z", re.DOTALL)
_TID_BITS = (1 << 63) - 1


class Frame(NamedTuple):
    """A function at a line of its file, as py-spy names it; line 0 is unknown."""

    file: str
    line: int
    function: str


class Owner(NamedTuple):
    """A thread of a process: the number of the operating system, or the pthread number where that
    one is not known.
    """

    pid: int
    tid: int


class Span(NamedTuple):
    """A frame from one sample to the one that no longer had it, in ns since time zero."""

    start_ns: int
    end_ns: int
    frame: int
    owner: Owner


@dataclass(eq=False)
class _Played:
    """The stack of one pthread number, as py-spy has it, and the sample that is being taken up.
    `begun` says whether a frame began in it. `beyond` counts frames deeper than any stack may be.
    """

    stack: list[int] = field(default_factory=list)
    at_ns: int = 0
    pid: int = -1
    begun: bool = False
    pending: bool = False
    beyond: int = 0


@dataclass(eq=False)
class _Open:
    """The stack of an owner at its last sample: frames, each with its start."""

    frames: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    last_ns: int = 0


class Stacks:
    """Plays events back. `frames` are the distinct frames by number; `names` the names of processes
    and threads; `odd` counts by a key what did not fit.
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.spans: list[Span] = []
        self.names: dict[tuple[int, int], str] = {}
        self.scripts: set[str] = set()
        self.odd: Counter[str] = Counter()
        self.last_ns = 0
        self._numbers: dict[Frame, int] = {}
        self._played: dict[int, _Played] = {}
        self._outermost: set[int] = set()
        self._open: dict[Owner, _Open] = {}
        self._placed: dict[int, tuple[str, int, str] | None] = {}

    @property
    def owners(self) -> tuple[Owner, ...]:
        """All threads of which there was a sample."""
        return tuple(self._open)

    def add(self, begins: bool, at_ns: int, pid: int, tid: int, frame: Frame) -> None:
        """Take up one event: a frame begins or ends on a thread."""
        played = self._played.get(tid)
        if played is None:
            played = self._played[tid] = _Played(at_ns=at_ns, pid=pid)
        if at_ns < played.at_ns:
            self.odd["earlier"] += 1
            at_ns = played.at_ns
        if at_ns != played.at_ns or pid != played.pid or (played.begun and not begins):
            self._sample(played, tid)
            played.at_ns, played.pid, played.begun = at_ns, pid, False
        played.pending = True
        self.last_ns = max(self.last_ns, at_ns)
        if begins:
            played.begun = True
            if len(played.stack) < LEVELS:
                played.stack.append(self._number(frame))
            else:
                played.beyond += 1
                self.odd["deep"] += 1
            return
        if played.beyond:
            played.beyond -= 1
        elif not played.stack:
            self.odd["unbegun"] += 1
        elif self.frames[played.stack.pop()] != frame:
            self.odd["other"] += 1

    def close(self, ended_ns: dict[int, int], *, is_whole: bool) -> None:
        """End all frames. At the end of its file py-spy ends what its last samples held, at one
        time, that of writing: what was still there lasted until then, and a thread that had ended
        before until `ended_ns` (by its number, since time zero).
        """
        for tid, played in self._played.items():
            is_closing = played.at_ns == self.last_ns and not played.stack and not played.begun
            if not (is_whole and is_closing):
                self._sample(played, tid)
                self.odd["cut"] += is_whole and bool(played.stack)
        for owner, held in self._open.items():
            end = min(ended_ns.get(owner.tid, self.last_ns), self.last_ns)
            self._end(held, 0, max(end, held.last_ns), owner)

    def _number(self, frame: Frame) -> int:
        number = self._numbers.get(frame)
        if number is None:
            number = self._numbers[frame] = len(self.frames)
            self.frames.append(frame)
        return number

    def _sample(self, played: _Played, tid: int) -> None:
        """The stack as it is now is a sample of the thread that it names."""
        if not played.pending:
            return
        played.pending = False
        owner, depth = self._owner(played, tid)
        held = self._open.get(owner)
        frames = played.stack[depth:]
        if frames:
            self._add_script(frames[0])
        if held is None:
            held = self._open[owner] = _Open()
        common = 0
        for ours, theirs in zip(held.frames, frames, strict=False):
            if ours != theirs:
                break
            common += 1
        self._end(held, common, played.at_ns, owner)
        held.frames += frames[common:]
        held.starts += [played.at_ns] * (len(frames) - common)
        held.last_ns = played.at_ns

    def _end(self, held: _Open, depth: int, at_ns: int, owner: Owner) -> None:
        """End the frames of an owner from this depth on."""
        for frame, start in zip(held.frames[depth:], held.starts[depth:], strict=True):
            if at_ns > start:
                self.spans.append(Span(start, at_ns, frame, owner))
        del held.frames[depth:], held.starts[depth:]

    def _owner(self, played: _Played, tid: int) -> tuple[Owner, int]:
        """Whose stack it is, by its outermost frames, and how many of them are such names."""
        pid, thread, depth = played.pid, tid, 0
        for number in played.stack:
            place = self._place(number)
            if place is None:
                break
            kind, value, name = place
            if kind == "process":
                pid = value
                self.names.setdefault((pid, -1), name)
            else:
                thread = value
                if name:
                    self.names[pid, thread] = name
            depth += 1
        return Owner(pid, thread), depth

    def _place(self, number: int) -> tuple[str, int, str] | None:
        """What a frame without a file names: a process or a thread; None for a function."""
        if number not in self._placed:
            self._placed[number] = _place_of(self.frames[number])
        return self._placed[number]

    def _add_script(self, number: int) -> None:
        """The folder of a program, from where Python begins its search for modules: that of the
        outermost frame of a program that is run by its file.
        """
        if number in self._outermost:
            return
        self._outermost.add(number)
        file, _, function = self.frames[number]
        if function == "<module>" and file.startswith("/"):
            self.scripts.add(file.rpartition("/")[0] + "/")


def _place_of(frame: Frame) -> tuple[str, int, str] | None:
    if frame.file:
        return None
    if found := _PROCESS.match(frame.function):
        return "process", int(found[1]), command_name(found[2].split())
    if found := _THREAD.match(frame.function):
        tid = int(found[1]) if found[1] else int(found[2], 16) & _TID_BITS
        return "thread", tid, found[3] or ""
    return None
