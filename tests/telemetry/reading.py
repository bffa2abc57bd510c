"""Reads sources once, as the sampler does, and gives each column's scaled value as the reader takes
it out of the row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from profharness.rundir.telemetry_rows import Rows, read_header
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sources import Source


def read(sources: Sequence[Source]) -> dict[tuple[str, str], float]:
    """By device identity and metric (or role). A counter's value is its raw count × scale; shares
    and bits need two reads and are left out.
    """
    layout = Layout(sources)
    row = list(layout.blank)
    row[:3] = [0, 0, 0]
    for slot in layout.slots:
        row[slot.first] = row[slot.first + 1] = 0
        slot.source.read(row, slot.first + 2)
    data = encode_header(layout, {"host": "h", "hz": 10.0}) + layout.row.pack(*row)
    header, start = read_header(data, Path("row"))
    rows = Rows(header, data, start)
    found: dict[tuple[str, str], float] = {}
    for column in header.columns:
        if column.role in ("value", "stamp") and column.form in ("instant", "counter"):
            raw, known = rows.number(column)
            if known[0]:
                found[header.devices[column.device].identity, column.metric or column.role] = (
                    float(raw[0]) * column.scale if column.role == "value" else int(raw[0])
                )
    assert not any(math.isnan(value) for value in found.values())
    return found
