"""The work of kernels: that of the operators that launched them, by the formulas of the table.

FLOPs are those of matrix products, two per multiply-add. Bytes are a lower bound of memory traffic:
every tensor is read or written once, whatever the caches and the kernel do. What has no formula, or
whose formula needs what the trace does not hold, is NaN.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.grouping import pack
from profharness.analysis.operators.engine import Engine, own_engine
from profharness.analysis.operators.records import Work
from profharness.node.devices import Dtype
from profharness.trace.columns.keys import coded, first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I32, I64, Ops, Trace

# Kernels that multiply fp32 operands in TF32 (AMD: XF32), by their names: CUTLASS calls its
# instruction m16n8k8 on fp32 operands s1688gemm (s1688f32gemm takes three of them for fp32's own
# precision), cuDNN and later libraries say tf32.
_TF32 = re.compile(r"[tx]f32|s1688gemm", re.IGNORECASE)
# Algorithms of convolutions that multiply less often than the direct method, for which the formulas
# stand: Winograd (MIOpen calls its own miopenSp3AsmConv) and Fourier transforms.
_FEWER = re.compile(r"winograd|miopenSp3AsmConv|fft", re.IGNORECASE)
_TEXTS = ("name", "shapes", "dtype", "concrete", "strides")


@dataclass(frozen=True, eq=False)
class KernelWork:
    """Per kernel: its share of its operator's work, by its share of the operator's kernel time. NaN
    where not known.

    `dtype` is a position in `dtypes`, NULL where the operator multiplies no matrices: the type of
    the operands, or TF32 where the kernel's name says that it rounds fp32 operands to that.
    `fewer`: some kernel of the operator is of an algorithm that multiplies less often than the
    formulas count, so that the operator may exceed the peak.
    """

    flops: F64
    low_bytes: F64
    dtype: I64
    dtypes: tuple[Dtype, ...]
    fewer: npt.NDArray[np.bool_]


def of_kernels(trace: Trace, engine: Engine | None = None) -> KernelWork:
    """The work of every kernel that a recorded operator launched; an operator counts once, however
    many kernels it has. FLOPs of which only the most is known are not known.
    """
    engine = engine or own_engine()
    kernels, ops = trace.kernels, trace.ops
    flops, low_bytes = np.full(len(kernels), np.nan), np.full(len(kernels), np.nan)
    dtype = np.full(len(kernels), NULL, np.int64)
    fewer = np.zeros(len(kernels), np.bool_)
    rows = np.flatnonzero((kernels.op != NULL) & (kernels.dur_ns > 0))
    if not len(rows):
        return KernelWork(flops, low_bytes, dtype, (), fewer)
    used, place = coded(kernels.op[rows])
    columns = _recorded(ops, used)
    first, alike = first_rows(pack(columns))
    works = [
        engine.work(*(trace.strings[int(column[row])] for column in columns))
        for row in first.tolist()
    ]
    dtypes = tuple(dict.fromkeys(work.dtype for work in works if work.dtype is not None))
    total_ns = np.bincount(place, weights=kernels.dur_ns[rows])
    part = kernels.dur_ns[rows] / total_ns[place]

    def each(values: list[float | None]) -> F64:
        return np.array([np.nan if value is None else value for value in values], np.float64)[
            alike
        ][place]

    flops[rows] = part * each([None if work.bound == "most" else work.flops for work in works])
    low_bytes[rows] = part * each([work.low_bytes for work in works])
    dtype[rows] = np.array(
        [NULL if work.dtype is None else dtypes.index(work.dtype) for work in works], np.int64
    )[alike][place]
    fewer[rows] = _of_operators(trace, kernels.name[rows], place, _FEWER)
    # of an operator's kernels one that adds up parts may not say it
    in_tf32 = _of_operators(trace, kernels.name[rows], place, _TF32)
    rounded = (
        rows[(dtype[rows] == dtypes.index("fp32")) & in_tf32] if "fp32" in dtypes else rows[:0]
    )
    if len(rounded):
        dtype[rounded], dtypes = len(dtypes), (*dtypes, "tf32")
    return KernelWork(flops, low_bytes, dtype, dtypes, fewer)


def _of_operators(
    trace: Trace, names: I32, place: npt.NDArray[np.intp], pattern: re.Pattern[str]
) -> npt.NDArray[np.bool_]:
    """Per kernel whether the name of some kernel of its operator, which is its `place`, matches;
    each distinct name is looked at once.
    """
    codes, alike = coded(names)
    says = np.array([pattern.search(trace.strings[code]) is not None for code in codes.tolist()])
    found: npt.NDArray[np.bool_] = np.bincount(place, weights=says[alike])[place] > 0
    return found


def _recorded(ops: Ops, rows: I32) -> list[I32]:
    """The texts that were recorded of these operators, in the order of `Engine.work`: columns that
    the trace model does not have end the list.
    """
    held = takewhile(lambda name: hasattr(ops, name), _TEXTS)
    return [getattr(ops, name)[rows] for name in held]


def work_of(name: str, shapes: str, types: str, concrete: str = "", strides: str = "") -> Work:
    """The work of one operator from its name and the recorded JSON of its inputs."""
    return own_engine().work(name, shapes, types, concrete, strides)
