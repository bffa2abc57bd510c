"""What Kineto's metadata call the processes and threads of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.kineto.records import Event
from profharness.readers.kineto.values import integers
from profharness.trace.columns.table import NULL
from profharness.trace.places import MOST_NAMES, Named, named

_PROCESS, _THREAD = "process_name", "thread_name"
_NUMBERED = re.compile(r"thread \d+ \((.*)\)\s*\Z", re.DOTALL)


class _NameArgs(msgspec.Struct, gc=False):
    """Arguments of metadata that name something."""

    name: str = ""


class NamedRows:
    """The names of one file as they come. Devices and streams are named the same way as processes
    and threads; whoever asks by process and thread does not meet them.
    """

    def __init__(self) -> None:
        self._recorded: list[tuple[int, int, str]] = []

    def add(self, events: Sequence[Event]) -> list[Event]:
        """Keep the names among events without a category. Gives the events that are no metadata,
        which say how a viewer is to show the file and nothing of what ran.
        """
        described = [event for event in events if event.ph == "M"]
        naming = [event for event in described if event.name in (_PROCESS, _THREAD)]
        naming = naming[: 4 * MOST_NAMES - len(self._recorded)]
        pids = integers([event.pid for event in naming]).tolist()
        tids = integers([event.tid for event in naming]).tolist()
        for event, pid, tid in zip(naming, pids, tids, strict=True):
            try:
                name = msgspec.json.decode(event.args, type=_NameArgs).name
            except NOT_JSON:
                continue
            if event.name == _PROCESS:
                self._recorded.append((pid, NULL, name))
            elif tid != NULL:
                self._recorded.append((pid, tid, _own_name(name)))
        return [event for event in events if event.ph != "M"] if described else list(events)

    @property
    def recorded(self) -> tuple[tuple[int, int, str], ...]:
        """Process, thread (NULL: of the process itself) and name, in the order of the file."""
        return tuple(self._recorded)

    def extend(self, recorded: Sequence[tuple[int, int, str]]) -> None:
        """Add what was recorded further behind, as far as there is room."""
        self._recorded += recorded[: 4 * MOST_NAMES - len(self._recorded)]

    def names(self) -> tuple[Named, ...]:
        """The last name of each process and thread."""
        return named(self._recorded)


def _own_name(name: str) -> str:
    """What the thread is called: libkineto puts its number in front of it."""
    found = _NUMBERED.match(name)
    return found[1] if found else name
