"""Waiting for other ranks: looks that grow rarer, a limit that follows what is written, and word on
stderr of whom is waited for.

A look at a folder on a parallel file system is a call to its one metadata server, which a thousand
ranks that look fifty times a second would occupy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_S, MOST_S = 0.05, 2.0
_PART = 1 / 8  # of the time that was waited already: so much later than needed is seen what came
_TOLD_AFTER_S, _TOLD_AGAIN = 10.0, 3.0
BYTES_PER_S = 5e6
"""What a rank is sure to write in a second to a file system that many others write to as well."""

BEGIN_S = 120.0
"""How long ranks wait for the run directory, unless `--rank-limit` says it."""
END_S = 60.0
"""How long rank 0 waits for one more outcome, besides the time to write what a rank leaves."""


def begin_limit_s(asked: float | None) -> float:
    """How long a rank waits for rank 0 to make the directory, in seconds."""
    return BEGIN_S if asked is None else asked


def end_limit_s(asked: float | None, written_bytes: int, behind_s: float) -> float:
    """How long rank 0 waits for one more outcome, in seconds: where nobody asked for a limit, the
    time in which a rank writes `written_bytes`, and what a tool around it may be behind.
    """
    return END_S + written_bytes / BYTES_PER_S + behind_s if asked is None else asked


@dataclass
class Patience:
    """A wait that `about` describes, for at most `limit_s` seconds since the last `progress`.

    Says so on stderr after ten seconds, and again each time that three times as long has passed;
    without `about` it is silent.
    """

    limit_s: float
    about: Callable[[], str] | None = None
    most_s: float = MOST_S
    _tell_at: float = _TOLD_AFTER_S

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._ends = self._began + self.limit_s

    @property
    def waited_s(self) -> float:
        """Since the wait began."""
        return time.monotonic() - self._began

    def progress(self) -> None:
        """Something came: what is still missing has the whole limit again."""
        self._ends = time.monotonic() + self.limit_s

    def again(self) -> bool:
        """Sleep until the next look; False where the limit has passed."""
        now = time.monotonic()
        left = self._ends - now
        if left <= 0:
            return False
        if self.about is not None and now - self._began >= self._tell_at:
            self._tell_at *= _TOLD_AGAIN
            sys.stderr.write(
                f"profharness: {self.about()}: {now - self._began:.0f} s so far, "
                f"{left:.0f} s more at most (--rank-limit SECONDS sets it)\n"
            )
            sys.stderr.flush()
        wanted = max(FIRST_S, min(self.most_s, (now - self._began) * _PART))
        time.sleep(min(wanted, left))
        return True
