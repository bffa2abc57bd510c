"""What other operators of a trace say of a call whose own row does not hold it.

Files before 2024 record no strides, padding and dilation, and the 2021 form of a weight's gradient
not the weight: the extents of a convolution's output are those of the gradient that its backward
node begins with, and the operator around a weight's gradient has the weight itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from profharness.analysis.operators.calls import Tensor, read_call
from profharness.analysis.operators.gradients import forward_of
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.records import Given
from profharness.trace.columns.table import NULL
from profharness.trace.model import Ops, Strings

I64 = npt.NDArray[np.int64]


def given_for(ops: Ops, strings: Strings, rows: I64) -> Iterator[tuple[int, Given]]:
    """For those of the rows for which something is recorded elsewhere: the row, and that."""
    if not len(rows):
        return
    tree, made = nests(ops), forward_of(ops)
    gradient = _first_gradients(ops, strings, made)
    holder = tree.nearest(np.isin(np.arange(len(ops)), list(gradient)))
    for row in rows.tolist():
        weight = _weight_around(ops, strings, int(tree.parent[row]))
        output = gradient.get(int(holder[row]))
        if output is not None or weight is not None:
            yield row, Given(output=output, weight=weight)


def _first_gradients(ops: Ops, strings: Strings, made: I64) -> dict[int, tuple[int, ...]]:
    """By forward operator: the extents of the first gradient that its backward node takes."""
    nodes = np.flatnonzero((made != NULL) & (ops.sequence >= 0) & (ops.forward_tid > 0))
    gradients: dict[int, tuple[int, ...]] = {}
    for row in nodes.tolist():
        first = _tensors(ops, strings, row)
        if first and first[0] is not None:
            gradients.setdefault(int(made[row]), first[0].dims)
    return gradients


def _weight_around(ops: Ops, strings: Strings, row: int) -> tuple[int, ...] | None:
    """The third input of the operator around a gradient's: input, gradient, weight."""
    if row == NULL or "convolution_backward" not in strings[int(ops.name[row])]:
        return None
    inputs = _tensors(ops, strings, row)
    return inputs[2].dims if len(inputs) > 2 and inputs[2] is not None else None


def _tensors(ops: Ops, strings: Strings, row: int) -> list[Tensor | None]:
    codes = (ops.name[row], ops.shapes[row], ops.dtype[row])
    name, shapes, types = ("" if code == NULL else strings[int(code)] for code in codes)
    call = read_call(name, shapes, types)
    return [] if call is None else [call.tensor(at) for at in range(len(call.inputs))]
