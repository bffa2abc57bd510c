"""Raw hardware counters as a table: what was asked for by name, whether or not a figure is made of
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import numpy as np

from profharness.analysis.kernels.counter_records import ALL_KERNELS, CounterRow
from profharness.analysis.kernels.grouping import pack
from profharness.trace.columns.keys import first_rows
from profharness.trace.model import Trace

PERCENT, KIB, COUNT = "%", "KiB", "count"
# rocprofiler's counter_defs.yaml: sizes are in KiB, GRBM and *_CYCLES count clocks
_SIZES = frozenset({"FETCH_SIZE", "WRITE_SIZE", "FetchSize", "WriteSize"})
_CLOCKS = re.compile(r"_CYCLES(_|$)|^GRBM_(COUNT|GUI_ACTIVE)")


def unit_of(counter: str) -> str:
    """`%`, `KiB`, `cycles`, else `count`."""
    return (
        PERCENT
        if counter in _percentages()
        else KIB
        if counter in _SIZES
        else "cycles"
        if _CLOCKS.search(counter)
        else COUNT
    )


@cache
def _percentages() -> frozenset[str]:
    from profharness.analysis.kernels.counter_shares import SHARES

    return frozenset(name for share in SHARES if not share.whole for name in share.derived)


def counter_rows(trace: Trace) -> tuple[CounterRow, ...]:
    """A row per pass, kernel name and counter: kernels with the most time first, then by name;
    counters by name. The metrics of a tool's own analysis stand behind them, in its order.
    """
    return (*_counted_rows(trace), *_metric_rows(trace))


def _metric_rows(trace: Trace) -> tuple[CounterRow, ...]:
    """Those of all kernels first, then by kernel: the one with the most time first."""
    times = np.zeros(len(trace.strings) + 1, np.int64)
    np.add.at(times, trace.kernels.name, trace.kernels.dur_ns)
    ordered = sorted(
        trace.tool_metrics,
        key=lambda metric: (
            metric.kernel != "",
            -int(times[trace.strings.find(metric.kernel)]),
            metric.kernel,
        ),
    )
    return tuple(
        CounterRow(
            kernel=metric.kernel or ALL_KERNELS,
            counter=metric.name,
            unit=metric.unit or COUNT,
            dispatches=0,
            sum=None,
            mean=metric.mean,
            low=metric.low,
            high=metric.high,
            pass_name=trace.sources[metric.source].pass_name or None,
        )
        for metric in ordered
    )


def _counted_rows(trace: Trace) -> tuple[CounterRow, ...]:
    counters, kernels = trace.counters, trace.kernels
    rows = np.flatnonzero(np.isfinite(counters.value))
    if not len(rows):
        return ()
    name, value = kernels.name[counters.kernel[rows]], counters.value[rows]
    passes = sorted({source.pass_name for source in trace.sources})
    place = np.array([passes.index(source.pass_name) for source in trace.sources], np.int64)[
        counters.source[rows]
    ]
    first, group = first_rows(pack([place, name, counters.name[rows]]))
    sums, number = np.bincount(group, value), np.bincount(group)
    low, high = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(low, group, value)
    np.maximum.at(high, group, value)
    named = kernels.name.astype(np.int64) + 1  # a kernel without a name is the first
    times = np.bincount(named, kernels.dur_ns)
    keyed_rows = [
        (
            float(times[int(name[row]) + 1]),
            _row(
                trace,
                (int(name[row]), int(counters.name[rows[row]]), passes[int(place[row])]),
                (int(number[at]), float(sums[at]), float(low[at]), float(high[at])),
            ),
        )
        for at, row in enumerate(first.tolist())
    ]
    return tuple(
        row
        for _, row in sorted(
            keyed_rows,
            key=lambda keyed: (
                -keyed[0],
                keyed[1].kernel,
                keyed[1].counter,
                keyed[1].pass_name or "",
            ),
        )
    )


def _row(
    trace: Trace, key: tuple[int, int, str], figures: tuple[int, float, float, float]
) -> CounterRow:
    """`what` are the codes of kernel and counter, and the pass; `figures` number, sum, lowest and
    highest value.
    """
    counter = trace.strings[key[1]]
    number, total, low, high = figures
    unit = unit_of(counter)
    return CounterRow(
        kernel=trace.strings[key[0]],
        counter=counter,
        unit=unit,
        dispatches=number,
        sum=None if unit == PERCENT else total,
        mean=total / number,
        low=low,
        high=high,
        pass_name=key[2] or None,
    )


def merge_counter_rows(groups: Iterable[tuple[CounterRow, ...]]) -> tuple[CounterRow, ...]:
    """The counter rows of several files: rows of one pass, kernel and counter are merged, in the
    order in which they come. Metrics of a tool's own analysis stay apart, since it does not say of
    how many launches they are.
    """
    merged: dict[tuple[str | None, str, str], CounterRow] = {}
    own: dict[CounterRow, None] = {}
    for row in (row for group in groups for row in group):
        if not row.dispatches:
            own[row] = None
            continue
        key = (row.pass_name, row.kernel, row.counter)
        merged[key] = _added(merged[key], row) if key in merged else row
    return (*merged.values(), *own)


def _added(first: CounterRow, second: CounterRow) -> CounterRow:
    number = first.dispatches + second.dispatches
    lows, highs = (first.low, second.low), (first.high, second.high)
    return CounterRow(
        kernel=first.kernel,
        counter=first.counter,
        unit=first.unit,
        dispatches=number,
        sum=None if first.sum is None or second.sum is None else first.sum + second.sum,
        mean=(first.mean * first.dispatches + second.mean * second.dispatches) / number,
        low=min((low for low in lows if low is not None), default=None),
        high=max((high for high in highs if high is not None), default=None),
        pass_name=first.pass_name,
    )
