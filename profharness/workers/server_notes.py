"""What our own server tells of a level beside its requests: on which providers it ran, what was
missing, and what compiled inside of the level.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from profharness.scans.contract import PointOutput
from profharness.workers.server import READY, WINDOWS

COMPILE = "compile_ns"


class _Window(msgspec.Struct, frozen=True):
    """One answer of the server about a level."""

    kind: str = ""
    id: str = ""
    notes: dict[str, str] = {}


class _Ready(msgspec.Struct, frozen=True):
    """As much of the ready file as is needed here."""

    fallback: str = ""


def with_notes(output: PointOutput, folder: Path, key: str) -> PointOutput:
    """The output of a point with its server's notes; `folder` is the server's control folder. Of
    another's server, which tells nothing, it stays as it is.
    """
    told = _told(folder, key)
    compile_ns = int(told.pop(COMPILE)) if COMPILE in told else None
    return replace(
        output, compile_ns=output.compile_ns or compile_ns, notes={**told, **output.notes}
    )


def _told(folder: Path, key: str) -> dict[str, str]:
    notes: dict[str, str] = {}
    try:
        ready = msgspec.json.decode((folder / READY).read_bytes(), type=_Ready)
        if ready.fallback:
            notes["fallback"] = ready.fallback
        for line in (folder / WINDOWS).read_bytes().splitlines():
            window = msgspec.json.decode(line, type=_Window)
            if (window.kind, window.id) == ("closed", key):
                notes |= window.notes
    except (OSError, msgspec.DecodeError):
        pass  # a server that died may have left a part of a line, or nothing
    return notes
