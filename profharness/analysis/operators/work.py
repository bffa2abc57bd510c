"""What an operator has to do at least, from its recorded shapes: operations of matrix products,
bytes that must move.

FLOPs are counted as torch's own counter counts them: matrix products only, two per multiply-add.
Bytes are a lower bound of memory traffic: every tensor is read or written once, whatever the caches
and the kernel do. What has no formula here (convolutions, whose strides are not recorded;
attention, whose mask is not; gathers) is NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import op_category
from profharness.analysis.kernels.grouping import pack
from profharness.node.devices import Dtype
from profharness.trace.columns.keys import coded, first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

_ITEM_BYTES = {
    "float": 4,
    "double": 8,
    "c10::BFloat16": 2,
    "c10::Half": 2,
    "long int": 8,
    "long": 8,
    "int": 4,
    "short": 2,
    "bool": 1,
    "unsigned char": 1,
    "signed char": 1,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e5m2fnuz": 1,
}
_PEAK_OF: dict[str, Dtype] = {
    "float": "fp32",
    "double": "fp64",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "signed char": "int8",
}
# Kernels that multiply fp32 operands in TF32 (AMD: XF32), by their names: CUTLASS calls its
# instruction m16n8k8 on fp32 operands s1688gemm (s1688f32gemm takes three of them for fp32's own
# precision), cuDNN and later libraries say tf32.
_TF32 = re.compile(r"[tx]f32|s1688gemm", re.IGNORECASE)
_TRUTHS = frozenset(
    (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_not",
        "isnan",
        "isinf",
        "isfinite",
    )
)
_WRITES_ONLY = frozenset(("fill_", "zero_"))
_BOTH_LISTED = frozenset(("copy_",))  # the target stands among the inputs


@dataclass(frozen=True)
class Tensor:
    """One input: its extents and the bytes of an element."""

    dims: tuple[int, ...]
    item_bytes: int
    kind: str

    @property
    def elements(self) -> int:
        return prod(self.dims)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.elements * self.item_bytes


@dataclass(frozen=True)
class Work:
    """FLOPs, bytes at least, and the type of the operands of a matrix product; None where no
    formula applies.
    """

    flops: float | None = None
    low_bytes: float | None = None
    dtype: Dtype | None = None


NOTHING = Work()


@dataclass(frozen=True, eq=False)
class KernelWork:
    """Per kernel: its share of its operator's work, by its share of the operator's kernel time. NaN
    where not known.

    `dtype` is a position in `dtypes`, NULL where the operator multiplies no matrices: the type of
    the operands, or TF32 where the kernel's name says that it rounds fp32 operands to that.
    """

    flops: F64
    low_bytes: F64
    dtype: I64
    dtypes: tuple[Dtype, ...]


def of_kernels(trace: Trace) -> KernelWork:
    """The work of every kernel that a recorded operator launched; an operator counts once, however
    many kernels it has.
    """
    kernels, ops = trace.kernels, trace.ops
    flops, low_bytes = np.full(len(kernels), np.nan), np.full(len(kernels), np.nan)
    dtype = np.full(len(kernels), NULL, np.int64)
    rows = np.flatnonzero((kernels.op != NULL) & (kernels.dur_ns > 0))
    if not len(rows):
        return KernelWork(flops, low_bytes, dtype, ())
    used, place = coded(kernels.op[rows])
    columns = (ops.name[used], ops.shapes[used], ops.dtype[used])
    first, alike = first_rows(pack(columns))
    works = [
        work_of(*(trace.strings[int(column[row])] for column in columns)) for row in first.tolist()
    ]
    dtypes = tuple(dict.fromkeys(work.dtype for work in works if work.dtype is not None))
    total_ns = np.bincount(place, weights=kernels.dur_ns[rows])
    part = kernels.dur_ns[rows] / total_ns[place]

    def each(values: list[float | None]) -> F64:
        return np.array([np.nan if value is None else value for value in values], np.float64)[
            alike
        ][place]

    flops[rows] = part * each([work.flops for work in works])
    low_bytes[rows] = part * each([work.low_bytes for work in works])
    dtype[rows] = np.array(
        [NULL if work.dtype is None else dtypes.index(work.dtype) for work in works], np.int64
    )[alike][place]
    in_tf32 = (
        np.bincount(place, weights=_in_tf32(trace, kernels.name[rows])) > 0
    )  # of an operator's kernels one that adds up parts may not say it
    rounded = (
        rows[(dtype[rows] == dtypes.index("fp32")) & in_tf32[place]]
        if "fp32" in dtypes
        else rows[:0]
    )
    if len(rounded):
        dtype[rounded], dtypes = len(dtypes), (*dtypes, "tf32")
    return KernelWork(flops, low_bytes, dtype, dtypes)


def _in_tf32(trace: Trace, names: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Per kernel name; each distinct one is looked at once."""
    codes, place = coded(names)
    return np.array(
        [_TF32.search(trace.strings[code]) is not None for code in codes.tolist()], np.bool_
    )[place]


def work_of(name: str, shapes: str, types: str) -> Work:
    """The work of one operator from its name and the recorded JSON of its inputs' extents and
    types.
    """
    tensors = read_tensors(shapes, types)
    if tensors is None:
        return NOTHING
    op = name.removeprefix("aten::")
    if op in _PRODUCTS:
        return _product(*_PRODUCTS[op](tensors)) if len(tensors) >= _OPERANDS[op] else NOTHING
    return Work(low_bytes=_traffic(name, op, tensors)) if tensors else NOTHING


def _traffic(name: str, op: str, tensors: list[Tensor]) -> float | None:
    """Bytes that must move, by what kind of operator it is; a kernel that inductor fused lists
    every tensor that it touches.
    """
    if name.startswith("triton_"):
        return sum(tensor.size for tensor in tensors)
    category = op_category(name)
    if category in ("elementwise", "copy"):
        return _streamed(op, tensors)
    if category == "normalisation":
        return sum(tensor.size for tensor in tensors) + tensors[0].size
    return tensors[0].size if category == "reduction" else None


def read_tensors(shapes: str, types: str) -> list[Tensor] | None:
    """The tensors among an operator's inputs; None where they are not recorded or one is of an
    unknown type (a list of tensors).
    """
    try:
        extents, kinds = msgspec.json.decode(shapes), msgspec.json.decode(types)
    except msgspec.DecodeError:
        return None
    if not isinstance(extents, list) or not isinstance(kinds, list):
        return None
    tensors = []
    for dims, kind in zip(extents, kinds, strict=False):
        if (
            kind in _ITEM_BYTES
            and isinstance(dims, list)
            and all(isinstance(extent, int) for extent in dims)
        ):
            tensors.append(Tensor(tuple(dims), _ITEM_BYTES[kind], kind))
        elif kind not in ("", "Scalar", "ScalarList", "None"):
            return None
    return tensors


Operands = tuple[Tensor, Tensor, tuple[Tensor, ...]]
_PRODUCTS: dict[str, Callable[[list[Tensor]], Operands]] = {
    **dict.fromkeys(("mm", "bmm"), lambda t: (t[0], t[1], ())),
    **dict.fromkeys(("addmm", "baddbmm", "addmm_", "baddbmm_"), lambda t: (t[1], t[2], (t[0],))),
}
_OPERANDS = {"mm": 2, "bmm": 2, "addmm": 3, "baddbmm": 3, "addmm_": 3, "baddbmm_": 3}


def _product(left: Tensor, right: Tensor, further: tuple[Tensor, ...]) -> Work:
    """[..., m, k] x [..., k, n]."""
    if len(left.dims) < 2 or len(left.dims) != len(right.dims) or left.dims[-1] != right.dims[-2]:
        return NOTHING
    result = left.elements // max(left.dims[-1], 1) * right.dims[-1]
    moved = (
        left.size + right.size + result * left.item_bytes + sum(tensor.size for tensor in further)
    )
    kind: Dtype | None = "fp8" if "Float8" in left.kind else _PEAK_OF.get(left.kind)
    return Work(2.0 * result * left.dims[-1], float(moved), kind)


def _streamed(op: str, tensors: list[Tensor]) -> float:
    """Inputs read once and the result written once; the result has the broadcast shape and the type
    of the largest input.
    """
    if op in _WRITES_ONLY:
        return tensors[0].size
    read = sum(tensor.size for tensor in tensors)
    if op in _BOTH_LISTED:
        return read
    if op.endswith("_"):
        return read + tensors[0].size
    rank = max(len(tensor.dims) for tensor in tensors)
    wide = [(1,) * (rank - len(tensor.dims)) + tensor.dims for tensor in tensors]
    elements: int = prod(max(extents) for extents in zip(*wide, strict=True))
    largest = max(tensors, key=lambda tensor: tensor.elements)
    return read + elements * (1 if op in _TRUTHS else largest.item_bytes)
