"""Which memory was alive at an instant, and whose it was, from what an allocator recorded.

An allocation is alive until its address is taken back, or given out again where the recording lacks
the release. What was taken before the recording has no row: it is the difference to what the
process held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.memory.records import MemoryRow
from profharness.analysis.operators.around import around
from profharness.analysis.operators.nests import nests
from profharness.trace.columns.build import per_text
from profharness.trace.columns.keys import coded, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Allocations, Trace

Mask = npt.NDArray[np.bool_]
BEFORE = "before the recording"
OUTSIDE = {"operator": "outside of operators", "module": "outside of modules"}
# operators that hand memory to whoever calls them: it is their caller's
_HANDING = frozenset(
    f"aten::{name}"
    for name in (
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
        "set_",
        "detach",
    )
)


def by_process(table: Allocations) -> list[I64]:
    """The rows of each process on each device (and on the host), in order of time."""
    if not len(table):
        return []
    owner = coded(pack([table.source, table.pid, table.device]))[1]
    order = np.lexsort((table.at_ns, owner))  # rows of one time stay in the order of the file
    borders = np.flatnonzero(np.diff(owner[order])) + 1
    return np.split(order, borders)


def alive_after(table: Allocations, rows: I64) -> I64:
    """Of one process's rows in order of time, the allocations that were alive after the last."""
    by_address = rows[np.argsort(table.address[rows], kind="stable")]
    address = table.address[by_address]
    last = np.append(address[1:] != address[:-1], [True] * min(len(address), 1))
    ends = by_address[last]
    alive: I64 = np.sort(ends[table.is_release[ends] == 0])
    return alive


@dataclass(frozen=True, eq=False)
class Owners:
    """Who took the memory of each allocation of a trace: a position in `names`, the last of which
    is nobody.
    """

    names: tuple[str, ...]
    of_row: I64

    def rows(
        self, table: Allocations, taken: I64, alive: I64, before: int
    ) -> tuple[MemoryRow, ...]:
        """One row per owner of what was `taken` or is `alive` (rows of the table), the largest
        part of what is alive first; `before` are bytes whose owner was not recorded.
        """
        sums = [self._sums(table, rows) for rows in (taken, alive)]
        (number, size), (kept, kept_size) = sums
        rows = [
            MemoryRow(
                name=name,
                allocations=int(number[at]),
                bytes=int(size[at]),
                kept=int(kept[at]),
                kept_bytes=int(kept_size[at]),
            )
            for at, name in enumerate(self.names)
            if number[at] or kept[at]
        ]
        if before:
            rows.append(MemoryRow(name=BEFORE, kept_bytes=before))
        return tuple(sorted(rows, key=lambda row: (-row.kept_bytes, -row.bytes, row.name)))

    def _sums(self, table: Allocations, rows: I64) -> tuple[I64, I64]:
        owner = self.of_row[rows]
        number = np.bincount(owner, minlength=len(self.names))
        size = np.zeros(len(self.names), np.int64)
        np.add.at(size, owner, table.bytes[rows])
        return number.astype(np.int64), size


def by_operator(trace: Trace) -> Owners:
    """The innermost operator that did more than hand memory on; where there is no other, that which
    handed it.
    """
    ops, table = trace.ops, trace.allocations
    own = np.full(len(ops) + 1, NULL, np.int64)
    if len(ops):
        handing = per_text(trace.strings, ops.name, lambda name: int(name in _HANDING)) == 1
        caller = nests(ops).nearest(~handing)
        own[:-1] = ops.name[np.where(caller == NULL, np.arange(len(ops)), caller)]
    names, of_row = coded(own[table.op])
    texts = [trace.strings[int(code)] if code != NULL else OUTSIDE["operator"] for code in names]
    return Owners(tuple(texts), of_row)


def by_module(trace: Trace) -> Owners | None:
    """The innermost module of the model; of a backward operator that of its forward one. None where
    modules were not recorded.
    """
    modules = around(trace, "module")
    if not modules.names:
        return None
    names = (*modules.names, OUTSIDE["module"])
    group = np.append(modules.owners.ops, NULL)[trace.allocations.op]
    return Owners(names, np.where(group == NULL, len(names) - 1, group))
