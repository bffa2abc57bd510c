"""What the page asks for: the parts that it does not have yet, made when it asks and not before.

However many pages ask, a look at the run's files is taken once a second at most, and the rarer the
longer it takes, so that the server has next to nothing of the computer's time.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from profharness.analysis.live.records import LiveAnswer
from profharness.report.live.page import Moment, parts

LOOK_S = 0.9
SHARE = 25.0
"""A look that took t seconds of processor time is followed by a pause of so many t; how long it
waited for a processor does not count."""
RECENT_S = 12.0
"""Who asked within it has the page open; longer than a page whose way is slow waits."""
_MOST_PAGES = 64
_NAME = re.compile(r"[0-9a-f]{1,16}")


class Part(msgspec.Struct, frozen=True):
    """One part of the page, and a mark that changes with it."""

    mark: str
    html: str


class Told(msgspec.Struct, frozen=True):
    """What the page is told: parts by name, those alone that it does not have."""

    title: str
    ended: bool
    parts: dict[str, Part]


class LiveState:
    """The parts as they are now. `look` reads the run's files."""

    def __init__(
        self, look: Callable[[], Moment], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._now = now
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._next = 0.0
        self._title = ""
        self._parts: dict[str, Part] = {}
        self._ended: LiveAnswer | None = None
        self._asked: dict[str, float] = {}
        self._told: set[str] = set()

    def told(self, known: frozenset[str]) -> Told:
        """The answer to a page that has the parts with the marks `known`."""
        with self._lock:
            self._renew()
            fresh = {name: one for name, one in self._parts.items() if one.mark not in known}
            return Told(self._title, self._ended is not None, fresh)

    def heard(self, page: str, answer: Told) -> None:
        """The page of this name has its answer, which may be older than the end."""
        name = page if _NAME.fullmatch(page) else ""
        with self._changed:
            self._asked.pop(name, None)
            self._asked[name] = self._now()
            while len(self._asked) > _MOST_PAGES:
                self._asked.pop(next(iter(self._asked)))
            if answer.ended:
                self._told.add(name)
                self._changed.notify_all()

    def end(self, answer: LiveAnswer) -> None:
        """The run has ended: the next look is the last one."""
        with self._lock:
            self._ended = answer
            self._next = 0.0

    def wait_told(self, seconds: float) -> bool:
        """Wait until every page that is open knows the end, `seconds` at most; whether they do."""
        deadline = self._now() + seconds
        with self._changed:
            while True:
                since = self._now() - RECENT_S
                open_pages = {name for name, at in self._asked.items() if at > since}
                if open_pages <= self._told:
                    return True
                left = deadline - self._now()
                if left <= 0:
                    return False
                self._changed.wait(left)

    def _renew(self) -> None:
        """Take a look, where it is time."""
        began = self._now()
        if began < self._next:
            return
        worked = time.thread_time()
        moment = self._look()
        if self._ended is not None:
            moment = msgspec.structs.replace(moment, answer=self._ended, ended=True)
        self._parts = {name: Part(_mark(html), html) for name, html in parts(moment).items()}
        self._title = title_of(moment)
        took = time.thread_time() - worked
        self._next = float("inf") if self._ended is not None else began + max(LOOK_S, SHARE * took)


def title_of(moment: Moment) -> str:
    """What the tab is called."""
    run = moment.run
    if moment.ended:
        return f"ended: {run.title}"
    return f"{run.done}/{run.planned} {run.title}" if run.planned else run.title


def _mark(html: str) -> str:
    return blake2b(html.encode(errors="replace"), digest_size=6).hexdigest()
