"""Tables of the lines and functions of Python that samples met, as reports and JSON hold them."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA = 1
By = Literal["line", "function"]


class LineThread(msgspec.Struct, frozen=True, kw_only=True):
    """A sampled thread. `ns` is the time for which its stack is known in the window, which is that
    of the process's steps (`from_steps`) or all of it; `samples` what that makes at the rate.
    `waits`: at least half of it is spent in calls of Python's own library that wait. `hooks_ns` is
    the time that profharness's own hooks took there, which is no part of `ns`.
    """

    rank: int | None
    process: str
    pid: int
    thread: str
    tid: int
    is_main: bool
    from_steps: bool
    waits: bool
    ns: int
    hooks_ns: int = 0
    samples: int | None = None


class LineRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line or function on one thread (docs/metrics.md#python-lines). `self_ns` is the time in
    which it was innermost, `inclusive_ns` that in which it stood anywhere in the stack; `share`
    and `inclusive_share` are of the thread's time, the first with its 95 % interval. `line` is
    None by function, and where it is not known.
    """

    file: str
    line: int | None
    function: str
    rank: int | None
    pid: int
    tid: int
    self_ns: int
    inclusive_ns: int
    share: float
    share_low: float | None = None
    share_high: float | None = None
    inclusive_share: float
    samples: int | None = None

    @property
    def place(self) -> str:
        """`train.py:31 tokenise`, without what is not known."""
        at = self.file if not self.line else f"{self.file}:{self.line}"
        return f"{at} {self.function}".strip()


class LineTable(msgspec.Struct, frozen=True, kw_only=True):
    """Rows by thread (that of the program first, then main threads, then those that do not wait),
    then by falling `self_ns` and `inclusive_ns`. `rate_hz` is None where nobody said it.
    """

    schema: int = SCHEMA
    by: By
    pass_name: str | None = msgspec.field(default=None, name="pass")
    rate_hz: int | None
    threads: tuple[LineThread, ...]
    rows: tuple[LineRow, ...]

    @property
    def shown(self) -> tuple[LineRow, ...]:
        """Rows of main threads, and of others that do not wait: first of threads that do not wait,
        by falling time.
        """
        waits = {(one.pid, one.tid): one.waits for one in self.threads}
        mains = {(one.pid, one.tid) for one in self.threads if one.is_main}
        chosen = [
            row for row in self.rows if (row.pid, row.tid) in mains or not waits[row.pid, row.tid]
        ]
        return tuple(sorted(chosen, key=lambda row: (waits[row.pid, row.tid], -row.self_ns)))
