"""How the workload itself ended, told apart from how the profiler around it ended.

Two witnesses: wrappers/status.py, where the tool is a process of its own around the workload, and the hooks' `bye`
file, by which a Python process says that it ended by itself before the profiler's finalisation inside it began.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from profharness.launchers import Outcome
from profharness.layers import Where

LOOK_EVERY_S = 1.0


class _Status(msgspec.Struct):
    """wrappers/status.py's note; without `status` the command is still running."""

    pid: int
    status: int | None = None
    by_signal: bool = False


class _Bye(msgspec.Struct):
    """The hooks' word that a process's Python ended by itself; `uncaught`: by an exception, so with status 1."""

    pid: int
    argv: tuple[str, ...] = ()
    uncaught: bool = False


NoteT = TypeVar("NoteT", _Status, _Bye)


@dataclass(frozen=True)
class OwnEnds:
    """Exit statuses of the workload's executions as far as they are known, and how many are still running.

    `recorded`: wrappers/status.py saw them end; else they come from what Python said.
    """

    statuses: tuple[int, ...] = ()
    running: int = 0
    recorded: bool = False

    @property
    def over(self) -> bool:
        """Whether the workload has ended, as far as anybody can tell."""
        return bool(self.statuses) and not self.running

    @property
    def status(self) -> int | None:
        """The first status that is not 0, else 0; None when nothing is known."""
        return next((status for status in self.statuses if status), 0) if self.statuses else None


class Ending:
    """Follows one pass of a tool; `overdue` says when it went on too long after the workload's own end.

    The limit counts from the last time that the tool wrote something into its folders: writing a large trace out may
    take minutes and is no hang.
    """

    def __init__(self, where: Where, folders: Sequence[Path], limit_s: float) -> None:
        self._statuses = where.statuses
        self._hooks = where.hooks
        self._folders = tuple(folders)
        self._limit_s = limit_s
        self._roots: list[int] = []
        self._tool_words: list[tuple[str, ...]] = []
        self._old = set(self._statuses.glob("status-*.json"))
        self._old_byes = set(self._hooks.glob("bye-*.json"))
        self._size = -1
        self._since: float | None = None
        self._next_look = 0.0

    def around(self, argv: Sequence[str]) -> None:
        """The command line of the tool, which may be a Python program itself: its own bye is not the workload's."""
        self._tool_words.append(tuple(argv[1:]))

    def follow(self, pid: int) -> None:
        """The process that was started: the tool, or the workload that the tool replaced itself by."""
        self._roots.append(pid)

    def own_ends(self) -> OwnEnds:
        """What the witnesses say now. Where Python said bye, a death by a signal after it was not the workload's own doing.

        A bye does not know the status of a sys.exit(n): it counts for a process that then hung or died, or is still there.
        """
        notes = [note for path in sorted(set(self._statuses.glob("status-*.json")) - self._old) if (note := _read(path, _Status))]
        if not notes:
            return OwnEnds(tuple(int(bye.uncaught) for pid in self._roots if (bye := self._bye(pid))))
        statuses: list[int] = []
        for note in notes:
            bye = self._bye(note.pid)
            if bye is not None and (note.status is None or note.by_signal):
                statuses.append(int(bye.uncaught))
            elif note.status is not None:
                statuses.append(note.status)
        return OwnEnds(tuple(statuses), len(notes) - len(statuses), recorded=True)

    def own_status(self, outcome: Outcome) -> int | None:
        """The workload's own exit status; None where that is the outcome's, or nobody knows."""
        ends = self.own_ends()
        return ends.status if ends.recorded or outcome.by_signal or outcome.overdue else None

    def _bye(self, pid: int) -> _Bye | None:
        path = self._hooks / f"bye-{pid}.json"
        bye = None if path in self._old_byes else _read(path, _Bye)
        if bye is None or any(words and bye.argv[-len(words):] == words for words in self._tool_words):
            return None
        return bye

    def overdue(self) -> bool:
        """Looks once a second at most; call it as often as you like."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + min(LOOK_EVERY_S, self._limit_s / 4)
        if not self.own_ends().over:
            self._since = None
            return False
        size = sum(path.stat().st_size for folder in self._folders for path in _files(folder))
        if self._since is None or size != self._size:
            self._since, self._size = now, size
        return now - self._since > self._limit_s


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _read(path: Path, kind: type[NoteT]) -> NoteT | None:
    """A note, or None while it is not there or not whole."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
