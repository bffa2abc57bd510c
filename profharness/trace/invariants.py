"""What holds of every trace, whatever a file says: durations are not negative, ends come after
starts, sizes are not below zero, values are finite, and references lead somewhere.

Readers repair or drop what breaks this, and say so. What gets through all the same would give
figures that look like any others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import Trace

_TIMED = ("kernels", "copies", "api", "ops", "marks")
# what is counted in wholes, with NULL for what was not recorded
_COUNTED = {
    "kernels": (
        "workgroups",
        "workgroup_count_x",
        "workgroup_size_x",
        "vgpr",
        "lds_bytes",
        "scratch_bytes",
    ),
    "copies": ("bytes",),
    "marks": ("items",),
}
_VALUES = {"counters": "value", "samples": "value", "ops": "flops"}
_REFERRED = {"device": "devices", "stream": "streams", "source": "sources", "name": "strings"}
_LARGEST = float(2**63 - 1)
# less by more than what summing in floating point may miss
_SUMMABLE = 0.99 * _LARGEST


@dataclass(frozen=True)
class Broken:
    """Rows of one table that cannot be; `what` says why, as `kernels last less than no time`."""

    what: str
    rows: int


def broken(trace: Trace) -> tuple[Broken, ...]:
    """Everything that cannot be; nothing for a sound trace. Looks at each column once."""
    return tuple(
        one
        for one in (
            *(part for name in _TIMED for part in _times(name, getattr(trace, name))),
            *_counts(trace),
            *_values(trace),
            *_references(trace),
        )
        if one.rows
    )


def too_long_together(trace: Trace) -> str:
    """What lasts, summed up, longer than a number of 64 bits holds (292 years), so that no figure
    of it could be right: `kernels`, or nothing.
    """
    for name in _TIMED:
        if float(_column(getattr(trace, name), "dur_ns").sum(dtype=np.float64)) >= _SUMMABLE:
            return name
    return ""


def _times(name: str, table: Table) -> Iterator[Broken]:
    start, lasts = _column(table, "start_ns"), _column(table, "dur_ns")
    if not len(lasts):
        return
    if lasts.min() < 0:
        yield Broken(f"{name} last less than no time", int((lasts < 0).sum()))
    if float(start.max()) + float(lasts.max()) >= _LARGEST:
        with np.errstate(over="ignore"):
            wrapped = (start + lasts < start) & (lasts > 0)
        yield Broken(f"{name} end beyond what 64 bits hold", int(wrapped.sum()))
    if float(lasts.sum(dtype=np.float64)) >= _LARGEST:
        yield Broken(f"{name} together last longer than 64 bits hold", len(lasts))


def _column(table: Table, name: str) -> npt.NDArray[np.int64]:
    column: npt.NDArray[np.int64] = getattr(table, name)
    return column


def _counts(trace: Trace) -> Iterator[Broken]:
    for name, columns in _COUNTED.items():
        for column in columns:
            values = getattr(getattr(trace, name), column)
            if len(values) and values.min() < NULL:
                yield Broken(f"{name} have a negative {column}", int((values < NULL).sum()))


def _values(trace: Trace) -> Iterator[Broken]:
    for name, column in _VALUES.items():
        values = getattr(getattr(trace, name), column)
        endless = np.isinf(values)
        if endless.any():
            yield Broken(f"{name} have a {column} that is not finite", int(endless.sum()))


def _references(trace: Trace) -> Iterator[Broken]:
    for name in _TIMED:
        table = getattr(trace, name)
        for column, of in _REFERRED.items():
            values = getattr(table, column, None)
            if values is None or not len(values):
                continue
            most = len(getattr(trace, of))
            if values.max() >= most or values.min() < NULL:
                lost = int(((values >= most) | (values < NULL)).sum())
                yield Broken(f"{name} name a {column} that is not there", lost)
