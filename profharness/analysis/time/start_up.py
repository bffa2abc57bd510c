"""Start-up: first calls that load code or create something while the device has nothing to do, and
where the repeated work begins that comes after it (docs/metrics.md#start-up).

A program pays for its first launch of a kernel, its first allocation, its streams and handles once;
what these take says nothing of the steps that follow.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.call_names import LAUNCH, matching
from profharness.trace.columns.keys import coded, distinct, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
LOADING = re.compile(
    r"(Module|Library)Load|Link(Create|Complete)|FatBinary|^(cu|hip|hsa_)[iI]nit$|executable_freeze"
    r"|PrimaryCtxRetain|CommInit"
)
"""Calls that load code or open a device, each of them."""
CREATING = re.compile(
    r"(Stream|Event|Ctx|MemPool|blas\w*|dnn|solver\w*|sparse|fft|rand)_?[cC]reate|create_handle"
    r"|GraphInstantiate|GraphUpload|Malloc|MemAlloc|HostAlloc|HostRegister"
    r"|^(cu|cuda|hip)(Mem)?Free(Host|Async)?(_v\d)?$|memory_(pool_)?allocate"
    r"|Func(GetAttributes|SetAttribute)|ModuleGetFunction|GetFuncBySymbol"
)
"""Calls of which the first of its name in a process loads or creates; later ones need not."""
LEAST_NS, LONGER = 100_000, 10
"""A first call counts from so long on; a launch if it lasts so many times as long as the median
one, too. Launches take some µs and scatter severalfold, loading code takes milliseconds: both
bounds lie between.
"""
STRAY_NS, STRAY_LONGER, STRAYS = 1_000_000, 100, 2
"""Also a launch of a kernel that ran before, if no more than this number of launches are so long:
nothing tells what it loaded, but it is no cost of launching. As nothing but its length speaks for
that, it must exceed both bounds above by ten times; three and more may be how the program launches.
"""
SEQUENCE = 3
"""So many kernels that come again in the same order are repeated work; pairs come again by chance,
as a fill before a copy.
"""
NOTABLE = 0.05
"""Start-up that holds less than this share of a window is not worth a word."""
_MOST = 256


def start_up_calls(trace: Trace) -> I64:
    """Rows of the host calls that load or create, by start."""
    others = (trace.kernels, trace.strings)
    return trace.api.kept(start_up_calls, others, lambda: _start_up_calls(trace))


def _start_up_calls(trace: Trace) -> I64:
    api, strings = trace.api, trace.strings
    long = np.flatnonzero((api.dur_ns >= LEAST_NS) & (api.start_ns != NULL))
    if not len(long):
        return long
    launching = matching(strings, api, LAUNCH)
    found = [
        long[matching(strings, api, LOADING)[long] & ~launching[long]],
        _first_of_name(trace, long[matching(strings, api, CREATING)[long] & ~launching[long]]),
        _launches(trace, long[launching[long]], launching),
    ]
    rows = np.unique(np.concatenate(found))
    ordered: I64 = rows[np.argsort(api.start_ns[rows], kind="stable")]
    return ordered


def _first_of_name(trace: Trace, rows: I64) -> I64:
    """Those of the rows that no call of their name and process precedes."""
    api = trace.api
    names = distinct(api.name[rows])
    every = np.flatnonzero(np.isin(api.name, names)) if len(rows) else rows
    every = every[np.argsort(api.start_ns[every], kind="stable")]
    _, first = np.unique(
        pack([api.name[every], api.source[every], api.pid[every]]), return_index=True
    )
    kept: I64 = rows[np.isin(rows, every[first])]
    return kept


def _launches(trace: Trace, rows: I64, launching: npt.NDArray[np.bool_]) -> I64:
    """First launches of a kernel, and a few strays."""
    api, kernels = trace.api, trace.kernels
    if not len(rows):
        return rows
    usual = float(np.median(api.dur_ns[launching]))
    rows = rows[api.dur_ns[rows] >= LONGER * usual]
    rows = rows[np.argsort(-api.dur_ns[rows], kind="stable")][:_MOST]
    known = np.flatnonzero(np.isin(kernels.correlation, api.correlation[rows]))
    first: list[int] = []
    later: list[int] = []
    for row in rows.tolist():
        mine = known[
            (kernels.correlation[known] == api.correlation[row])
            & (kernels.source[known] == api.source[row])
        ]
        if not len(mine) or api.correlation[row] == NULL:
            continue
        same = (kernels.name == kernels.name[mine[0]]) & (kernels.source == api.source[row])
        began = int(kernels.start_ns[mine].min())
        before = same & (kernels.start_ns < began) & (kernels.start_ns != NULL)
        (later if before.any() else first).append(row)
    strays = [
        row
        for row in later
        if api.dur_ns[row] >= STRAY_NS and api.dur_ns[row] >= STRAY_LONGER * usual
    ]
    found = first + (strays if len(strays) <= STRAYS else [])
    return np.array(found, np.int64)


def calls_of_device(trace: Trace, device: int) -> Intervals:
    """The time in start-up calls of the files that recorded work of a device, merged."""
    rows = start_up_calls(trace)
    if not len(rows):
        return intervals.EMPTY
    tables = (trace.kernels, trace.copies)
    sources = np.concatenate([table.source[table.device == device] for table in tables])
    rows = rows[np.isin(trace.api.source[rows], distinct(sources))]
    return intervals.merge(intervals.lasting(trace.api.start_ns[rows], trace.api.dur_ns[rows]))


def repeated_work(trace: Trace) -> int | None:
    """Where the first sequence of at least three kernels begins that comes again on a device, in
    ns: the earliest of all devices; None where nothing comes again.
    """
    kernels = trace.kernels
    begins = []
    for device in distinct(kernels.device).tolist():
        rows = np.flatnonzero((kernels.device == device) & (kernels.start_ns != NULL))
        rows = rows[np.argsort(kernels.start_ns[rows], kind="stable")]
        first = _first_repeated(kernels.name[rows])
        if first is not None:
            begins.append(int(kernels.start_ns[rows[first]]))
    return min(begins, default=None)


def _first_repeated(names: npt.NDArray[np.int32]) -> int | None:
    """The place of the first sequence that comes again behind its own end."""
    count = len(names) - SEQUENCE + 1
    if count <= SEQUENCE:
        return None
    place = coded(names)[1]
    key = pack([place[shift : shift + count] for shift in range(SEQUENCE)])
    _, group = np.unique(key, return_inverse=True)
    last = np.zeros(int(group.max()) + 1, np.int64)
    last[group] = np.arange(count)  # the later one stays
    again = last[group] - np.arange(count) >= SEQUENCE
    return int(np.argmax(again)) if again.any() else None


def begin_after_start_up(trace: Trace) -> int | None:
    """Where the work of a trace without steps begins that figures are of, in ns: at the first
    repeated work where start-up before it holds a notable part of all device work; None where
    nothing is left out. Calls before all device work are outside of every window already.
    """
    rows = start_up_calls(trace)
    if not len(rows):
        return None
    work = [
        intervals.lasting(table.start_ns, table.dur_ns) for table in (trace.kernels, trace.copies)
    ]
    timed = [
        Intervals(held.start[held.start != NULL], held.end[held.start != NULL]) for held in work
    ]
    busy = intervals.union(*timed)
    repeated = repeated_work(trace) if len(busy) else None
    if repeated is None:
        return None
    calls = intervals.merge(intervals.lasting(trace.api.start_ns[rows], trace.api.dur_ns[rows]))
    before = intervals.clip(calls, int(busy.start[0]), repeated)
    lost = intervals.subtract(before, busy).total
    return repeated if lost >= NOTABLE * int(busy.end[-1] - busy.start[0]) else None
