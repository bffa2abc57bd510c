"""Where device time (or operator time) goes: groups of kernels, of operators, or of categories (METRICS 6).

Totals are exact integers and equal the vendors' statistics on the same records. One trace is one pass:
nothing here adds up passes (`analysis.passes` chooses one). Where a trace holds no kernels, or no operators,
but a tool's own statistics of them, these are the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from profharness.analysis.categories import CATEGORIES, kernel_category, op_category
from profharness.analysis.counts import pass_of
from profharness.analysis.grouping import Grouped, group, modes, pack
from profharness.analysis.printed_totals import call_rows, category_rows, kernel_rows
from profharness.analysis.records import HotspotRow, Hotspots
from profharness.trace.model import NULL, Kernels, Ops, Strings, Trace
from profharness.trace.nesting import nest

I64 = npt.NDArray[np.int64]
Grouping = Literal["kernel", "op", "category"]


@dataclass(frozen=True)
class Extras:
    """What a group of kernels has beyond its times: launch shape and operator, each the most common one."""

    workgroups: int | None = None
    workgroup_size: tuple[int, int, int] | None = None
    op: str | None = None
    kernel_ns: int | None = None


def default(trace: Trace) -> Hotspots:
    """By kernel; by op where the trace holds operators, or statistics of host calls, and nothing on device kernels."""
    if len(trace.kernels) or kernel_rows(trace):
        return by_kernel(trace)
    return by_op(trace) if len(trace.ops) or call_rows(trace) else by_kernel(trace)


def grouped(trace: Trace, by: Grouping | None) -> Hotspots:
    """The table asked for, or `default` for None."""
    if by is None:
        return default(trace)
    tables: dict[Grouping, Callable[[Trace], Hotspots]] = {"kernel": by_kernel, "op": by_op, "category": by_category}
    return tables[by](trace)


def by_kernel(trace: Trace) -> Hotspots:
    """Device kernels by full name; copies are left to `by_category`."""
    if not len(trace.kernels):
        return _table("kernel", trace, kernel_rows(trace))
    groups = group(trace.kernels.name, trace.kernels.dur_ns)
    extras = _kernel_extras(trace, groups)
    names = [trace.strings[int(code)] for code in groups.key]
    return _table("kernel", trace, _rows(groups, names, [kernel_category(name) for name in names], extras))


def by_op(trace: Trace) -> Hotspots:
    """Framework operators by name: `total_ns` is their duration less their children's, `kernel_ns` what they launched.

    Statistics of host calls stand here too: their time includes what they call.
    """
    ops = trace.ops
    if not len(ops):
        return _table("op", trace, call_rows(trace))
    groups = group(ops.name, own_ns(ops))
    launched = _kernel_ns_by_op(trace)
    extras = [Extras(kernel_ns=launched.get(int(code), 0) if len(trace.kernels) else None) for code in groups.key]
    names = [trace.strings[int(code)] for code in groups.key]
    return _table("op", trace, _rows(groups, names, [op_category(name) for name in names], extras))


def by_category(trace: Trace) -> Hotspots:
    """Kernels by what they do, with the copies and fills under `copy`."""
    if not len(trace.kernels) and not len(trace.copies):
        return _table("category", trace, category_rows(trace))
    kernel_codes = _category_codes(trace.kernels, trace.strings)
    copies = np.full(len(trace.copies), CATEGORIES.index("copy"), np.int64)
    groups = group(np.concatenate((kernel_codes, copies)), np.concatenate((trace.kernels.dur_ns, trace.copies.dur_ns)))
    names = [CATEGORIES[int(code)] for code in groups.key]
    return _table("category", trace, _rows(groups, names, names, [Extras()] * len(names)))


def own_ns(ops: Ops) -> I64:
    """Each operator's duration less the parts that its direct children cover, in ns; never negative.

    A child that sticks out of its parent (rounded times) is taken only as far as it lies inside.
    """
    if not len(ops):
        return ops.dur_ns
    parent = nest(ops.start_ns, ops.dur_ns, pack([ops.source, ops.pid, ops.tid])).parent
    child = np.flatnonzero(parent != NULL)
    holder = parent[child]
    end = ops.start_ns + ops.dur_ns
    covered = np.minimum(end[child], end[holder]) - np.maximum(ops.start_ns[child], ops.start_ns[holder])
    taken = np.zeros(len(ops), np.int64)
    np.add.at(taken, holder, np.maximum(covered, 0))
    return np.maximum(ops.dur_ns - taken, 0)


def _category_codes(kernels: Kernels, strings: Strings) -> I64:
    """Position in CATEGORIES of each kernel; each distinct name is judged once."""
    used, inverse = np.unique(kernels.name, return_inverse=True)
    codes = np.array([CATEGORIES.index(kernel_category(strings[int(code)])) for code in used], np.int64)
    return codes[inverse] if len(used) else np.empty(0, np.int64)


def _rows(groups: Grouped, names: Sequence[str], categories: Sequence[str], extras: Sequence[Extras]) -> list[HotspotRow]:
    total, mean = groups.sums(), groups.sums() / np.maximum(groups.count, 1)
    whole = int(total.sum())
    smallest, largest = groups.smallest(), groups.largest()
    medians, deviations = groups.medians(), groups.deviations()
    rows = []
    for position, extra in enumerate(extras):
        rows.append(HotspotRow(
            name=names[position], category=categories[position], calls=int(groups.count[position]),
            total_ns=int(total[position]), share=int(total[position]) / whole if whole else 0.0,
            mean_ns=float(mean[position]), median_ns=float(medians[position]), min_ns=int(smallest[position]),
            max_ns=int(largest[position]), std_ns=float(deviations[position]), kernel_ns=extra.kernel_ns,
            workgroups=extra.workgroups, workgroup_size=extra.workgroup_size, op=extra.op))
    return sorted(rows, key=lambda row: (-row.total_ns, row.name))


def _table(by: Grouping, trace: Trace, rows: Sequence[HotspotRow]) -> Hotspots:
    return Hotspots(by=by, pass_name=pass_of(trace), total_ns=sum(row.total_ns for row in rows), rows=tuple(rows))


def _kernel_extras(trace: Trace, groups: Grouped) -> list[Extras]:
    kernels = trace.kernels
    shaped = np.flatnonzero(kernels.workgroups != NULL)
    sizes = (kernels.workgroup_size_x, kernels.workgroup_size_y, kernels.workgroup_size_z)
    keys, rows = modes(kernels.name[shaped], [kernels.workgroups[shaped], *(size[shaped] for size in sizes)])
    shape = {int(key): int(shaped[row]) for key, row in zip(keys, rows, strict=True)}
    operated = np.flatnonzero(kernels.op != NULL)
    op_names = trace.ops.name[kernels.op[operated]]
    op_keys, op_rows = modes(kernels.name[operated], [op_names])
    op = {int(key): trace.strings[int(op_names[row])] for key, row in zip(op_keys, op_rows, strict=True)}
    extras = []
    for key in groups.key:
        row = shape.get(int(key))
        size = None if row is None else tuple(int(column[row]) for column in sizes)
        extras.append(Extras(workgroups=None if row is None else int(kernels.workgroups[row]),
                             workgroup_size=(size[0], size[1], size[2]) if size and NULL not in size else None,
                             op=op.get(int(key))))
    return extras


def _kernel_ns_by_op(trace: Trace) -> dict[int, int]:
    """Kernel time by the name of the innermost operator that launched it."""
    operated = np.flatnonzero(trace.kernels.op != NULL)
    groups = group(trace.ops.name[trace.kernels.op[operated]], trace.kernels.dur_ns[operated])
    return {int(code): int(total) for code, total in zip(groups.key, groups.sums(), strict=True)}
