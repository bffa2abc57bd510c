"""What is the same for all ranks of a node is asked once: the leader of the node asks, and the
others take its answer from the board (`board`).

A container that starts once more for every rank of a large node costs more than its answer.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from profharness.errors import Unavailable
from profharness.launchers import Launcher
from profharness.launchers.command import Command
from profharness.measure.meeting.board import Answer, Board
from profharness.measure.meeting.waiting import Patience
from profharness.measure.ranks import RankInfo

ALONE_S = 5.0
"""Without a living leader on its node for so long, a rank asks for itself."""
_LOOK_S = 0.2


class Asking(Protocol):
    """What answers a short question about the node (`Launcher`)."""

    def capture(self, command: Command, timeout_s: float) -> bytes:
        """The command's stdout. Raises Unavailable when it fails."""


@dataclass(frozen=True)
class AskedOnce:
    """Asks through `launcher`, for all ranks of this node at once."""

    launcher: Launcher
    board: Board
    rank: RankInfo

    def capture(self, command: Command, timeout_s: float) -> bytes:
        """The command's stdout, as the leader of this node got it. Another rank waits a while
        longer than `timeout_s`, and asks for itself where no leader answers.

        Raises Unavailable when the command fails, also where it failed for the leader.
        """
        if self.rank.world == 1:
            return self.launcher.capture(command, timeout_s)
        # the whole question: ranks that were started in other ways have answers of their own
        words = self.launcher.composed(command).argv
        key = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        if self.rank.leads_node:
            return _told(self.board, key, lambda: self.launcher.capture(command, timeout_s))
        answer = _awaited(self.board, key, timeout_s + ALONE_S)
        if answer is None:
            return self.launcher.capture(command, timeout_s)
        if answer.error:
            raise Unavailable(answer.error, answer.hint)
        return answer.output.encode()


def _told(board: Board, key: str, ask: Callable[[], bytes]) -> bytes:
    """Ask, and leave the answer for the others. That this process lives is told first."""
    board.say()
    try:
        output = ask()
    except Unavailable as error:
        board.say_answer(key, Answer(error=error.message, hint=error.hint))
        raise
    board.say_answer(key, Answer(output=output.decode(errors="replace")))
    return output


def _awaited(board: Board, key: str, limit_s: float) -> Answer | None:
    """None where no leader lives, or none answers in time."""
    patience, led_at = Patience(limit_s, most_s=_LOOK_S), time.monotonic()
    while True:
        word = board.read()
        if word is not None and not word.is_dead:
            led_at = time.monotonic()
            if (answer := word.answers.get(key)) is not None:
                return answer
        if time.monotonic() - led_at > ALONE_S or not patience.again():
            return None
