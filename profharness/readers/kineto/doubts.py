"""What stands in the place of numbers in a Kineto file and is none, or cannot be: counted by the
argument's name, and said in a sentence.

Columns are judged as they are made (`values.Odd`). Devices, streams and geometry become codes of
distinct values, which are few: those are judged here, once the file is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.links import is_unknown
from profharness.readers.kineto.values import not_possible
from profharness.trace.columns.build import Growing
from profharness.trace.model import Problem

_LONGEST_NUMBER = 20
_SHOWN, _LONGEST_SHOWN = 3, 24


def problems(path: Path, rows: KinetoRows) -> Iterator[Problem]:
    """The problems of one file, whose columns are not used up yet."""
    odd = Counter(rows.odd)
    wrong = [code for code, text in enumerate(rows.geometry) if is_unknown(text)]
    for name in ("grid", "block") if wrong else ():
        odd[name] = _rows_with((rows.kernels, rows.calls), (name,), wrong)
    yield from not_possible(path, odd)
    of_devices = _unnumbered(rows.devices)
    of_streams = _unnumbered(rows.streams)
    for what, names, columns in (
        ("devices", of_devices, ("device", "from_device", "to_device")),
        ("streams", of_streams, ("stream",)),
    ):
        if names:
            shown = ", ".join(repr(name[:_LONGEST_SHOWN]) for name in list(names)[:_SHOWN])
            count = _rows_with((rows.kernels, rows.copies), columns, list(names.values()))
            yield Problem(
                "warning",
                str(path),
                max(count, len(names)),
                f"records name their {what} by no number: kept under these names ({shown})",
            )


def _unnumbered(names: dict[str, int]) -> dict[str, int]:
    return {
        name: code
        for name, code in names.items()
        if not (name.isascii() and name.isdigit() and len(name) <= _LONGEST_NUMBER)
    }


def _rows_with(tables: Iterable[Growing], columns: Iterable[str], codes: list[int]) -> int:
    """How many rows have one of these codes."""
    return sum(
        int(np.isin(table.peek(column), codes).sum())
        for table in tables
        for column in columns
        if column in table
    )
