"""How the workload itself ended, told apart from how the profiler around it ended.

Three witnesses: wrappers/status.py, where the tool is a process of its own around the workload; the
hooks' `bye` file, by which a Python process says that it ended by itself before the profiler's
finalisation inside it began, with its exit status beside it; and a scan's worker, which says so in
its results. Where all are silent, what the tool said on stderr tells of a signal that ended the
process.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from profharness.launchers import Outcome
from profharness.launchers.process_tree import tree
from profharness.layers.contract import Where
from profharness.supervise import sentences

LOOK_EVERY_S = 1.0
_VALUE = "..."
_OPTION_NAME = re.compile(r"--[A-Za-z0-9_.-]{0,62}(?:=|\Z)|-[A-Za-z]")


class _Status(msgspec.Struct):
    """wrappers/status.py's note; without `status` the command is still running."""

    pid: int
    status: int | None = None
    by_signal: bool = False


class _Bye(msgspec.Struct):
    """The hooks' word that a process's Python ended by itself; `uncaught`: by an exception, so with
    status 1.
    """

    pid: int
    argv: tuple[str, ...] = ()
    uncaught: bool = False
    status: int | None = None

    @property
    def known(self) -> int:
        """Its exit status, or what its last exception says of it."""
        return int(self.uncaught) if self.status is None else self.status


NoteT = TypeVar("NoteT", _Status, _Bye)


@dataclass(frozen=True)
class OwnEnds:
    """Exit statuses of the workload's executions as far as they are known, and how many are still
    running.

    `recorded`: wrappers/status.py saw them end; else they come from what Python said. `exact`: they
    are what the processes passed to exit(), and no guess.
    """

    statuses: tuple[int, ...] = ()
    running: int = 0
    recorded: bool = False
    exact: bool = False

    @property
    def over(self) -> bool:
        """Whether the workload has ended, as far as anybody can tell."""
        return bool(self.statuses) and not self.running

    @property
    def status(self) -> int | None:
        """The first status that is not 0, else 0; None when nothing is known."""
        return next((status for status in self.statuses if status), 0) if self.statuses else None


class Ending:
    """Follows one pass of a tool; `overdue` says when it went on too long after the workload's own
    end.

    The limit counts from the last time that the tool wrote something into its folders: writing a
    large trace out may take minutes and is no hang.
    """

    def __init__(
        self, where: Where, folders: Sequence[Path], limit_s: float, words: Callable[[], str] = str
    ) -> None:
        self._statuses = where.statuses
        self._hooks = where.hooks
        self._folders = tuple(folders)
        self._limit_s = limit_s
        self._words = words
        self._counting = bool(where.counters)
        self._roots: list[int] = []
        self._done: set[int] = set()
        self._tool_words: list[tuple[str, ...]] = []
        self._old = set(self._statuses.glob("status-*.json"))
        self._old_byes = set(self._hooks.glob("bye-*.json"))
        self._activity: tuple[int, ...] = ()
        self._since: float | None = None
        self._next_look = 0.0

    def around(self, argv: Sequence[str]) -> None:
        """The command line of the tool, which may be a Python program itself: its own bye is not
        the workload's.
        """
        self._tool_words.append(tuple(_without_value(word) for word in argv[1:]))

    def follow(self, pid: int) -> None:
        """The process that was started: the tool, or the workload that the tool replaced
        itself by.
        """
        self._roots.append(pid)

    def ended(self, pid: int) -> None:
        """A scan's worker, in which there are no hooks, reported its end and will exit with 0."""
        self._done.add(pid)

    def own_ends(self) -> OwnEnds:
        """What the witnesses say now. Where Python said bye, a death by a signal after it was not
        the workload's own doing.

        A bye without a status does not know of a sys.exit(n): it counts for a process that then
        hung or died, or is still there.
        """
        notes = [
            note
            for path in sorted(set(self._statuses.glob("status-*.json")) - self._old)
            if (note := _read(path, _Status))
        ]
        if not notes:
            byes = [bye for pid in self._roots if (bye := self._bye(pid))]
            return OwnEnds(
                tuple(bye.known for bye in byes),
                exact=bool(byes) and all(bye.status is not None for bye in byes),
            )
        statuses: list[int] = []
        for note in notes:
            bye = self._bye(note.pid)
            if bye is not None and (
                note.status is None or note.by_signal or bye.status is not None
            ):
                statuses.append(bye.known)
            elif note.status is not None:
                statuses.append(note.status)
        return OwnEnds(tuple(statuses), len(notes) - len(statuses), recorded=True)

    def own_status(self, outcome: Outcome) -> int | None:
        """The workload's own exit status; None where that is the outcome's, or nobody knows."""
        ends = self.own_ends()
        return (
            ends.status
            if ends.recorded or ends.exact or outcome.by_signal or outcome.overdue
            else None
        )

    def said_bye(self, pid: int) -> bool:
        """Whether the process's Python came to its own end in this pass."""
        return self._bye(pid) is not None

    def _bye(self, pid: int) -> _Bye | None:
        if pid in self._done:
            return _Bye(pid)
        path = self._hooks / f"bye-{pid}.json"
        bye = None if path in self._old_byes else _read(path, _Bye)
        if bye is None or any(
            words and bye.argv[-len(words) :] == words for words in self._tool_words
        ):
            return None
        return msgspec.structs.replace(bye, status=_noted_status(path.with_suffix(".status")))

    def overdue(self) -> bool:
        """Looks once a second at most; call it as often as you like."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + min(LOOK_EVERY_S, self._limit_s / 4)
        activity = self._activity_after_end()
        if activity is None:
            self._since = None
            return False
        if self._since is None or activity != self._activity:
            self._since, self._activity = now, activity
        return now - self._since > self._limit_s

    def _activity_after_end(self) -> tuple[int, ...] | None:
        """What changes while the tool still works after the workload's end; None before that end.

        A process that the tool's handler says was hit by a signal has ended, unless it was one of
        several: so it also must not have used the CPU. A tool that refused the pass's counters has
        nothing left to do.
        """
        if self.own_ends().over:
            return (_size(self._folders),)
        said = self._words()
        if self._counting and sentences.too_many_counters(said):
            return ()
        if sentences.caught_signal(said) is not None:
            return (_size(self._folders), _cpu_ms(self._roots))
        return None


def _size(folders: Sequence[Path]) -> int:
    total = 0
    for path in (path for folder in folders for path in folder.rglob("*")):
        with suppress(OSError):  # a tool removes files of its own between two looks
            total += path.stat().st_size if path.is_file() else 0
    return total


def _cpu_ms(roots: Sequence[int]) -> int:
    """CPU time that the processes and their descendants have used, with that of the children that
    they have waited for, in ms.
    """
    import psutil

    total = 0
    for process in {process for root in roots for process in tree(root)}:
        try:
            used = process.cpu_times()
        except psutil.Error:
            continue  # it ended in the meantime
        seconds = used.user + used.system + used.children_user + used.children_system
        total += round(1000 * seconds)
    return total


def _without_value(word: str) -> str:
    """A word as the hooks write it, who keep the names of options alone: the same rule as in
    wrappers/hooks/profharness_hooks/command_line.py.
    """
    name = _OPTION_NAME.match(word)
    if name is None:
        return _VALUE
    return word if name.end() == len(word) else name.group() + _VALUE


def _noted_status(path: Path) -> int | None:
    """The status as a shell sees it, from the native int that
    wrappers/hooks/profharness_hooks/exit_status.py has written; None without.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return struct.unpack("i", data)[0] & 0xFF if len(data) == struct.calcsize("i") else None


def _read(path: Path, kind: type[NoteT]) -> NoteT | None:
    """A note, or None while it is not there or not whole."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
