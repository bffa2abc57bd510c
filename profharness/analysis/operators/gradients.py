"""Backward operators and the forward ones that they belong to, by what autograd writes: a number
for each node of its graph, and the thread that made it.

A node's backward operators carry its number and a forward thread above 0. The number stands on
every forward operator since the last node, so the one that made the node is the last of that number
to begin before it (docs/metrics.md#gradients).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from profharness.analysis.operators.nests import nests
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.model import Ops, Strings

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_ENGINE = re.compile(r"^autograd::engine::evaluate_function: ")


def is_node(ops: Ops) -> Mask:
    """Which operators are the backward side of a node of autograd's graph."""
    node: Mask = (ops.sequence >= 0) & (ops.forward_tid > 0)
    return node


def forward_of(ops: Ops) -> I64:
    """Per operator the row of the forward one that it belongs to; NULL for forward operators and
    where none is recorded.

    What runs inside of a node (`aten::mm` of `MmBackward0`) belongs to the node's forward operator.
    """
    numbered = ops.sequence >= 0
    node = is_node(ops)
    made = np.full(len(ops), NULL, np.int64)
    rows = np.flatnonzero(numbered)
    if not node.any():
        return made
    keys = (ops.start_ns[rows], ops.sequence[rows], ops.pid[rows], ops.source[rows])
    order = rows[np.lexsort((~node[rows], *keys))]
    forward = ~node[order]
    last = np.maximum.accumulate(np.where(forward, np.arange(len(order)), -1))
    candidate = order[np.maximum(last, 0)]
    same = (last >= 0) & (ops.start_ns[candidate] < ops.start_ns[order])
    for column in (ops.sequence, ops.pid, ops.source):
        same &= column[candidate] == column[order]
    of_node = ~forward & same
    made[order[of_node]] = candidate[of_node]
    holder = nests(ops).nearest(node)
    return np.where(holder == NULL, NULL, made[holder])


def recomputed(ops: Ops, strings: Strings) -> Mask:
    """Which operators run a forward pass again inside of the backward pass, as checkpointing does,
    with everything inside of them.
    """
    codes, place = coded(ops.name)
    engine = np.array([_ENGINE.match(strings[int(code)]) is not None for code in codes], np.bool_)
    if not engine.any():
        return np.zeros(len(ops), np.bool_)
    tree = nests(ops)
    in_engine = tree.nearest(engine[place]) != NULL
    again = in_engine & (ops.sequence >= 0) & (ops.forward_tid <= 0)
    within: Mask = tree.nearest(again) != NULL
    return within
