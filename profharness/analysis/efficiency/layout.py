"""What convolutions and matrix products spend on moving their operands into another order or
another type (docs/metrics.md#layout-copies).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.analysis.efficiency.feeding import feeding_copies
from profharness.analysis.efficiency.recorded import (
    call_of,
    distinct_calls,
    kernels_of,
    operators_of,
)
from profharness.analysis.kernels.categories import Category
from profharness.analysis.measurement import Measurement
from profharness.analysis.operators.calls import Call, Tensor
from profharness.analysis.operators.nests import nests
from profharness.findings import Finding, finding
from profharness.stats import intervals
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, I64, Strings
from profharness.units import format_share

NOTABLE_OF_OPERATORS, NOTABLE_OF_KERNELS = 0.05, 0.01
"""Shares of the device time of these operators, and of all kernel time, from which copies are worth
naming: some are always needed at the ends of a network, and below a hundredth of the whole nobody
would see the difference.
"""
# Copies that write a tensor in another order of its extents: MIOpen's, cuDNN's, others by word (a
# layout among the template arguments of a convolution says "transposed", too).
_REORDER = re.compile(r"transpose|nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw|permute", re.IGNORECASE)
# MIOpen's casts and fills of a workspace have names of their own, and are no copies by category.
_WORKSPACE = re.compile(r"SubTensorOpWith")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Under:
    """What runs inside of operators of one category: the innermost such operator of each kernel,
    and of each copy or fill (NULL: none), and how long these are in the windows, in ns.
    """

    kernel_holder: I64
    kernel_ns: I64
    copy_holder: I64
    copy_ns: I64

    @property
    def copied(self) -> int:
        """The time of copies and fills that are no kernels."""
        return int(self.copy_ns[self.copy_holder != NULL].sum())

    @property
    def total(self) -> int:
        """The device time of these operators: their kernels, copies and fills."""
        return int(self.kernel_ns[self.kernel_holder != NULL].sum()) + self.copied


def layout_under_convolutions(m: Measurement) -> Iterator[Finding]:
    """Kernels below convolutions that only bring tensors into the order that the library computes
    in, and back.
    """
    under = _under(m, "conv")
    if under is None:
        return
    kernels, whole = m.trace.kernels, int(m.kernel_ns.sum())
    holder, total = under.kernel_holder, under.total
    inside = holder != NULL
    moving = inside & kernels_of(kernels.name, m.trace.strings, "copy")
    reorder = moving & _named(kernels.name, m.trace.strings, _REORDER)
    beside = (moving | (inside & _named(kernels.name, m.trace.strings, _WORKSPACE))) & ~reorder
    layout, others = int(m.kernel_ns[reorder].sum()), int(m.kernel_ns[beside].sum()) + under.copied
    if layout < max(NOTABLE_OF_OPERATORS * total, NOTABLE_OF_KERNELS * whole) or not layout:
        return
    contiguous, last, known = _orders(m, holder, reorder)
    of_inputs: dict[str, Any] = {"contiguous_share": contiguous / known} if known else {}
    strides = _said_of_orders(contiguous, last) if known else ""
    yield finding(
        "layout-under-convolutions",
        f"transposes take {format_share(layout / total)} of the device time of convolutions "
        f"({format_share(layout / whole)} of kernel time), casts, copies and fills beside them "
        f"{format_share(others / total)}{strides}",
        layout_share=layout / total,
        layout_ns=layout,
        others_ns=others,
        operators_ns=total,
        kernel_time_share=layout / whole,
        **of_inputs,
    )


def copies_under_products(m: Measurement) -> Iterator[Finding]:
    """Casts and copies by operators nested in matrix products, or directly before them on their
    stream into an operand.

    What a product copies itself is left out: it is the added matrix, into the result; so are fills.
    """
    under = _under(m, "gemm")
    if under is None:
        return
    kernels, whole = m.trace.kernels, int(m.kernel_ns.sum())
    holder, total = under.kernel_holder, under.total
    copying = kernels_of(kernels.name, m.trace.strings, "copy")
    inside = copying & (holder != NULL) & (holder != kernels.op)
    feeding = feeding_copies(m, holder, copying)
    casting = _casting(m, inside | feeding)
    before = int(m.kernel_ns[feeding].sum())
    within = int(m.kernel_ns[inside].sum()) + _copied_by_nested(m, under)
    total += before
    copied, casts = before + within, int(m.kernel_ns[casting].sum())
    if copied < max(NOTABLE_OF_OPERATORS * total, NOTABLE_OF_KERNELS * whole) or not copied:
        return
    yield finding(
        "copies-under-products",
        f"copies of operands take {format_share(copied / total)} of the device time of matrix "
        f"products ({format_share(copied / whole)} of kernel time): casts "
        f"{format_share(casts / total)}, copies in the same type "
        f"{format_share((copied - casts) / total)}; {format_share(before / copied)} of them run "
        "just before the product",
        copies_share=copied / total,
        casts_share=casts / total,
        copies_ns=copied,
        operators_ns=total,
        kernel_time_share=copied / whole,
    )


def _under(m: Measurement, category: Category) -> _Under | None:
    """What runs inside of operators of this category; None where nothing does in the windows."""
    trace = m.trace
    if not len(trace.ops) or not len(trace.kernels) or not m.facts.timed:
        return None
    wanted = operators_of(trace, category)
    if not wanted.any():
        return None
    nearest, copies = nests(trace.ops).nearest(wanted), trace.copies
    kernel_holder, copy_holder = (
        np.where(op == NULL, NULL, nearest[op]) for op in (trace.kernels.op, copies.op)
    )
    spans = intervals.lasting(copies.start_ns, np.maximum(copies.dur_ns, 0))
    found = _Under(
        kernel_holder, m.kernel_ns, copy_holder, m.windows.inside_ns(spans, m.trace.copies.device)
    )
    return found if found.total else None


def _copied_by_nested(m: Measurement, under: _Under) -> int:
    """The time of copies (not fills) that are no kernels, by operators nested in those of `under`:
    such a copy writes the type that it reads.
    """
    copies = m.trace.copies
    nested = (under.copy_holder != NULL) & (under.copy_holder != copies.op)
    filling = copies.kind == m.trace.strings.find("fill")
    return int(under.copy_ns[nested & ~filling].sum())


def _named(names: I32, strings: Strings, pattern: re.Pattern[str]) -> Mask:
    codes, place = coded(names)
    return np.array([bool(pattern.search(strings[code])) for code in codes.tolist()], np.bool_)[
        place
    ]


def _orders(m: Measurement, holder: I64, chosen: Mask) -> tuple[int, int, int]:
    """Of the time of the chosen kernels: with inputs of their operator in NCHW, in channels_last,
    and with either.
    """
    rows = np.flatnonzero(chosen)
    first, place = distinct_calls(m.trace, holder[rows])
    orders = np.array([_order(call_of(m.trace, row)) for row in first.tolist()])[place]
    time = m.kernel_ns[rows]
    contiguous, last = int(time[orders == "first"].sum()), int(time[orders == "last"].sum())
    return contiguous, last, contiguous + last


def _said_of_orders(contiguous: int, last: int) -> str:
    """What the message says of inputs that are known; where most of them are in channels_last, also
    what may be left to do.
    """
    known = contiguous + last
    told = (
        f"; in {format_share(contiguous / known)} of that time the recorded inputs are contiguous "
        f"(NCHW), in {format_share(last / known)} channels_last"
    )
    if 2 * last <= known:
        return told
    return (
        f"{told}: most are channels_last already, so that on AMD PYTORCH_MIOPEN_SUGGEST_NHWC=1 is "
        "left to set; where it is, or elsewhere, the library has no kernel in that order"
    )


def _order(call: Call | None) -> str:
    """Where the channels of the first input with two or three spatial extents lie: `last`, `first`,
    or nothing where its strides are not recorded or fit both.
    """
    tensors = (
        [] if call is None else [given for given in call.tensors() if len(given.dims) in (4, 5)]
    )
    found = {_channels(tensor) for tensor in tensors[:1]}
    return found.pop() if len(found) == 1 else ""


def _channels(tensor: Tensor) -> str:
    if tensor.strides is None or tensor.dims[1] == 1 or max(tensor.dims[2:]) == 1:
        return ""
    if tensor.strides[1] == 1:
        return "last"
    return "first" if tensor.strides[-1] == 1 else ""


def _casting(m: Measurement, chosen: Mask) -> Mask:
    """Which of these kernels write another type than they read, by the types of their `copy_`."""
    casting = np.zeros(len(chosen), np.bool_)
    rows = np.flatnonzero(chosen & (m.trace.kernels.op != NULL))
    first, place = distinct_calls(m.trace, m.trace.kernels.op[rows].astype(np.int64))
    changed = [_changes_type(call_of(m.trace, row)) for row in first.tolist()]
    casting[rows] = np.array(changed, np.bool_)[place]
    return casting


def _changes_type(call: Call | None) -> bool:
    into, out_of = (None, None) if call is None else (call.tensor(0), call.tensor(1))
    if call is None or not call.name.endswith("copy_") or into is None or out_of is None:
        return False
    return into.kind is not None and out_of.kind is not None and into.kind != out_of.kind
