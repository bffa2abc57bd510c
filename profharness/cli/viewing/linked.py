"""A run's report as a page with live links: beside each command of it that opens the trace stands a
link that does so. The file stays as it is; the links are put into what is served.

The page may come from somebody else. It is served into a sandbox, so that its scripts have no
origin and no connection, and no text of it becomes an address: links are numbered.
"""

from __future__ import annotations

import html
import re
import shlex
import string
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from profharness.cli.viewing.link import Link, Spot
from profharness.errors import InputError, ProfharnessError, UsageError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.limits import SMALL_BYTES
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.paths import RunDir

PAGE = "report.html"
_COMMAND = re.compile(r'<span class="command"><code>([^<]{1,4000})</code></span>')
"""As templates/parts.html.j2 writes it."""
_MOST = 100
"""Links of a page, which shows three commands: each costs a search in the trace."""
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-downloads allow-modals allow-popups "
    "allow-popups-to-escape-sandbox"
)
"""Holds beside the page's own policy, which names its scripts by hash. The Perfetto UI opens in a
tab outside of the sandbox."""


@dataclass(frozen=True)
class Answer:
    """What is sent for a name: text of a type, or the way to another address."""

    status: HTTPStatus
    body: bytes = b""
    mime: str = "text/plain; charset=utf-8"
    location: str = ""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """All but those of the protocol; none lets another origin read the answer."""
        return (
            ("Content-Type", self.mime),
            ("Content-Length", str(len(self.body))),
            ("Content-Security-Policy", _POLICY),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            *((("Location", self.location),) if self.location else ()),
        )


def page_of(run: Path) -> str:
    """The text of a run's page. Raises InputError where there is none, with how to make it."""
    path = RunDir(run).report
    if not run.is_dir():
        raise InputError(
            f"--report: {run} is a file, and no run",
            f"`profharness report {run} --open` opens a page of it, without links",
        )
    if not path.is_file():
        raise InputError(f"{run} has no {path.name}", f"make it with `profharness report {run}`")
    with reading(path):
        return read_file(Inside(run).require(path), SMALL_BYTES, text=True).decode(errors="replace")


Find = Callable[[Sequence[str]], Mapping[str, Spot | UsageError]]
"""Where each of these steps and kernels is in the trace, or why nowhere."""


@dataclass
class LinkedPage:
    """The page with its links, and where they lead. `whole` opens the trace as it is; `find` looks
    for the places in it when the first link is followed, once for all.
    """

    page: str
    whole: Link
    find: Find
    _places: list[str] = field(init=False, default_factory=list)
    _spots: Mapping[str, Spot | UsageError] | None = field(init=False, default=None)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _body: bytes = field(init=False)

    def __post_init__(self) -> None:
        self._body = _COMMAND.sub(self._linked, self.page).encode()

    def answer(self, name: str) -> Answer | None:
        """What is sent for a name of the page's folder; None for one that it does not have."""
        if name == PAGE:
            return Answer(HTTPStatus.OK, self._body, "text/html; charset=utf-8")
        names = {_name(number): place for number, place in enumerate(self._places)}
        return None if name not in names else self._opening(names[name])

    def _linked(self, command: re.Match[str]) -> str:
        """The command, with a link behind it where it is one that opens this trace."""
        place = _place(html.unescape(command[1]))
        if place is None or len(self._places) == _MOST:
            return command[0]
        self._places.append(place)
        href = _name(len(self._places) - 1)
        return f'{command[0]} <a href="{href}" target="_blank" rel="noopener">open it</a>'

    def _opening(self, place: str) -> Answer:
        """The way to the UI."""
        if not place:
            return _way(self.whole)
        try:
            spot = self._found()[place]
        except ProfharnessError as error:
            return _refusal(error)
        if isinstance(spot, UsageError):
            return _refusal(spot)
        return _way(replace(self.whole, spot=spot))

    def _found(self) -> Mapping[str, Spot | UsageError]:
        with self._lock:
            if self._spots is None:
                self._spots = self.find([place for place in self._places if place])
            return self._spots


def _name(number: int) -> str:
    return f"open/{number}"


def _place(command: str) -> str | None:
    """The step or kernel that `profharness view RUN --at PLACE` opens at; empty for the command
    without it; None for any other.
    """
    words: list[str] = []
    with suppress(ValueError):  # a quotation without an end
        words = shlex.split(command)
    if words[:2] != ["profharness", "view"]:
        return None
    if len(words) == 3:
        return ""
    return words[4] if len(words) == 5 and words[3] == "--at" and words[4] else None


_plain = partial(quote, safe=string.punctuation)


def _way(link: Link) -> Answer:
    return Answer(HTTPStatus.FOUND, location=_plain(link.ui_url))


def _refusal(error: ProfharnessError) -> Answer:
    text = f"{error.message}\n{error.hint}\n"
    return Answer(HTTPStatus.NOT_FOUND, text.encode(errors="replace"))
