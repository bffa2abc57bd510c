"""What the checks of this folder ask of recorded operators, each distinct call once."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import Category, kernel_category, op_category
from profharness.analysis.operators.calls import Call, read_call
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I32, I64, Strings, Trace

Mask = npt.NDArray[np.bool_]
_FUSED = re.compile(r"triton_(poi|red|per|for|split_scan)_")


def distinct_calls(trace: Trace, rows: I64) -> tuple[I64, I64]:
    """The first of these rows of `Trace.ops` with each distinct recorded text, and for every row
    the position of its own among them.
    """
    ops = trace.ops
    columns = (ops.name, ops.shapes, ops.dtype, ops.concrete, ops.strides)
    first, place = first_rows(pack([column[rows] for column in columns]))
    return rows[first], place


def texts(trace: Trace, row: int) -> tuple[str, str, str, str, str]:
    """Name, shapes, types, concrete inputs and strides as recorded; empty where they are not."""
    ops = trace.ops

    def text(column: I32) -> str:
        code = int(column[row])
        return "" if code == NULL else trace.strings[code]

    return text(ops.name), text(ops.shapes), text(ops.dtype), text(ops.concrete), text(ops.strides)


def call_of(trace: Trace, row: int) -> Call | None:
    """The call of a row; None where its shapes are not recorded."""
    return read_call(*texts(trace, row))


def operators_of(trace: Trace, category: Category) -> Mask:
    """Which operators are of a category, by their names; those that inductor fuses around a product
    or convolution name it, too, but do not run it.
    """
    codes, place = coded(trace.ops.name)
    names = [trace.strings[code] for code in codes.tolist()]
    wanted = [op_category(name) == category and not _FUSED.match(name) for name in names]
    return np.array(wanted, np.bool_)[place]


def kernels_of(names: I32, strings: Strings, *categories: Category) -> Mask:
    """Which kernels are of these categories, by their names."""
    codes, place = coded(names)
    wanted = [kernel_category(strings[code]) in categories for code in codes.tolist()]
    return np.array(wanted, np.bool_)[place]
