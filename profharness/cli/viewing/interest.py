"""The time of a run that its trace opens at: the window that its report judges, which the report's
page states in its head. So no trace is read for it.
"""

from __future__ import annotations

import re
from pathlib import Path

from profharness.cli.viewing.link import around
from profharness.errors import InputError
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.small_files import open_regular
from profharness.rundir.paths import RunDir

_HEAD_BYTES = 4 << 10
_STATED = re.compile(rb'<meta name="profharness-window" content="(\d{1,19}) (\d{1,19})">')
"""As templates/report.html.j2 writes it."""
_LAST_NS = 1 << 62  # far beyond any clock's reading, so that a margin still fits 64 bits


def window_of(run: Path) -> tuple[int, int] | None:
    """Start and end in ns of the time to show; None where the run has no page, or one that does not
    state it: of an older version, or without records that have a time.
    """
    page = RunDir(run).report
    try:
        with open_regular(Inside(run).require(page)) as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, InputError):
        return None  # the trace opens as a whole
    stated = _STATED.search(head)
    if stated is None:
        return None
    start, end = int(stated[1]), int(stated[2])
    return around(start, end) if start < end <= _LAST_NS else None
