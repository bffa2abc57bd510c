"""Where device time (or operator time) goes: groups of kernels, of operators, of what is around
them, or of categories (docs/metrics.md#hotspots); and host calls.

Totals are exact integers and equal the vendors' statistics on the same records. One trace is one
pass: nothing here adds up passes (`analysis.passes` chooses one). Where a trace holds no kernels,
or no operators, but a tool's own statistics of them, these are the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import categories, mangled
from profharness.analysis.kernels.categories import category_codes, kernel_category, op_category
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.grouping import Grouped, combinations, group
from profharness.analysis.kernels.printed_totals import call_rows, category_rows, kernel_rows
from profharness.analysis.kernels.tally import (
    NO_LAUNCHERS,
    NO_SHAPES,
    Busy,
    Grouping,
    Inputs,
    Launchers,
    Shapes,
    Tally,
)
from profharness.analysis.operators.nests import nests, self_time
from profharness.analysis.operators.span_hotspots import of_op_categories, of_spans
from profharness.analysis.operators.sums import host_times, kernel_sums, operator_sums
from profharness.analysis.records import DeviceCounts, HotspotRow, Hotspots
from profharness.analysis.time.counts import counts_of_devices, devices_with_work, pass_of
from profharness.analysis.time.timeless import no_times, without_times
from profharness.trace import log_names
from profharness.trace.columns.keys import coded, distinct, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Kernels, Ops, Trace

I64 = npt.NDArray[np.int64]


def default(
    trace: Trace,
    devices: Sequence[DeviceCounts] | None = None,
    facts: KernelFacts | None = None,
) -> Hotspots:
    """By kernel, without its work; by op where the trace holds operators, or statistics of host
    calls, and nothing on device kernels.

    `devices` are the `counts_of_devices`, `facts` those of the trace, where they are known.
    """
    return default_tally(trace, devices, facts).table()


def default_tally(
    trace: Trace,
    devices: Sequence[DeviceCounts] | None = None,
    facts: KernelFacts | None = None,
) -> Tally:
    """The groups behind `default`."""
    by = default_grouping(trace)
    return tally(trace, by, devices, facts if by == "op" else None)


def grouped(trace: Trace, by: Grouping | None) -> Hotspots:
    """The table asked for, or `default` for None."""
    return tally(trace, by).table()


def by_kernel(trace: Trace) -> Hotspots:
    """Device kernels by full name; copies are left to `by_category`."""
    return grouped(trace, "kernel")


def by_op(trace: Trace) -> Hotspots:
    """Framework operators by name: `total_ns` is their duration less their children's, `kernel_ns`
    what they launched.

    Statistics of host calls stand here too: their time includes what they call.
    """
    return grouped(trace, "op")


def by_category(trace: Trace) -> Hotspots:
    """Kernels by what they do, with the copies and fills under `copy`."""
    return grouped(trace, "category")


def by_call(trace: Trace) -> Hotspots:
    """Host calls into runtimes by name, with what their logs say besides: submissions of kernels,
    lines of MIOpen.

    `total_ns` is the time until the return, with the calls inside it, as the vendors' statistics
    have it.
    """
    return grouped(trace, "call")


def tally(
    trace: Trace,
    by: Grouping | None,
    devices: Sequence[DeviceCounts] | None = None,
    facts: KernelFacts | None = None,
) -> Tally:
    """The groups behind a table, to be joined with those of other files; None and `devices` as for
    `default`.

    Kernels have their work only where `facts` are given, and tell it: by operators or by counters.
    """
    groups = _groups(trace, default_grouping(trace) if by is None else by, facts)
    return replace(
        groups, busy=_busy(trace, counts_of_devices(trace) if devices is None else devices)
    )


def _groups(trace: Trace, by: Grouping, facts: KernelFacts | None) -> Tally:
    match by:
        case "kernel":
            return _of_kernels(trace, facts)
        case "op":
            return _of_ops(facts or KernelFacts(trace))
        case "shape":
            return _of_shapes(facts or KernelFacts(trace))
        case "category":
            return _of_categories(trace)
        case "call":
            return _of_calls(trace)
        case "range" | "module" | "stack":
            return of_spans(facts or KernelFacts(trace), by)


def listed(trace: Trace, facts: KernelFacts | None = None) -> Tally:
    """The default table's groups, or those by host call where the default table is empty."""
    default_table = tally(trace, None, facts=facts)
    calls = default_table if default_table.filled else tally(trace, "call")
    return calls if calls.filled else default_table


def _busy(trace: Trace, devices: Sequence[DeviceCounts]) -> Busy | None:
    times = [
        (counts.busy_ns, counts.busy_any_ns, counts.span_ns)
        for counts in devices
        if counts.busy_ns is not None
        and counts.busy_any_ns is not None
        and counts.span_ns is not None
    ]
    if not times:
        return None
    identities = frozenset(
        (trace.devices[position].host, trace.devices[position].identity)
        for position in devices_with_work(trace)
        if position != NULL and trace.devices[position].identity
    )
    busy, busy_any, span = (sum(column) for column in zip(*times, strict=True))
    return Busy(busy, busy_any, span, identities)


def default_grouping(trace: Trace) -> Grouping:
    """What rows stand for where nobody says."""
    if len(trace.kernels) or kernel_rows(trace):
        return "kernel"
    return "op" if len(trace.ops) or call_rows(trace) else "kernel"


def own_ns(ops: Ops) -> I64:
    """Each operator's duration less the parts that its direct children cover, in ns; never
    negative.
    """
    return self_time(ops.start_ns, ops.dur_ns, nests(ops).parent)


def children(ops: Ops) -> tuple[I64, I64]:
    """Rows of the operators that run inside of another one of their thread, and the row of that
    one.
    """
    parent = nests(ops).parent
    child = np.flatnonzero(parent != NULL)
    return child, parent[child]


def _of_kernels(trace: Trace, facts: KernelFacts | None) -> Tally:
    if not len(trace.kernels):
        return _printed("kernel", trace, kernel_rows(trace))
    trace = mangled.spelled(trace)
    groups, names = _named(trace, trace.kernels.name, _durations(trace))
    place = _places(trace, groups)
    return Tally(
        by="kernel",
        pass_name=pass_of(trace),
        names=names,
        categories=tuple(kernel_category(name) for name in names),
        groups=_numbered(groups),
        shapes=_shapes(trace.kernels, place),
        launchers=_launchers(trace, place),
        work=kernel_sums(facts, place[trace.kernels.name], len(names))
        if facts is not None and facts.tells_work
        else None,
    )


def _of_ops(facts: KernelFacts) -> Tally:
    trace, ops = facts.trace, facts.trace.ops
    if not len(ops):
        return _printed("op", trace, call_rows(trace))
    host = host_times(ops, own_ns(ops), ops.name, len(trace.strings))
    groups, names = _named(trace, ops.name, host)
    of_group = _places(trace, groups)[ops.name]
    return Tally(
        by="op",
        pass_name=pass_of(trace),
        names=names,
        categories=tuple(op_category(name) for name in names),
        groups=_numbered(groups),
        kernel_ns=_kernel_ns(trace, of_group, len(names)),
        work=operator_sums(facts, of_group, len(names)),
    )


def _of_shapes(facts: KernelFacts) -> Tally:
    """Operators by name, and by shapes and types of their inputs; empty where none are recorded."""
    trace, ops, strings = facts.trace, facts.trace.ops, facts.trace.strings
    if not (ops.shapes != NULL).any():
        return Tally(by="shape", pass_name=pass_of(trace))
    first, of_group = first_rows(pack([ops.name, ops.shapes, ops.dtype]))
    names = tuple(strings[code] for code in ops.name[first].tolist())

    def text(code: int) -> str:
        return "" if code == NULL else compact_json(strings[code])

    return Tally(
        by="shape",
        pass_name=pass_of(trace),
        names=names,
        categories=tuple(op_category(name) for name in names),
        inputs=tuple(
            Inputs(text(shapes), text(types))
            for shapes, types in zip(
                ops.shapes[first].tolist(), ops.dtype[first].tolist(), strict=True
            )
        ),
        groups=group(of_group, host_times(ops, own_ns(ops), of_group, len(names))),
        kernel_ns=_kernel_ns(trace, of_group, len(names)),
        work=operator_sums(facts, of_group, len(names)),
    )


def compact_json(text: str) -> str:
    """The same JSON without white space, which some writers put around every number."""
    import msgspec

    try:
        return msgspec.json.format(text.encode(), indent=-1).decode()
    except msgspec.DecodeError:
        return text


def _of_categories(trace: Trace) -> Tally:
    if not len(trace.kernels) and not len(trace.copies):
        rows = category_rows(trace)
        return _printed("category", trace, rows) if rows else of_op_categories(trace)
    kernel_codes = category_codes(trace.kernels, trace.strings)
    copies = np.full(len(trace.copies), categories.CATEGORIES.index("copy"), np.int64)
    groups = group(
        np.concatenate((kernel_codes, copies)),
        np.concatenate((_durations(trace), trace.copies.dur_ns)),
    )
    names = tuple(categories.CATEGORIES[int(code)] for code in groups.key)
    return Tally(
        by="category",
        pass_name=pass_of(trace),
        names=names,
        categories=names,
        groups=_numbered(groups),
    )


def _of_calls(trace: Trace) -> Tally:
    """Each distinct name is judged once; a function that several libraries have counts for the
    first.
    """
    api, marks, strings = trace.api, trace.marks, trace.strings
    codes, first = (part.tolist() for part in np.unique(api.name, return_index=True))
    calls = {
        code: (strings[code], _domain(trace, row))
        for code, row in zip(codes, first, strict=True)
        if code != NULL
    }
    ranges = {
        code: range_group
        for code in distinct(marks.name).tolist()
        if code != NULL and (range_group := log_names.group_of(strings[code]))
    }
    kinds = dict([*ranges.values(), *calls.values()])
    place = {name: position for position, name in enumerate(kinds)}

    def rows(column: npt.NDArray[np.int32], named: dict[int, tuple[str, str]]) -> I64:
        number = np.full(len(strings) + 1, NULL, np.int64)
        number[list(named)] = [place[name] for name, _ in named.values()]
        return number[column]

    key = np.concatenate((rows(api.name, calls), rows(marks.name, ranges)))
    duration = np.concatenate((api.dur_ns, marks.dur_ns))
    groups = group(key[key != NULL], duration[key != NULL])
    return Tally(
        by="call",
        pass_name=pass_of(trace),
        names=tuple(kinds),
        categories=tuple(kinds.values()),
        groups=groups,
    )


def _domain(trace: Trace, row: int) -> str:
    code = int(trace.api.domain[row])
    return "" if code == NULL else trace.strings[code]


def _durations(trace: Trace) -> I64:
    """How long each kernel ran, in ns; NULL where nobody recorded it."""
    unknown = without_times(trace)
    dur_ns: I64 = trace.kernels.dur_ns
    return dur_ns if unknown is None else np.where(unknown, NULL, dur_ns)


def _printed(by: Grouping, trace: Trace, rows: Sequence[HotspotRow]) -> Tally:
    return Tally(by=by, pass_name=pass_of(trace), printed=tuple(rows))


def _named(
    trace: Trace, names: npt.NDArray[np.int32], durations: I64
) -> tuple[Grouped, tuple[str, ...]]:
    groups = group(names, durations)
    return groups, tuple(trace.strings[int(code)] for code in groups.key)


def _numbered(groups: Grouped) -> Grouped:
    """These groups, numbered from 0 instead of by codes of one trace."""
    return Grouped(
        np.arange(len(groups.key), dtype=np.int64),
        groups.first,
        groups.count,
        groups.value,
        groups.weight,
    )


def _places(trace: Trace, groups: Grouped) -> I64:
    """The number of the group of each kernel name's code."""
    place = np.zeros(len(trace.strings) + 1, np.int64)
    place[groups.key] = np.arange(len(groups.key))
    return place


def _shapes(kernels: Kernels, place: I64) -> Shapes:
    rows = np.flatnonzero(kernels.workgroups != NULL)
    if not len(rows):
        return NO_SHAPES
    columns = (
        kernels.workgroups,
        kernels.workgroup_size_x,
        kernels.workgroup_size_y,
        kernels.workgroup_size_z,
    )
    return Shapes.of(
        place[kernels.name[rows]],
        np.stack([column[rows].astype(np.int64) for column in columns], axis=1),
    )


def _launchers(trace: Trace, place: I64) -> Launchers:
    kernels = trace.kernels
    rows = np.flatnonzero(kernels.op != NULL)
    if not len(rows):
        return NO_LAUNCHERS
    used, name = coded(trace.ops.name[kernels.op[rows]])
    owner = place[kernels.name[rows]]
    row, count = combinations([owner, name])
    return Launchers(
        tuple(trace.strings[int(code)] for code in used),
        owner[row],
        name[row].astype(np.int64),
        count,
    )


def _kernel_ns(trace: Trace, of_group: I64, groups: int) -> tuple[int, ...]:
    """Kernel time by the group of the innermost operator that launched it; empty where no kernel
    was recorded, or nobody timed them.
    """
    kernels = trace.kernels
    if not len(kernels) or no_times(trace):
        return ()
    total = np.zeros(groups, np.int64)
    launched = kernels.op != NULL
    np.add.at(total, of_group[kernels.op[launched]], kernels.dur_ns[launched])
    return tuple(total.tolist())
