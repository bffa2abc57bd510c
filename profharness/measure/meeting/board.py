"""What the leader of a node tells the other ranks of this node, without a call to the shared file
system: one small file in the node's memory (`/dev/shm`), which the leader removes when it ends.

It is word only. Which run is a rank's own is decided by the run directory (`joining`), so that a
file that a killed leader left misleads nobody.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.rundir import harness_process
from profharness.rundir.manifest import HarnessRecord
from profharness.rundir.paths import write_atomic

_MOST_BYTES = 256 << 10


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a question about the node gave: the output, or why there is none and what to do."""

    output: str = ""
    error: str = ""
    hint: str = ""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a leader has said so far: who it is, the run directory that it found (empty: none yet),
    by the passes' names whether rank 0 split them, and by the questions' hashes what it was
    answered (`asking`).
    """

    leader: HarnessRecord
    root: str = ""
    splits: dict[str, bool] = {}
    answers: dict[str, Answer] = {}

    @property
    def is_dead(self) -> bool:
        """Whether its leader has surely ended."""
        return harness_process.is_gone(self.leader) is True


@dataclass(frozen=True)
class Board:
    """The place for the words of one node about the runs of one job."""

    path: Path

    @classmethod
    def of(cls, run_plan: RunPlan) -> Board:
        """The same for all ranks of a node, and for all runs of their step."""
        return cls.at(run_plan.root, run_plan.rank, named=bool(run_plan.request.output))

    @classmethod
    def at(cls, root: Path, rank: RankInfo, *, named: bool) -> Board:
        """As `of`, before there is a plan; `named`: the user chose the name of the directory."""
        runs = root if named else root.parent / rank.job
        key = f"{runs}\n{socket.gethostname()}\n{rank.world}".encode()
        name = f"profharness-{os.getuid()}-{hashlib.sha256(key).hexdigest()[:24]}.json"
        return cls(_folder() / name)

    def read(self) -> Word | None:
        """None where nobody said anything, or another user put something there."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
                return None
            data = file.read(_MOST_BYTES)
        try:
            return msgspec.json.decode(data, type=Word)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def write(self, word: Word) -> None:
        """Without room for it the others look for themselves."""
        with suppress(OSError):
            write_atomic(self.path, msgspec.json.encode(word), mode=0o600)

    def say(self, **changes: object) -> None:
        """Add to what this process said, or begin."""
        word = self.read()
        own = harness_process.identify()
        if word is None or word.leader != own:
            word = Word(leader=own)
            atexit.register(self.remove)  # the leader may end before it has a run
        self.write(msgspec.structs.replace(word, **changes))

    def say_split(self, pass_name: str, *, split: bool) -> None:
        """What rank 0 decided about a pass."""
        word = self.read()
        self.say(splits={**(word.splits if word is not None else {}), pass_name: split})

    def say_answer(self, key: str, answer: Answer) -> None:
        """What was asked for all ranks of the node."""
        word = self.read()
        self.say(answers={**(word.answers if word is not None else {}), key: answer})

    def remove(self) -> None:
        """Where it is this process's own: the next run of the step may have begun."""
        word = self.read()
        if word is not None and word.leader == harness_process.identify():
            with suppress(OSError):
                self.path.unlink()


def _folder() -> Path:
    memory = Path("/dev/shm")  # noqa: S108  each file in it is checked to be the user's own
    if os.access(memory, os.W_OK | os.X_OK):
        return memory
    return Path("/tmp")  # noqa: S108  as above: each file is checked to be the user's own
