"""The work of kernels: that of the operators that launched them, by the formulas of the table.

FLOPs are those of matrix products, two per multiply-add. Bytes are a lower bound of memory traffic:
every tensor is read or written once, whatever the caches and the kernel do. What has no formula, or
whose formula needs what the trace does not hold, is NaN.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import kernel_category, may_multiply
from profharness.analysis.operators.engine import Engine, own_engine
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.records import Work
from profharness.analysis.operators.rows import RowWork, row_work
from profharness.node.devices import Dtype
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I32, I64, Strings, Trace

Mask = npt.NDArray[np.bool_]
# Kernels that multiply fp32 operands in TF32 (AMD: XF32), by their names: CUTLASS calls its
# instruction m16n8k8 on fp32 operands s1688gemm (s1688f32gemm takes three of them for fp32's own
# precision), cuDNN and later libraries say tf32.
_TF32 = re.compile(r"[tx]f32|s1688gemm", re.IGNORECASE)
# Kernels of convolutions that multiply less often than the direct method, for which the formulas
# stand: Winograd (MIOpen calls its own miopenSp3AsmConv) and Fourier transforms.
_FEWER = re.compile(r"winograd|miopenSp3AsmConv|fft", re.IGNORECASE)
MATRIX = frozenset(("gemm", "conv", "attention"))


@dataclass(frozen=True, eq=False)
class KernelWork:
    """Per kernel: its share of its operator's work, by its share of the time of the kernels that do
    this work. NaN where not known.

    Matrix work is that of the operator's kernels of matrix categories, or of all of them where none
    is known by its name: a transpose beside a convolution multiplies nothing. `dtype` is a position
    in `dtypes`, NULL where the operator multiplies no matrices: the type of the operands, or TF32
    where the kernel's name says that it rounds fp32 operands to that. `fewer`: some kernel of the
    operator is of an algorithm that multiplies less often than the formulas count, so that the
    operator may exceed the peak. `again` are the kernels of a
    forward pass that the backward pass runs again: their work is no useful one. `alone` are the
    kernels that do all of their operator's matrix work, so that `flops` is no share, and
    `moves_alone` those that have all of its `low_bytes`.
    """

    flops: F64
    low_bytes: F64
    dtype: I64
    dtypes: tuple[Dtype, ...]
    fewer: Mask
    again: Mask
    alone: Mask
    moves_alone: Mask

    @property
    def useful(self) -> F64:
        """FLOPs without those that are done again."""
        return np.where(self.again, 0.0, self.flops)


def of_kernels(trace: Trace, known: RowWork | None = None) -> KernelWork:
    """The work of every kernel that a recorded operator launched; an operator counts once, however
    many kernels and nested operators it has.
    """
    kernels, ops = trace.kernels, trace.ops
    flops, low_bytes = np.full(len(kernels), np.nan), np.full(len(kernels), np.nan)
    dtype = np.full(len(kernels), NULL, np.int64)
    fewer, again, alone, moves_alone = np.zeros((4, len(kernels)), np.bool_)
    rows = np.flatnonzero((kernels.op != NULL) & (kernels.dur_ns > 0))
    if not len(rows):
        return KernelWork(flops, low_bytes, dtype, (), fewer, again, alone, moves_alone)
    works = row_work(trace) if known is None else known
    op = kernels.op[rows].astype(np.int64)
    again[rows] = works.again[op]
    owner = works.owner[op]
    doing = _doing(trace, rows, owner)
    doer = np.where(doing, owner, NULL)
    flops[rows] = _shared(works.flops, doer, kernels.dur_ns[rows])
    alone[rows] = _alone(doer)
    streams = nests(ops).nearest(np.isfinite(works.low_bytes) & ~works.known)[op]
    mover = np.where(
        doing, owner, np.where(owner == NULL, streams, _deeper(ops.depth, streams, owner))
    )
    low_bytes[rows] = _shared(works.low_bytes, mover, kernels.dur_ns[rows])
    moves_alone[rows] = _alone(mover)
    multiplying = rows[doing]
    dtype[multiplying] = works.dtype[owner[doing]]
    dtypes = works.dtypes
    fewer[multiplying] = _says(trace, multiplying, owner[doing], _FEWER)
    if "fp32" in dtypes:
        in_tf32 = _says(trace, multiplying, owner[doing], _TF32)
        rounded = multiplying[(dtype[multiplying] == dtypes.index("fp32")) & in_tf32]
        if len(rounded):
            dtype[rounded], dtypes = len(dtypes), (*dtypes, "tf32")
    return KernelWork(flops, low_bytes, dtype, dtypes, fewer, again, alone, moves_alone)


def with_own_entries(
    trace: Trace, work: KernelWork, known: RowWork | None, engine: Engine
) -> KernelWork:
    """The work of all kernels, with that of entries for kernels where no operator of known matrix
    work launched them. Each distinct name is looked at once.
    """
    kernels = trace.kernels
    if not engine.knows_kernels or not len(kernels):
        return work
    free = ~np.isfinite(work.flops)
    if known is not None:
        free &= (kernels.op == NULL) | (known.owner[kernels.op] == NULL)
    codes, place = coded(kernels.name)
    works = [engine.kernel_work(trace.strings[code]) for code in codes.tolist()]
    dtypes = tuple(
        dict.fromkeys([*work.dtypes, *(one.dtype for one in works if one.dtype is not None)])
    )
    typed = np.array([NULL if one.dtype is None else dtypes.index(one.dtype) for one in works])

    def filled(column: F64, values: list[float | None]) -> F64:
        own = np.array([np.nan if value is None else value for value in values], np.float64)[place]
        return np.where(free & np.isfinite(own), own, column)

    flops = filled(work.flops, [one.flops for one in works])
    low_bytes = filled(work.low_bytes, [one.low_bytes for one in works])
    return replace(
        work,
        flops=flops,
        low_bytes=low_bytes,
        alone=work.alone | (flops != work.flops) & np.isfinite(flops),
        moves_alone=work.moves_alone | (low_bytes != work.low_bytes) & np.isfinite(low_bytes),
        dtype=np.where(free & np.isfinite(flops), typed[place], work.dtype),
        dtypes=dtypes,
    )


def work_of(name: str, shapes: str, types: str, concrete: str = "", strides: str = "") -> Work:
    """The work of one operator from its name and the recorded JSON of its inputs."""
    return own_engine().work(name, shapes, types, concrete, strides)


def matrix_kernels(names: I32, strings: Strings) -> Mask:
    """Which kernels are of a category that multiplies matrices; each name is looked at once."""
    codes, place = coded(names)
    of_matrices = [kernel_category(strings[code]) in MATRIX for code in codes.tolist()]
    return np.array(of_matrices, np.bool_)[place]


def unnamed_products(trace: Trace) -> Mask:
    """Which kernels may multiply matrices although they have no category: their names do not say
    that they do not, and no operator of torch's own launched them (those that multiply have
    formulas).
    """
    codes, place = coded(trace.kernels.name)
    unnamed: Mask = np.array(
        [may_multiply(trace.strings[code]) for code in codes.tolist()], np.bool_
    )[place]
    launched = np.flatnonzero(unnamed & (trace.kernels.op != NULL))
    if len(launched):
        names, op = coded(trace.ops.name[trace.kernels.op[launched]])
        own = [trace.strings[code].startswith("aten::") for code in names.tolist()]
        unnamed[launched] = ~np.array(own, np.bool_)[op]
    return unnamed


def _doing(trace: Trace, rows: I64, owner: I64) -> Mask:
    """Which of these kernels do the matrix work of their owners."""
    named = matrix_kernels(trace.kernels.name[rows], trace.strings) & (owner != NULL)
    has_named = np.zeros(len(trace.ops) + 1, np.bool_)
    has_named[owner[named]] = True
    doing: Mask = named | ((owner != NULL) & ~has_named[owner])
    return doing


def _deeper(depth: I32, streams: I64, owner: I64) -> I64:
    """What a kernel beside an owner's matrix work streams for: only an operator inside of that
    owner.
    """
    inside = (streams != NULL) & (depth[streams] > depth[owner])
    return np.where(inside, streams, NULL)


def _shared(work: F64, owner: I64, dur_ns: I64) -> F64:
    """Each kernel's part of its owner's work, by time; NaN for none."""
    held = owner != NULL
    total = np.bincount(owner[held], weights=dur_ns[held], minlength=len(work))
    parts = np.full(len(owner), np.nan)
    parts[held] = work[owner[held]] * (dur_ns[held] / total[owner[held]])
    return parts


def _alone(owner: I64) -> Mask:
    """Which kernels are the only one of their owner."""
    held = owner != NULL
    alone: Mask = held & (np.bincount(owner[held], minlength=1)[owner] == 1)
    return alone


def _says(trace: Trace, rows: I64, owner: I64, pattern: re.Pattern[str]) -> Mask:
    """Per kernel whether the name of some kernel of its owner matches: one that only adds up parts
    may not say it. Each distinct name is looked at once.
    """
    codes, place = coded(trace.kernels.name[rows])
    says = [pattern.search(trace.strings[code]) is not None for code in codes.tolist()]
    counts = np.bincount(owner, weights=np.array(says, np.float64)[place], minlength=1)
    said: Mask = counts[owner] > 0
    return said
