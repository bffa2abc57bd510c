"""The hottest calls of a trace: operators with their shapes, types, strides and values, by the time
that is their own.

Rows are ranked by self time, so that no time counts twice; what is compared is the inclusive time
of a call, in the trace and alone, since a call that is made again makes those inside of it again
(docs/replay.md#compared).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.operators.device_time import device_time
from profharness.analysis.operators.nests import Nests, nests, self_time
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import ran_nothing
from profharness.trace.model import I64, Trace

Mask = npt.NDArray[np.bool_]
Texts = tuple[str, str, str, str, str]
MOST = 1000


@dataclass(frozen=True, eq=False)
class HotCall:
    """One call by its recorded texts (name, shapes, types, values, strides): the rows of its
    calls, their summed self time and its share of that of all operators, and the inclusive time of
    each call in the order of the trace. Times in ns, of the device where one was traced.
    """

    texts: Texts
    rows: I64
    self_ns: int
    share: float
    inclusive_ns: I64

    @property
    def name(self) -> str:
        """The operator."""
        return self.texts[0]


@dataclass(frozen=True, eq=False)
class HotCalls:
    """The hottest distinct calls, and how the operators nest. `on_device`: times are those of
    device work. `total_ns` is the self time of all operators.
    """

    calls: tuple[HotCall, ...]
    tree: Nests
    on_device: bool
    total_ns: int

    def outermost(self, chosen: tuple[HotCall, ...]) -> tuple[I64, ...]:
        """Per chosen call the inclusive time of those of its calls that lie in no other chosen
        one: they sum without counting anything twice.
        """
        size = len(self.tree.parent)
        marked: Mask = np.zeros(size, np.bool_)
        for call in chosen:
            marked[call.rows] = True
        inside = self.tree.inside(marked)
        return tuple(call.inclusive_ns[~inside[call.rows]] for call in chosen)


def hottest(trace: Trace, most: int = MOST) -> HotCalls:
    """The `most` hottest distinct calls of a trace. Calls that a graph's capture recorded ran
    nothing, and those of a graph's replay were no calls of the host: they are left out.
    """
    ops, strings = trace.ops, trace.strings
    tree = nests(ops)
    device = device_time(trace)
    if device is None:
        own, inclusive = self_time(ops.start_ns, ops.dur_ns, tree.parent), ops.dur_ns
    else:
        own, inclusive = device.own_ns, device.inclusive_ns
    counted = np.flatnonzero(~ran_nothing(trace) & (ops.replay == NULL))
    total = int(own[counted].sum())
    columns = (ops.name, ops.shapes, ops.dtype, ops.concrete, ops.strides)
    first, which = first_rows(pack([column[counted] for column in columns]))
    sums = np.bincount(which, own[counted], len(first)).astype(np.int64)
    order = np.argsort(which, kind="stable")
    groups = np.split(counted[order], np.flatnonzero(np.diff(which[order])) + 1)
    ranked = np.lexsort((np.arange(len(first)), -sums))[:most].tolist()

    def call(number: int) -> HotCall:
        codes = [int(column[counted[first[number]]]) for column in columns]
        name, shapes, types, values, strides = (
            "" if code == NULL else strings[code] for code in codes
        )
        rows = groups[number]
        share = int(sums[number]) / total if total else 0.0
        texts = (name, shapes, types, values, strides)
        return HotCall(texts, rows, int(sums[number]), share, inclusive[rows])

    calls = tuple(call(number) for number in ranked) if len(counted) else ()
    return HotCalls(calls, tree, device is not None, total)
