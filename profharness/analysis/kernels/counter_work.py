"""Hardware counters as work: bytes that crossed from the L2 to the fabric, of these to memory, and
operations, per dispatch of each kernel.

A counter pass serialises kernels, so that its times are not used: only what a dispatch moves and
computes is taken from it, by kernel name (and number of workgroups where both sides have it), and
set against times of another pass. FETCH_SIZE and WRITE_SIZE are KiB between L2 and fabric (Infinity
Cache, HBM, other devices): an upper bound of what HBM moves. The requests among them that are
addressed to the device's own DRAM are counted apart, but not their sizes: of the bytes they are
given the share that they are of the requests. Where an Infinity Cache lies between (gfx942 on) its
hits are among them. MFMA operations are counted in units of 512 (rocprofiler's MfmaFlops, which
leaves out 8 bits and less: these are added here), vector operations per wave of 64 lanes, a
multiply-add being two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from profharness.analysis.kernels.grouping import pack
from profharness.node.devices import Dtype
from profharness.trace.columns.keys import coded, distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

KIB = 1024.0
# The raw counters behind them: (all requests, those of 32 B, those of 128 B, those to DRAM) and
# (all, those of 64 B, those to DRAM); gfx942 on has the second names.
_READ_RAW = (
    ("TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum", "", "TCC_EA_RDREQ_DRAM_sum"),
    ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum", "TCC_EA0_RDREQ_DRAM_sum"),
)
_WRITTEN_RAW = (
    ("TCC_EA_WRREQ_sum", "TCC_EA_WRREQ_64B_sum", "TCC_EA_WRREQ_DRAM_sum"),
    ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum", "TCC_EA0_WRREQ_DRAM_sum"),
)
_READ = ("FETCH_SIZE", "FetchSize")
_WRITTEN = ("WRITE_SIZE", "WriteSize")
_MATRIX = ("MfmaFlops",)
_MOPS = 512.0
_LANES = 64.0
# By type: the derived total, the raw matrix counter, the suffix of the raw vector counters, the
# derived matrix counter.
_TYPES: tuple[tuple[Dtype, str, str, str, str], ...] = (
    ("fp64", "TOTAL_64_OPS", "SQ_INSTS_VALU_MFMA_MOPS_F64", "F64", "MfmaFlopsF64"),
    ("fp32", "TOTAL_32_OPS", "SQ_INSTS_VALU_MFMA_MOPS_F32", "F32", "MfmaFlopsF32"),
    ("fp16", "TOTAL_16_OPS", "SQ_INSTS_VALU_MFMA_MOPS_F16", "F16", "MfmaFlopsF16"),
    ("bf16", "", "SQ_INSTS_VALU_MFMA_MOPS_BF16", "", "MfmaFlopsBF16"),
    ("fp8", "", "SQ_INSTS_VALU_MFMA_MOPS_F8", "", ""),
    ("fp4", "", "SQ_INSTS_VALU_MFMA_MOPS_F6F4", "", ""),
    ("int8", "", "SQ_INSTS_VALU_MFMA_MOPS_I8", "", ""),
)
ARCHITECTURES = {"gfx908": False, "gfx90a": False, "gfx942": True, "gfx950": True}
"""Whether an Infinity Cache lies between L2 and memory."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Per kernel, of one dispatch: bytes between L2 and fabric, of these to and from memory,
    hardware operations; NaN where not counted.

    `by_type` are the operations by type; those that no type is known of stand in `operations`
    alone.
    """

    fabric_bytes: F64
    hbm_bytes: F64
    operations: F64
    by_type: dict[Dtype, F64]

    @property
    def anything(self) -> bool:
        """Whether any kernel has a figure."""
        return bool(np.isfinite(self.fabric_bytes).any() or np.isfinite(self.operations).any())

    @property
    def moved(self) -> F64:
        """Memory traffic: as counted, else that of the fabric, which is an upper bound."""
        return np.where(np.isfinite(self.hbm_bytes), self.hbm_bytes, self.fabric_bytes)


def counted_work(counted: Trace, timed: Trace) -> Counted:
    """For the kernels of `timed`, the mean of what the counters of `counted` say of dispatches like
    it.
    """
    nothing = np.full(len(timed.kernels), np.nan)
    if not len(counted.counters):
        return Counted(nothing, nothing, nothing, {})
    work = per_dispatch(counted)
    keys, wanted = matching_keys(counted, timed)
    return Counted(
        mean_by(keys, work.fabric_bytes, wanted),
        mean_by(keys, work.hbm_bytes, wanted),
        mean_by(keys, work.operations, wanted),
        {dtype: mean_by(keys, column, wanted) for dtype, column in work.by_type.items()},
    )


class CountedMeans:
    """What `counted_work` needs of all records of a run, gathered from one part of them after the
    other: sums by kernel name and workgroups, so that the counters themselves need not be kept.

    All parts are to be added before kernels are asked for. `counters` is the number of values that
    the parts held.
    """

    def __init__(self) -> None:
        self.counters = 0
        self._unknown: set[str] = set()
        self._sums: dict[tuple[str, int], F64] = {}

    def add(self, trace: Trace) -> None:
        """The records of one part."""
        kernels, strings = trace.kernels, trace.strings
        for code in distinct(kernels.name[kernels.workgroups == NULL]).tolist():
            self._unknown.add(strings[code])
        if not len(trace.counters) or not len(kernels):
            return
        self.counters += len(trace.counters)
        work = per_dispatch(trace)
        columns = np.stack(
            (work.fabric_bytes, work.hbm_bytes, work.operations, *work.by_type.values())
        )
        known = np.isfinite(columns)
        shapes = pack([kernels.name.astype(np.int64), kernels.workgroups])
        _, first, place = np.unique(shapes, return_index=True, return_inverse=True)
        sums, counts = (
            np.stack([np.bincount(place, weights=row, minlength=len(first)) for row in rows])
            for rows in (np.where(known, columns, 0.0), known.astype(np.float64))
        )
        for at, row in enumerate(first.tolist()):
            if counts[:, at].any():
                key = strings[int(kernels.name[row])], int(kernels.workgroups[row])
                self._sums[key] = self._sums.get(key, 0.0) + np.stack((sums[:, at], counts[:, at]))

    def of(self, trace: Trace) -> Counted:
        """For the kernels of one part the mean over dispatches like each, of all parts."""
        kernels, strings = trace.kernels, trace.strings
        sums: dict[tuple[str, int], F64] = {}
        for (name, workgroups), added in self._sums.items():
            key = name, NULL if name in self._unknown else workgroups
            sums[key] = sums.get(key, 0.0) + added
        shapes = pack([kernels.name.astype(np.int64), kernels.workgroups])
        _, first, place = np.unique(shapes, return_index=True, return_inverse=True)
        means = np.full((3 + len(_TYPES), len(first)), np.nan)
        for at, row in enumerate(first.tolist()):
            name = strings[int(kernels.name[row])]
            found = sums.get(
                (name, NULL if name in self._unknown else int(kernels.workgroups[row]))
            )
            if found is not None:
                means[:, at] = np.where(found[1] > 0, found[0] / np.maximum(found[1], 1), np.nan)
        fabric, hbm, operations, *types = means[:, place]
        by_type = {row[0]: column for row, column in zip(_TYPES, types, strict=True)}
        return Counted(fabric, hbm, operations, by_type)


def mean_of_dispatches(counted: Trace, timed: Trace, values: F64) -> F64:
    """A column over the kernels of `counted` as one over those of `timed`: the mean over dispatches
    like each.
    """
    keys, wanted = matching_keys(counted, timed)
    return mean_by(keys, values, wanted)


def per_dispatch(trace: Trace) -> Counted:
    """What the counters of a trace say of each of its own kernels."""
    read, from_dram = _read(trace)
    written, to_dram = _written(trace)
    types = _operations(trace)
    matrix = first_of(trace, _MATRIX)
    stacked = np.stack([*types.values(), np.full(len(trace.kernels), np.nan)])
    wide = np.isfinite(np.stack([types[dtype] for dtype in ("fp64", "fp32", "fp16", "bf16")])).any(
        axis=0
    )
    narrow = np.nan_to_num(
        np.nansum(np.stack([types[dtype] for dtype in ("fp8", "fp4", "int8")]), axis=0)
    )
    typed = np.where(np.isfinite(stacked).any(axis=0), np.nansum(stacked, axis=0), np.nan)
    operations = np.where(wide, typed, np.where(np.isfinite(matrix), matrix + narrow, typed))
    return Counted(read + written, read * from_dram + written * to_dram, operations, types)


def _read(trace: Trace) -> tuple[F64, F64]:
    """Bytes read through the fabric, and the share of the requests that went to DRAM (NaN where not
    counted).
    """
    read, share = KIB * first_of(trace, _READ), np.full(len(trace.kernels), np.nan)
    for whole, short, long, dram in _READ_RAW:
        bubbles = column(trace, long) if long else np.zeros(len(trace.kernels))
        raw = (
            128 * bubbles
            + 64 * (column(trace, whole) - bubbles - column(trace, short))
            + 32 * column(trace, short)
        )
        read, share = (
            np.where(np.isfinite(read), read, raw),
            _shared(share, column(trace, dram), column(trace, whole)),
        )
    return read, share


def _written(trace: Trace) -> tuple[F64, F64]:
    written, share = KIB * first_of(trace, _WRITTEN), np.full(len(trace.kernels), np.nan)
    for whole, long, dram in _WRITTEN_RAW:
        raw = 32 * (column(trace, whole) - column(trace, long)) + 64 * column(trace, long)
        written, share = (
            np.where(np.isfinite(written), written, raw),
            _shared(share, column(trace, dram), column(trace, whole)),
        )
    return written, share


def _shared(so_far: F64, part: F64, whole: F64) -> F64:
    """Part over whole, at most 1 (the two may be of different executions), where nothing is known
    yet.
    """
    return np.where(
        np.isfinite(so_far),
        so_far,
        np.where(
            whole > 0,
            np.minimum(part / np.where(whole > 0, whole, 1.0), 1.0),
            np.where(whole == 0, 0.0, np.nan),
        ),
    )


def _operations(trace: Trace) -> dict[Dtype, F64]:
    """Operations by type: the tool's totals, else vector and matrix instructions, else the tool's
    matrix totals.
    """
    by_type: dict[Dtype, F64] = {}
    for dtype, total, matrix, vector, derived in _TYPES:
        tool_total = column(trace, total) if total else np.full(len(trace.kernels), np.nan)
        parts = [_MOPS * column(trace, matrix)]
        if vector:
            parts += [
                _LANES * weight * column(trace, f"SQ_INSTS_VALU_{kind}_{vector}")
                for kind, weight in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
            ]
        raw = _sum(parts)
        by_type[dtype] = np.where(
            np.isfinite(tool_total),
            tool_total,
            np.where(np.isfinite(raw), raw, column(trace, derived) if derived else np.nan),
        )
    # the total of 16 bits holds both types
    both_types = np.isfinite(column(trace, "TOTAL_16_OPS"))
    by_type["bf16"] = np.where(both_types, np.nan, by_type["bf16"])
    return by_type


def _sum(parts: list[F64]) -> F64:
    """The sum of those that were collected; NaN where none was."""
    columns = np.stack(parts)
    return np.where(np.isfinite(columns).any(axis=0), np.nansum(columns, axis=0), np.nan)


def column(trace: Trace, name: str) -> F64:
    """One counter per kernel, over its instances; NaN where it was not collected."""
    values = np.full(len(trace.kernels), np.nan)
    rows = np.flatnonzero(
        (trace.counters.name == trace.strings.find(name))
        & (trace.counters.kernel != NULL)
        & (trace.counters.name != NULL)
    )
    if len(rows):
        owner = trace.counters.kernel[rows]
        values[np.unique(owner)] = 0.0
        np.add.at(values, owner, trace.counters.value[rows])
    return values


def first_of(trace: Trace, names: Iterable[str]) -> F64:
    """The first of these counters that was collected, per kernel."""
    values = np.full(len(trace.kernels), np.nan)
    for name in names:
        values = np.where(np.isfinite(values), values, column(trace, name))
    return values


def matching_keys(counted: Trace, timed: Trace, rows: I64 | None = None) -> tuple[I64, I64]:
    """Keys of the counted kernels (of those at `rows`) and of those of `timed`: equal where names
    are and, where both passes know the workgroups of every kernel of the name, workgroups too.
    """
    mine = counted.kernels if rows is None else counted.kernels.take(rows)
    names = {text: code for code, text in enumerate(counted.strings.texts)}
    used, place = coded(timed.kernels.name)
    # names that the counter pass does not know get codes of their own beyond its pool
    translated = np.array(
        [names.get(timed.strings[int(code)], len(names) + int(code)) for code in used], np.int64
    )
    theirs = translated[place] if len(used) else np.empty(0, np.int64)
    name = np.concatenate((mine.name.astype(np.int64), theirs))
    workgroups = np.concatenate((mine.workgroups, timed.kernels.workgroups))
    unknown = distinct(name[workgroups == NULL])
    packed = pack([name, np.where(np.isin(name, unknown), NULL, workgroups)])
    return packed[: len(mine)], packed[len(mine) :]


def mean_by(keys: I64, values: F64, wanted: I64) -> F64:
    """The mean of the finite values of each wanted key; NaN where there is none."""
    known = np.isfinite(values)
    result = np.full(len(wanted), np.nan)
    if not known.any():
        return result
    held, place = np.unique(keys[known], return_inverse=True)
    mean = np.bincount(place, weights=values[known]) / np.bincount(place)
    position = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    matches = held[position] == wanted
    result[matches] = mean[position[matches]]
    return result
