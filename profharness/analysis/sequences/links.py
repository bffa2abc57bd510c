"""What one operator writes and the next one reads: bytes that would not move if both were one.

A trace holds the inputs of operators, not their outputs. The output is known of operators whose
inputs tell it: of elementwise ones and norms (as large as their inputs together, broadcast), of
copies, and of products of matrices. It counts if the next operator has an input of these extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from profharness.analysis.kernels.categories import op_category
from profharness.analysis.operators.calls import Call, Tensor, read_call
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

_UNKNOWN = -1
_ALIKE = ("elementwise", "normalisation")
_PRODUCTS = {
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::baddbmm": (1, 2),
}


def link_bytes(trace: Trace, kernels: I64) -> I64:
    """For each of these kernels (NULL for none) the bytes that the one before it writes and it
    reads, both counted; -1 where that is not known, or both are of one operator.
    """
    ops = trace.ops
    found = np.full(len(kernels), _UNKNOWN, np.int64)
    if not len(ops) or len(kernels) < 2:
        return found
    op = np.append(trace.kernels.op.astype(np.int64), NULL)[kernels]
    first, which = first_rows(pack([ops.name, ops.shapes, ops.dtype]))
    at = np.flatnonzero((op[1:] != NULL) & (op[:-1] != NULL) & (op[1:] != op[:-1])) + 1
    if not len(at):
        return found
    pairs, place = first_rows(pack([which[op[at - 1]], which[op[at]]]))

    @cache
    def call_of(number: int) -> Call | None:
        row = int(first[number])
        codes = (int(ops.name[row]), int(ops.shapes[row]), int(ops.dtype[row]))
        return read_call(*("" if code == NULL else trace.strings[code] for code in codes))

    sizes = [
        handed_on(call_of(int(which[op[at[pair] - 1]])), call_of(int(which[op[at[pair]]])))
        for pair in pairs.tolist()
    ]
    values = np.array([_UNKNOWN if size is None else size for size in sizes], np.int64)
    found[at] = values[place]
    return found


def handed_on(writer: Call | None, reader: Call | None) -> int | None:
    """Bytes of the writer's output, written and read once, where the reader has an input of the
    same extents; None where either is not known, or the reader has none.
    """
    made = None if writer is None else output(writer)
    if made is None or reader is None or made.kind is None:
        return None
    alike = any(given.dims == made.dims for given in reader.tensors())
    return 2 * made.elements * made.kind.item_bytes if alike else None


def output(call: Call) -> Tensor | None:
    """The tensor that an operator writes, as far as its inputs tell it."""
    tensors = call.tensors()
    if not tensors:
        return None
    if call.name in _PRODUCTS:
        return _product(call)
    if call.name == "aten::copy_":
        return tensors[0]
    if op_category(call.name) not in _ALIKE:
        return None
    extents = _broadcast([given.dims for given in tensors])
    return None if extents is None else Tensor(extents, tensors[0].kind)


def _product(call: Call) -> Tensor | None:
    one, other = (call.tensor(place) for place in _PRODUCTS[call.name])
    if one is None or other is None or len(one.dims) < 2 or len(other.dims) < 2:
        return None
    return Tensor((*one.dims[:-1], other.dims[-1]), one.kind)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The extents of tensors taken together; None where they do not fit."""
    try:
        return tuple(int(extent) for extent in np.broadcast_shapes(*shapes))
    except ValueError:
        return None
