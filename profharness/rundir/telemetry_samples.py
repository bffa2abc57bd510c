"""From the sampler's rows to samples: when each value was read, and what instants, counters, shares
and status bits mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from profharness.rundir.telemetry_rows import MISSING, Column, Rows
from profharness.trace.model import F64, I64, Samples, Strings

_SLEPT_NS = 1_000_000_000
# a stamp further off than this is of another clock: the time of the read counts then
_STALE_NS = 10_000_000_000
_WORD = 0xFFFFFFFF


class _Series(NamedTuple):
    """One column's samples: start, end and value of each."""

    at: I64
    until: I64
    values: F64


def samples_of(rows: Rows, strings: Strings) -> tuple[Samples, int]:
    """All value columns as samples, by metric, and the number of counters' steps that went
    backwards.
    """
    found: list[tuple[Column, _Series]] = []
    fallen = 0
    for column in rows.header.columns:
        if column.role != "value":
            continue
        strings.code(column.metric)  # those without a sample are known by name too
        if column.form == "counter":
            series, fell = _rates(rows, column)
            fallen += fell
        else:
            series = {"instant": _instants, "share": _shares, "bits": _bits}[column.form](
                rows, column
            )
        if len(series.at):
            found.append((column, series))
    if not found:
        return Samples.empty(), fallen
    lengths = [len(series.at) for _, series in found]
    at, until, values = (
        np.concatenate([series[place] for _, series in found]) for place in range(3)
    )
    return Samples.build(
        at_ns=at,
        until_ns=until,
        value=values,
        source=0,
        metric=np.repeat([strings.code(column.metric) for column, _ in found], lengths),
        device=np.repeat([column.device for column, _ in found], lengths),
    ), fallen


def column_series(rows: Rows, place: int) -> tuple[I64, I64, F64]:
    """Begins, ends and values of the samples of one value column, by its place in the header."""
    column = rows.header.columns[place]
    if column.form == "counter":
        return _rates(rows, column)[0]
    return {"instant": _instants, "share": _shares, "bits": _bits}[column.form](rows, column)


def _instants(rows: Rows, column: Column) -> _Series:
    raw, known = rows.number(column)
    at = _times(rows, column)[known]
    return _Series(at, at, raw[known].astype(np.float64) * column.scale)


def _rates(rows: Rows, column: Column) -> tuple[_Series, int]:
    """A counter's growth per second from one row to the next that has it, and how often it fell."""
    raw, known = rows.number(column)
    at = _times(rows, column)[known]
    growth, length = np.diff(raw[known]), np.diff(at)
    usable = (growth >= 0) & (length > 0)
    values = growth[usable].astype(np.float64) * column.scale / (length[usable] / 1e9)
    return _Series(at[:-1][usable], at[1:][usable], values), int((growth < 0).sum())


def _shares(rows: Rows, column: Column) -> _Series:
    """Growth of accumulators of 32 bits over that of another, from one row in which the other had
    grown to the next; of several the largest.
    """
    assert column.over is not None
    counts, counted = rows.first(column.over)
    at, cycles = _times(rows, column)[counted], counts[counted]
    moved = np.ones(len(cycles), np.bool_)
    moved[1:] = cycles[1:] != cycles[:-1]
    at, passed = at[moved], np.diff(cycles[moved]) & _WORD
    grown = np.zeros(len(passed), np.int64)
    for taken in column.taken:
        values, is_set = rows.first(taken)
        grown = np.maximum(grown, np.diff(np.where(is_set, values, 0)[counted][moved]) & _WORD)
    shares = grown / np.maximum(passed, 1)
    beyond = np.flatnonzero(shares > column.at_most)
    usable = np.arange(len(shares)) < (beyond[0] if len(beyond) else len(shares))
    usable &= np.diff(at) > 0
    return _Series(at[:-1][usable], at[1:][usable], shares[usable] * column.scale)


def _bits(rows: Rows, column: Column) -> _Series:
    """1 where any of the bits is set, for the time since the row before."""
    raw, known = rows.number(column)
    at = _times(rows, column)[known]
    is_set = (raw[known].astype(np.int64) & column.bits) != 0
    usable = np.diff(at) > 0
    return _Series(at[:-1][usable], at[1:][usable], is_set[1:][usable].astype(np.float64))


def _times(rows: Rows, column: Column) -> I64:
    """When each row's value was read: the reading's own stamp, else half-way between the stamps
    around the read.
    """
    before = rows.role("before", column.source)
    middle = before + (rows.role("after", column.source) - before) // 2
    stamp = rows.stamp(column.source, column.device)
    if stamp is None:
        return middle
    stamps, known = rows.number(stamp)
    boot = rows.role("boot")
    if stamp.taken:
        known = known & (np.abs(stamps - boot) < _STALE_NS)
    # the two clocks are read one after the other, and a busy machine may come between: the least
    # difference is the true one, unless the host slept meanwhile
    read = rows.role("before")
    differences = (read - boot)[read != MISSING]
    boot_to_monotonic = (
        differences.min() if len(differences) and np.ptp(differences) < _SLEPT_NS else read - boot
    )
    return np.where(known, stamps + boot_to_monotonic, middle).astype(np.int64)
