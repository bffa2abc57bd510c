"""Copies that make an operand of the product that runs next (docs/metrics.md#layout-copies)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.analysis.efficiency.recorded import call_of, distinct_calls
from profharness.analysis.measurement import Measurement
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

Mask = npt.NDArray[np.bool_]
_OPERANDS = 2
"""A product has two operands that may be copied just before it."""


def feeding_copies(m: Measurement, holder: I64, copying: Mask) -> Mask:
    """Which kernels copy an operand of the product that follows them at once on their stream.

    A trace does not record which tensor a kernel reads: a copy is taken for the operand's where
    nothing runs between it and the product but another such copy, and it writes as many elements as
    an operand has. `holder` is the product's operator of each kernel (NULL: none), `copying` the
    kernels that copy.
    """
    trace = m.trace
    feeding = np.zeros(len(trace.kernels), np.bool_)
    order = np.lexsort((trace.kernels.start_ns, trace.kernels.stream, trace.kernels.device))
    place = np.flatnonzero((holder[order] != NULL) & ~copying[order])
    free = copying & (holder == NULL) & (trace.kernels.op != NULL) & (m.kernel_ns > 0)
    for step in range(1, _OPERANDS + 1):
        place = place[place >= step]
        product, copy = order[place], order[place - step]
        follows = (
            free[copy]
            & (trace.kernels.stream[copy] == trace.kernels.stream[product])
            & (trace.kernels.device[copy] == trace.kernels.device[product])
        )
        place, product, copy = place[follows], product[follows], copy[follows]
        if not len(place):
            break
        fits = _fits(trace, trace.kernels.op[copy].astype(np.int64), holder[product])
        place = place[fits]
        feeding[copy[fits]] = True
    return feeding


def _fits(trace: Trace, copies: I64, products: I64) -> Mask:
    """Which copies write as many elements as an operand of their product has; each distinct pair of
    calls is looked at once.
    """
    copy_rows, copy_place = distinct_calls(trace, copies)
    product_rows, product_place = distinct_calls(trace, products)
    written = [_elements(trace, row)[:1] for row in copy_rows.tolist()]
    operands = [set(_elements(trace, row)) for row in product_rows.tolist()]
    first, which = first_rows(pack((copy_place, product_place)))
    fits = [
        any(
            count > 1 and count in operands[int(product_place[row])]
            for count in written[int(copy_place[row])]
        )
        for row in first.tolist()
    ]
    return np.array(fits, np.bool_)[which]


def _elements(trace: Trace, row: int) -> list[int]:
    """The elements of each tensor of a call; a copy names the tensor that it writes first."""
    call = call_of(trace, row)
    return [] if call is None else [tensor.elements for tensor in call.tensors()]
