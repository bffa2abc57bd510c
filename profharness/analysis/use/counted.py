"""Hardware counters by operator: the kernels of a counter pass joined to those of a pass that knows
operators (docs/metrics.md#operator-counters).

A kernel that stands under an operator in the counter pass itself counts there. The kernels of one
name (and one number of workgroups, where both passes have it) are paired one by one in the order of
their starts, where both passes ran equally many of them on a process, and the others count under
the operator of the one that they are paired with. Otherwise each gets the mean of all dispatches of
that name, unless the counter pass knows the operator of some of them: then its dispatches without
one are left out, since which kernels of the other pass they are is not known, and none may count
twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.counter_table import PERCENT, unit_of
from profharness.analysis.kernels.counter_work import column, matching_keys, mean_by
from profharness.analysis.use.records import OperatorCounter
from profharness.trace.columns.keys import distinct, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Matched:
    """Per kernel of the pass with operators: the kernel of the counter pass that it is (NULL where
    none is known), and the key of its name, of which `keys` has that of each of the counted kernels
    `rows`.
    """

    rows: I64

    row: I64
    key: I64
    keys: I64


def operator_counters(counted: Trace, timed: Trace) -> tuple[OperatorCounter, ...]:
    """The counters of `counted` by operator of `timed`: operators with the most kernel time first,
    counters by name. Empty where no kernel of either stands under an operator, or none has a
    counter.
    """
    counters = counted.counters
    valid = np.isfinite(counters.value) & (counters.kernel >= 0)
    rows = distinct(counters.kernel[valid]).astype(np.int64)
    if not len(rows):
        return ()
    recorded = rows[counted.kernels.op[rows] != NULL]
    matched = _match(counted, rows, timed)
    times = _kernel_ns(timed)
    found: list[OperatorCounter] = []
    for code in distinct(counters.name[valid]).tolist():
        counter = counted.strings[int(code)]
        values = column(counted, counter)
        parts = (
            _recorded_parts(counted, recorded, values),
            _matched_parts(timed, matched, values, counted.kernels.op != NULL),
        )
        found += _rows(counter, parts)
    found.sort(key=lambda row: (-times.get(row.operator, 0), row.operator, row.counter))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Values of one counter, each with the name of its operator; `exact` says which are of that
    very dispatch.
    """

    operators: list[str]
    operator: I64
    value: F64
    exact: Mask


def _recorded_parts(trace: Trace, rows: I64, values: F64) -> _Parts:
    used = rows[np.isfinite(values[rows])]
    names, place = np.unique(trace.ops.name[trace.kernels.op[used]], return_inverse=True)
    return _Parts(
        [trace.strings[int(code)] for code in names],
        place.astype(np.int64),
        values[used],
        np.ones(len(used), np.bool_),
    )


def _matched_parts(timed: Trace, matched: _Matched, values: F64, recorded: Mask) -> _Parts:
    """`recorded` are the counted kernels with an operator of their own: they count there, and so
    neither here nor in the mean of their name.
    """
    launched = np.flatnonzero(timed.kernels.op != NULL)
    row, key = matched.row[launched], matched.key[launched]
    exact = row != NULL
    mine = values[matched.rows]
    partly = distinct(matched.keys[np.isfinite(mine) & recorded[matched.rows]])
    by_name = mean_by(matched.keys, mine, key)
    by_name[np.isin(key, partly)] = np.nan
    given = np.where(exact, np.where(recorded[row], np.nan, values[row]), by_name)
    used = np.isfinite(given)
    names, place = np.unique(timed.ops.name[timed.kernels.op[launched[used]]], return_inverse=True)
    return _Parts(
        [timed.strings[int(code)] for code in names],
        place.astype(np.int64),
        given[used],
        exact[used],
    )


def _rows(counter: str, parts: tuple[_Parts, _Parts]) -> list[OperatorCounter]:
    unit = unit_of(counter)
    recorded, matched = parts
    found = []
    for name in dict.fromkeys((*recorded.operators, *matched.operators)):
        here = [
            part.operator == part.operators.index(name)
            if name in part.operators
            else np.zeros(len(part.operator), np.bool_)
            for part in parts
        ]
        number = sum(int(mask.sum()) for mask in here)
        total = sum(float(part.value[mask].sum()) for part, mask in zip(parts, here, strict=True))
        found.append(
            OperatorCounter(
                operator=name,
                counter=counter,
                unit=unit,
                dispatches=number,
                recorded=int(here[0].sum()),
                in_order=int((here[1] & matched.exact).sum()),
                sum=None if unit == PERCENT else total,
                mean=total / number,
            )
        )
    return found


def _match(counted: Trace, rows: I64, timed: Trace) -> _Matched:
    """Pair the counted kernels at these rows with those of `timed`, by name, workgroups and order
    of start on their rank.
    """
    kernels = timed.kernels
    keys, key = matching_keys(counted, timed, rows)
    rank = np.concatenate((counted.kernels.rank[rows], kernels.rank)).astype(np.int64)
    groups = pack([np.concatenate((keys, key)), rank])
    mine, theirs = groups[: len(rows)], groups[len(rows) :]
    first = _ordered(mine, counted.kernels.start_ns[rows])
    second = _ordered(theirs, kernels.start_ns)
    row = np.full(len(kernels), NULL, np.int64)
    for group, start, end in _runs(theirs[second]):
        low, high = np.searchsorted(mine[first], (group, group + 1))
        if high - low == end - start:
            row[second[start:end]] = rows[first[low:high]]
    return _Matched(rows, row, key, keys)


def _ordered(groups: I64, start_ns: I64) -> I64:
    """Positions by group, then by start."""
    order: I64 = np.lexsort((start_ns, groups))
    return order


def _runs(ordered: I64) -> list[tuple[int, int, int]]:
    """Value, first position and end of each run of equal values."""
    if not len(ordered):
        return []
    first = np.concatenate(([0], np.flatnonzero(np.diff(ordered)) + 1))
    end = np.append(first[1:], len(ordered))
    return list(zip(ordered[first].tolist(), first.tolist(), end.tolist(), strict=True))


def _kernel_ns(trace: Trace) -> dict[str, int]:
    """Kernel time by the name of the operator that launched it."""
    launched = np.flatnonzero(trace.kernels.op != NULL)
    names, place = np.unique(trace.ops.name[trace.kernels.op[launched]], return_inverse=True)
    total = np.zeros(len(names), np.int64)
    np.add.at(total, place, trace.kernels.dur_ns[launched])
    return {trace.strings[int(code)]: ns for code, ns in zip(names, total.tolist(), strict=True)}
