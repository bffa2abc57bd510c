"""Products of matrices: operations and least bytes from the extents of two operands."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from profharness.analysis.operators.calls import Call, Plain, Tensor
from profharness.analysis.operators.element_types import ElementType, by_number, named
from profharness.analysis.operators.entries import Matmul
from profharness.analysis.operators.records import NO_SHAPES, Misfit, Work, total, unknown

Extents = tuple[int, ...]


@dataclass(frozen=True)
class ProductSize:
    """`batch` products of [m, k] and [k, n]; k counts packed values singly."""

    batch: int
    m: int
    n: int
    k: int


def product_size(entry: Matmul, call: Call) -> ProductSize | None:
    """The extents that a library is asked for: rows of a batch that share one right operand are
    rows of one product. None where they are not recorded or offsets divide them. Raises Misfit
    where they do not fit together.
    """
    a, b = call.tensor(entry.a), call.tensor(entry.b)
    if a is None or b is None or not a.dims or not b.dims or entry.grouped:
        return None
    left, right = _left(a.dims), _right(entry, a.dims[-1], b.dims)
    batch, shared = prod(_broadcast(left[:-2], right[:-2])), prod(right[:-2]) == 1
    return ProductSize(
        1 if shared else batch,
        left[-2] * (batch if shared else 1),
        right[-1],
        left[-1] * _packed(entry, a),
    )


def product(entry: Matmul, call: Call) -> Work:
    """2 m n k per matrix of the batch. Raises Misfit where the extents do not fit together."""
    a, b = call.tensor(entry.a), call.tensor(entry.b)
    if a is None or b is None:
        if call.at(entry.a) is None or call.at(entry.b) is None:
            raise Misfit
        return unknown(NO_SHAPES)
    if not a.dims or not b.dims:
        raise Misfit
    if entry.grouped:
        return _grouped(entry, call, a, b)
    left = _left(a.dims)
    right = _right(entry, left[-1], b.dims)
    batch = _broadcast(left[:-2], right[:-2])
    multiplied = 2.0 * prod(batch) * left[-2] * right[-1] * left[-1] * _packed(entry, a)
    result = (1 if entry.reduced else prod(batch)) * left[-2] * right[-1]
    full = multiplied if entry.dense > 1 else None
    return _work(entry, call, multiplied / entry.dense, result, full=full)


def _packed(entry: Matmul, a: Tensor) -> int:
    """How many values along k share one element of the left operand."""
    return entry.packed * (a.kind.packed if a.kind is not None else 1)


def _left(dims: Extents) -> Extents:
    """The left operand as [.., m, k]."""
    return dims if len(dims) > 1 else (1, *dims)


def _right(entry: Matmul, k: int, dims: Extents) -> Extents:
    """The right operand as [.., k, n]. Raises Misfit."""
    if len(dims) == 1:
        right: Extents = (*dims, 1)
    elif entry.transposed_b is True or (
        entry.transposed_b == "either" and dims[-2] != k and dims[-1] == k
    ):
        right = (*dims[:-2], dims[-1], dims[-2])
    else:
        right = dims
    if right[-2] != k:
        raise Misfit
    return right


def _broadcast(one: Extents, other: Extents) -> Extents:
    """Raises Misfit where two extents differ and neither is 1."""
    if one == other or not other:
        return one
    rank = max(len(one), len(other))
    wide = [(1,) * (rank - len(dims)) + dims for dims in (one, other)]
    if any(low != high and 1 not in (low, high) for low, high in zip(*wide, strict=True)):
        raise Misfit
    return tuple(high if low == 1 else low for low, high in zip(*wide, strict=True))


def _grouped(entry: Matmul, call: Call, a: Tensor, b: Tensor) -> Work:
    """Several products whose sizes are offsets: the values of those are not recorded, so that all
    rows (or all of k) count as used.

    2-d by 3-d: rows are divided; 3-d by 2-d: columns; 2-d by 2-d: k; 3-d by 3-d: a batch.
    """
    ranks = (len(a.dims), len(b.dims))
    k_left, k_right = a.dims[-1], b.dims[-2] if len(b.dims) > 1 else -1
    if (
        not set(ranks) <= {2, 3}
        or k_left != k_right
        or (ranks == (3, 3) and a.dims[0] != b.dims[0])
    ):
        raise Misfit
    groups = a.dims[0] if ranks == (3, 3) else 1
    multiplied = 2.0 * groups * a.dims[-2] * b.dims[-1] * k_left * _packed(entry, a)
    if ranks == (3, 3):
        return _work(entry, call, multiplied, groups * a.dims[-2] * b.dims[-1])
    peak = a.kind.peak if a.kind is not None else None
    return Work(multiplied, None, peak, bound="most", matrix=True)


def _work(
    entry: Matmul, call: Call, flops: float, result: int, *, full: float | None = None
) -> Work:
    a = call.tensor(entry.a)
    assert a is not None
    read = [call.tensor(position) for position in (entry.a, entry.b, entry.bias, *entry.scales)]
    if entry.beta is None or call.number(entry.beta) != 0:
        read.append(call.tensor(entry.added))
    kind = _result_type(entry, call, a)
    moved = total([tensor.size for tensor in read if tensor is not None])
    if moved is not None:
        moved = None if kind is None else moved + result * kind.item_bytes
    peak = a.kind.peak if a.kind is not None else None
    return Work(flops, moved, peak, flops_full=full, matrix=True)


def _result_type(entry: Matmul, call: Call, a: Tensor) -> ElementType | None:
    if isinstance(entry.out, str):
        return named(entry.out)
    last = call.inputs[-1]
    if isinstance(last, Tensor) and len(call.inputs) - 1 > max(
        entry.a, entry.b, entry.added or 0, entry.bias or 0, *entry.scales
    ):
        return last.kind  # mm(.., out=)
    held = call.at(entry.out)
    if isinstance(held, Plain) and isinstance(held.value, int) and not isinstance(held.value, bool):
        return by_number(held.value)
    return a.kind
