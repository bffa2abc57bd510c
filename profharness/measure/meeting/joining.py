"""Which run directory is a rank's own: rank 0 makes it, and each other rank joins it once.

The n-th run of a step has the n-th name, `NAME`, `NAME-2` and so on. Rank 0 measures one run after
the other, so all directories but the last one are over; and a rank that joined the last one leaves
its mark there, so that its next run waits for the next directory.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from profharness.errors import InputError, OutputExists
from profharness.measure.meeting.board import Board, Word
from profharness.measure.meeting.waiting import MOST_S, Patience, begin_limit_s
from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.rundir import harness_process
from profharness.rundir.claims import new_folders
from profharness.rundir.paths import RunDir

_ALONE_S = 5.0
"""Without a living leader on its node for so long, a rank looks for itself."""
_LOCAL_MOST_S = 0.2

_Seen = Literal["none", "own", "over", "taken"]


def join(run_plan: RunPlan) -> RunPlan:
    """The plan of a rank other than 0 with the directory that rank 0 of its job made.

    Only the leader of a node looks at the shared folder again and again; the others wait for its
    word. Where rank 0 makes no directory in time, the rank makes a run of its own: its command was
    started with others, which may wait for it. Raises OutputExists for a directory that was named
    and is another run's.
    """
    rank, limit_s = run_plan.rank, begin_limit_s(run_plan.request.rank_limit)
    search, board = _Search(run_plan), Board.of(run_plan)
    about = f"rank {rank.rank} of {rank.world} waits for rank 0 to begin {run_plan.root}"
    patience = Patience(
        limit_s,
        (lambda: about) if rank.leads_node else None,
        MOST_S if rank.leads_node else _LOCAL_MOST_S,
    )
    turns = _Turns()
    waits = True
    while waits:
        if rank.leads_node or turns.is_due(board.read()):
            seen = search.look()
            if seen == "own":
                if rank.leads_node:
                    board.say(root=str(search.path))
                return run_plan.at(search.path)
            if run_plan.request.output and seen in ("over", "taken"):
                if seen == "over":
                    break
                raise OutputExists(
                    f"{run_plan.root} exists and is another run's", "name another with --output"
                )
        waits = patience.again()
    if search.look() == "own":  # the leader's word may have been lost
        return run_plan.at(search.path)
    return alone(
        run_plan,
        f"rank {rank.rank} of {rank.world} found no run of rank 0 to join at {run_plan.root} "
        f"(waited {patience.waited_s:.0f} s, --rank-limit sets it)",
    )


def alone(run_plan: RunPlan, why: str) -> RunPlan:
    """The plan of a run of one rank by itself, whose directory is named after the rank."""
    root = run_plan.root
    return replace(
        run_plan.at(root.with_name(f"{root.name}-rank{run_plan.rank.rank}")),
        rank=RankInfo(apart=why),
    )


@dataclass
class _Turns:
    """When a rank that does not lead its node looks at the shared folder: when the leader found
    another directory, and by itself where no leader lives.
    """

    root: str = ""
    led_at: float = 0.0
    next_at: float = 0.0

    def __post_init__(self) -> None:
        self.led_at = time.monotonic()

    def is_due(self, word: Word | None) -> bool:
        now = time.monotonic()
        if word is not None and not word.is_dead:
            self.led_at = now
            is_news = word.root not in ("", self.root)
            self.root = word.root or self.root
            return is_news
        if now < max(self.led_at + _ALONE_S, self.next_at):
            return False
        self.next_at = now + MOST_S
        return True


class _Search:
    """Looks for the last directory of the step."""

    def __init__(self, run_plan: RunPlan) -> None:
        self._first, self._rank = run_plan.root, run_plan.rank
        self._is_numbered = not run_plan.request.output
        self._number = 1
        self._is_over: dict[Path, _Seen] = {}

    @property
    def path(self) -> Path:
        return new_folders.numbered(self._first, self._number)

    def look(self) -> _Seen:
        """`own`: joined, now; `over`: it ended without this rank; `taken`: another run's, or this
        rank took part in it; `none`: nothing that can be told yet.
        """
        _revalidate(self._first.parent)
        while self._is_numbered and os.path.lexists(
            new_folders.numbered(self._first, self._number + 1)
        ):
            self._number += 1
        if self.path not in self._is_over:
            seen = self._seen()
            if seen not in ("over", "taken"):
                return seen
            self._is_over[self.path] = seen
        return self._is_over[self.path]

    def _seen(self) -> _Seen:
        try:
            manifest = RunDir(self.path).read_manifest()
        except InputError:
            return "none"
        if (manifest.job, manifest.ranks) != (self._rank.job, self._rank.world):
            return "taken"
        if (self._marks / self._mark).exists():
            return "taken"
        if manifest.state != "running":
            return "over"
        return "own" if _made(self._marks / self._mark) else "taken"

    @property
    def _marks(self) -> Path:
        return self.path / "control" / "ranks"

    @property
    def _mark(self) -> str:
        return f"{self._rank.rank}.joined"


def _made(path: Path) -> bool:
    """Make a file that names this process; False where another one did. Over a network the answer
    to a call that was repeated may speak of our own file.
    """
    own = harness_process.identify()
    text = f"{own.host} {own.boot_id} {own.pid} {own.start_ticks}\n".encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return path.read_bytes() == text
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    return True


def _revalidate(folder: Path) -> None:
    """NFS goes on saying that a name is not there, for up to a minute, unless the folder is
    opened.
    """
    with suppress(OSError):
        os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
