"""The sums over calls that rows of operators and of kernels are made of, so that those of several
files can be joined, and the rows themselves (docs/metrics.md#device-use).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.filling import NEEDED_COVERAGE
from profharness.analysis.operators.sums import LIMITERS
from profharness.analysis.use.records import FilesRow, UseRow
from profharness.trace.model import F64, I64

Mask = npt.NDArray[np.bool_]
Key = tuple[str, str, str]
"""A name, and the shapes and types of the inputs (both empty for a name alone)."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Per group of several files the least and the most device time of one of them, in ns, and how
    many hold any of it.
    """

    low: I64
    high: I64
    files: I64

    def at(self, groups: I64) -> Spread:
        """That of these groups alone."""
        return Spread(self.low[groups], self.high[groups], self.files[groups])


@dataclass(frozen=True, eq=False)
class RowSums:
    """Per group of calls, called by `keys`, sums over its calls; times in ns where their names do
    not end with `_s` (seconds).

    `device` is the time of the group's own device records, `nested` that of the records that do its
    known work, wherever they were launched. `measured` is the time of the calls whose least time by
    the ceilings is known, `least` that time, `by_flops` and `by_bytes` the same by operations and
    by bytes alone. `flops` and `bytes` are of the calls where they and a time are known, over
    `flops_s` and `bytes_s`; `both_flops` and `both_bytes` of the calls where both are.
    `limits` is kernel time by limiter, (groups, 5), `inner` that of the known work of operators
    inside. `fill` is time times fill of the kernels whose fill is known, over their time `fill_ns`;
    0 for operators. Only sums of several files have a `spread`.
    """

    keys: tuple[Key, ...]
    calls: I64
    device: I64
    nested: I64
    measured: I64
    least: F64
    by_flops: F64
    by_bytes: F64
    flops: F64
    flops_s: F64
    bytes: F64
    bytes_s: F64
    both_flops: F64
    both_bytes: F64
    limits: I64
    inner: I64
    fill: F64
    fill_ns: I64
    spread: Spread | None = None

    @property
    def device_ns(self) -> I64:
        """The device time that a row shows: where operators inside do the work (attention), that
        of the work.
        """
        return np.maximum(self.device, self.nested)

    @property
    def placed(self) -> Mask:
        """Which groups have a place under the ceilings: FLOP per byte are known."""
        placed: Mask = (self.both_flops > 0) & (self.both_bytes > 0)
        return placed

    def at(self, groups: I64) -> RowSums:
        """The sums of these groups alone."""
        return RowSums(
            tuple(self.keys[place] for place in groups.tolist()),
            **{name: getattr(self, name)[groups] for name in COLUMNS},
            spread=None if self.spread is None else self.spread.at(groups),
        )


COLUMNS = tuple(column.name for column in fields(RowSums) if column.name not in ("keys", "spread"))


def reached(group: I64, groups: int, work: tuple[F64, F64], ns: I64) -> dict[str, Any]:
    """The columns of `RowSums` from `flops` to `both_bytes`, of the operations, bytes and time in
    ns of each member of a group; those that took no time are left out.
    """
    flops, moved = work
    with_flops, with_bytes = (np.isfinite(part) & (ns > 0) for part in work)
    both, seconds = with_flops & with_bytes, ns / 1e9

    def total(values: F64, rows: Mask) -> F64:
        whole = np.bincount(group[rows], weights=values[rows], minlength=groups)
        return whole.astype(np.float64)

    return {
        "flops": total(flops, with_flops),
        "flops_s": total(seconds, with_flops),
        "bytes": total(moved, with_bytes),
        "bytes_s": total(seconds, with_bytes),
        "both_flops": total(flops, both),
        "both_bytes": total(moved, both),
    }


def join(parts: Sequence[RowSums]) -> RowSums:
    """The sums over several files, with their spread; groups of one key are one."""
    keys = tuple(dict.fromkeys(key for part in parts for key in part.keys))
    place = {key: at for at, key in enumerate(keys)}
    total: dict[str, Any] = {name: _nothing(name, len(keys)) for name in COLUMNS}
    low = np.full(len(keys), np.iinfo(np.int64).max, np.int64)
    high, held = np.zeros((2, len(keys)), np.int64)
    for part in parts:
        into = np.array([place[key] for key in part.keys], np.int64)
        for name in COLUMNS:
            total[name][into] += getattr(part, name)
        own = np.zeros(len(keys), np.int64)
        own[into] = part.device_ns
        low, high = np.minimum(low, own), np.maximum(high, own)
        held += own > 0
    return RowSums(keys, **total, spread=Spread(low, high, held))


def _nothing(name: str, groups: int) -> Any:
    if name in ("limits", "inner"):
        return np.zeros((groups, len(LIMITERS)), np.int64)
    whole = name in ("calls", "device", "nested", "measured", "fill_ns")
    return np.zeros(groups, np.int64 if whole else np.float64)


NO_SUMS = RowSums((), **{name: _nothing(name, 0) for name in COLUMNS})


def rows_of(sums: RowSums, device_ns: int) -> tuple[UseRow, ...]:
    """The rows of all groups: those with the most excess first, then those without any by device
    time. `device_ns` is the device time of the whole.
    """
    measured = (sums.measured > 0) & (sums.least > 0)
    nearest = np.maximum(sums.by_flops, sums.by_bytes) / np.where(measured, sums.measured, 1)
    columns: dict[str, list[Any]] = {
        "calls": sums.calls.tolist(),
        "device_ns": sums.device_ns.tolist(),
        "share": (sums.device_ns / device_ns).tolist(),
        "flops_per_s": _ratio(sums.flops, sums.flops_s),
        "bytes_per_s": _ratio(sums.bytes, sums.bytes_s),
        "intensity": _ratio(sums.both_flops, sums.both_bytes),
        "peak_share": _known(np.minimum(nearest, 1.0), measured),
        "limiter": list(_limiters(sums)),
        "excess_ns": _known(np.maximum(sums.measured - sums.least, 0.0), measured),
    }
    made: type[UseRow] = UseRow
    if sums.spread is not None:
        made = FilesRow
        columns["low_ns"] = sums.spread.low.tolist()
        columns["high_ns"] = sums.spread.high.tolist()
        columns["files"] = sums.spread.files.tolist()
        columns["fill"] = _fill(sums)
    rows = [
        made(name=name, shapes=shapes, dtypes=dtypes, **dict(zip(columns, values, strict=True)))
        for (name, shapes, dtypes), *values in zip(sums.keys, *columns.values(), strict=True)
    ]
    return tuple(sorted(rows, key=_by_excess))


def _by_excess(row: UseRow) -> tuple[float, int, str]:
    return -(row.excess_ns or 0.0), -row.device_ns, row.name


def _limiters(sums: RowSums) -> Iterator[str | None]:
    """What held most of a group's own kernel time back, else of its known work's."""
    for own, inner in zip(sums.limits, sums.inner, strict=True):
        limits = own if own.any() else inner
        yield LIMITERS[int(np.argmax(limits))] if limits.any() else None


def _fill(sums: RowSums) -> list[float | None]:
    """The mean fill by time; None where too little of a group's time is known."""
    known = (sums.fill_ns > 0) & (sums.fill_ns >= NEEDED_COVERAGE * sums.device)
    return _known(sums.fill / np.where(known, sums.fill_ns, 1), known)


def _ratio(work: F64, over: F64) -> list[float | None]:
    known = (work > 0) & (over > 0)
    return _known(work / np.where(known, over, 1.0), known)


def _known(values: F64, known: Mask) -> list[float | None]:
    return [
        value if is_known else None
        for value, is_known in zip(values.tolist(), known.tolist(), strict=True)
    ]
