"""A Kineto file as it begins to be read: the stream of its events, and the rows that they become,
which depend on what is wanted of it.
"""

from __future__ import annotations

from pathlib import Path

from profharness.readers.bytes.json_stretches import SharedStream
from profharness.readers.kineto.devices import DeviceRows, TimeRows
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.launched import LaunchedRows
from profharness.readers.kineto.records import Event
from profharness.readers.kineto.stacks import ShownRows, StackRows
from profharness.readers.kineto.unions import Record
from profharness.trace.model import Strings
from profharness.trace.wanted import Wanted

_ROWS = {
    Wanted.LAUNCHED: LaunchedRows,
    Wanted.STACKS: StackRows,
    Wanted.SHOWN: ShownRows,
    Wanted.ALL: KinetoRows,
    Wanted.DEVICES: DeviceRows,
    Wanted.TIMES: TimeRows,
}


def open_stream(
    path: Path, wanted: Wanted, strings: Strings, block_bytes: int
) -> tuple[KinetoRows, SharedStream[Record]]:
    """Empty rows of the kind that is wanted, and the events that are to become such."""
    rows = _ROWS[wanted](strings)
    return rows, SharedStream(path, Event, block_bytes, usual=rows.usual)
