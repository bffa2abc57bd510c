"""Hardware counters as work: bytes that crossed from the L2 to the fabric, and operations, per dispatch of each kernel.

A counter pass serialises kernels, so that its times are not used: only what a dispatch moves and computes is taken
from it, by kernel name (and number of workgroups where both sides have it), and set against times of another pass.
FETCH_SIZE and WRITE_SIZE are KiB between L2 and fabric (Infinity Cache, HBM, other devices): an upper bound of what
HBM moves. MFMA operations are counted in units of 512 (rocprofiler's MfmaFlops, which leaves out 8 bits and less:
these are added here), vector operations per wave of 64 lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from profharness.analysis.grouping import pack
from profharness.trace.model import F64, I64, NULL, Trace

KIB = 1024.0
# The raw counters behind them: (all requests, those of 32 B, those of 128 B) and (all, those of 64 B); gfx942 on has the second names.
_READ_RAW = (("TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum", ""), ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum"))
_WRITTEN_RAW = (("TCC_EA_WRREQ_sum", "TCC_EA_WRREQ_64B_sum"), ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"))
_READ = ("FETCH_SIZE", "FetchSize")
_WRITTEN = ("WRITE_SIZE", "WriteSize")
_MATRIX = ("MfmaFlops",)
_MATRIX_BY_TYPE = ("MfmaFlopsF16", "MfmaFlopsBF16", "MfmaFlopsF32", "MfmaFlopsF64")
_MATRIX_RAW = ("SQ_INSTS_VALU_MFMA_MOPS_F16", "SQ_INSTS_VALU_MFMA_MOPS_BF16", "SQ_INSTS_VALU_MFMA_MOPS_F32", "SQ_INSTS_VALU_MFMA_MOPS_F64")
_NARROW_RAW = ("SQ_INSTS_VALU_MFMA_MOPS_F8", "SQ_INSTS_VALU_MFMA_MOPS_F6F4")
_MOPS = 512.0
_TOTALS = ("TOTAL_16_OPS", "TOTAL_32_OPS", "TOTAL_64_OPS")


@dataclass(frozen=True, eq=False)
class Counted:
    """Per kernel: bytes between L2 and fabric and hardware operations of one dispatch; NaN where not counted."""

    fabric_bytes: F64
    operations: F64

    @property
    def anything(self) -> bool:
        """Whether any kernel has a figure."""
        return bool(np.isfinite(self.fabric_bytes).any() or np.isfinite(self.operations).any())


def counted_work(counted: Trace, timed: Trace) -> Counted:
    """For the kernels of `timed`, the mean of what the counters of `counted` say of dispatches like it."""
    nothing = np.full(len(timed.kernels), np.nan)
    if not len(counted.counters):
        return Counted(nothing, nothing)
    own = per_dispatch(counted)
    keys = _keys(counted, timed)
    return Counted(_mean_by(keys, own.fabric_bytes), _mean_by(keys, own.operations))


def per_dispatch(trace: Trace) -> Counted:
    """What the counters of a trace say of each of its own kernels."""
    read, written = KIB * _first_of(trace, _READ), KIB * _first_of(trace, _WRITTEN)
    for whole, short, long in _READ_RAW:
        bubbles = _column(trace, long) if long else np.zeros(len(trace.kernels))
        raw = 128 * bubbles + 64 * (_column(trace, whole) - bubbles - _column(trace, short)) + 32 * _column(trace, short)
        read = np.where(np.isfinite(read), read, raw)
    for whole, long in _WRITTEN_RAW:
        raw = 32 * (_column(trace, whole) - _column(trace, long)) + 64 * _column(trace, long)
        written = np.where(np.isfinite(written), written, raw)
    matrix = _first_of(trace, _MATRIX)
    for names, unit in ((_MATRIX_BY_TYPE, 1.0), (_MATRIX_RAW, _MOPS)):
        matrix = np.where(np.isfinite(matrix), matrix, unit * _sum_of(trace, names))
    totals = _sum_of(trace, _TOTALS)
    narrow = _MOPS * np.nan_to_num(_sum_of(trace, _NARROW_RAW))
    return Counted(read + written, np.where(np.isfinite(totals), totals, matrix) + narrow)


def _column(trace: Trace, name: str) -> F64:
    """One counter per kernel, over its instances; NaN where it was not collected."""
    column = np.full(len(trace.kernels), np.nan)
    rows = np.flatnonzero((trace.counters.name == trace.strings.find(name)) & (trace.counters.kernel != NULL) & (trace.counters.name != NULL))
    if len(rows):
        owner = trace.counters.kernel[rows]
        column[np.unique(owner)] = 0.0
        np.add.at(column, owner, trace.counters.value[rows])
    return column


def _first_of(trace: Trace, names: Iterable[str]) -> F64:
    found = np.full(len(trace.kernels), np.nan)
    for name in names:
        found = np.where(np.isfinite(found), found, _column(trace, name))
    return found


def _sum_of(trace: Trace, names: Iterable[str]) -> F64:
    """The sum of those that were collected; NaN where none was."""
    columns = np.stack([_column(trace, name) for name in names])
    return np.where(np.isfinite(columns).any(axis=0), np.nansum(columns, axis=0), np.nan)


def _keys(counted: Trace, timed: Trace) -> tuple[I64, I64]:
    """Keys of the kernels of both traces, equal where name and workgroups are."""
    names = {text: code for code, text in enumerate(counted.strings.texts)}
    used, place = np.unique(timed.kernels.name, return_inverse=True)
    # names that the counter pass does not know get codes of their own beyond its pool
    translated = np.array([names.get(timed.strings[int(code)], len(names) + int(code)) for code in used], np.int64)
    columns = (np.concatenate((counted.kernels.name.astype(np.int64), translated[place] if len(used) else np.empty(0, np.int64))),
               np.concatenate((counted.kernels.workgroups, timed.kernels.workgroups)))
    packed = pack(columns)
    return packed[: len(counted.kernels)], packed[len(counted.kernels):]


def _mean_by(keys: tuple[I64, I64], values: F64) -> F64:
    known = np.isfinite(values)
    result = np.full(len(keys[1]), np.nan)
    if not known.any():
        return result
    distinct, place = np.unique(keys[0][known], return_inverse=True)
    mean = np.bincount(place, weights=values[known]) / np.bincount(place)
    position = np.minimum(np.searchsorted(distinct, keys[1]), len(distinct) - 1)
    found = distinct[position] == keys[1]
    result[found] = mean[position[found]]
    return result
