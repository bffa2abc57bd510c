"""Geometry, registers and hardware counters of traced kernels of rocprof v1, from results.csv of
the same execution.

results.db and results.json hold times, calls and copies; the table of dispatches holds what was
launched. Both are of one execution: kernels are joined by name and, within a name, by order of
start, and only where both hold a name equally often.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.rocprof_v1 import csv_reader as rocprof_csv
from profharness.rundir.blocks import read_head
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Problem, Strings, Trace

_ENDINGS = (".db", ".json")
_SUFFIXES = (" [clone .kd]", ".kd")
_COLUMNS = ("workgroups", "lds_bytes", "scratch_bytes", "vgpr", "accum_vgpr", "sgpr")
_HEAD_BYTES = 4096


def with_dispatches(trace: Trace, path: Path) -> Trace:
    """The trace of `path` with what results.csv beside it says of its kernels; unchanged where
    there is none that can be read.
    """
    table = _beside(path)
    if table is None or not len(trace.kernels):
        return trace
    try:
        return with_geometry(trace, rocprof_csv.read(table), str(table))
    except InputError:
        return trace


def with_geometry(trace: Trace, dispatches: Trace, where: str) -> Trace:
    """The trace with the geometry and counters of the dispatches. Times, names and the number of
    its records stay.

    Dispatches of another time are of another execution, and are not taken.
    """
    to, origin = _pairs(trace, dispatches)
    if not len(to) or _elsewhen(trace, dispatches):
        return trace
    kernels = trace.kernels
    columns = {}
    for name in _COLUMNS:
        lent = getattr(kernels, name).copy()
        lent[to] = np.where(lent[to] == NULL, getattr(dispatches.kernels, name)[origin], lent[to])
        columns[name] = lent
    kernel_of = np.full(len(dispatches.kernels), NULL, np.int64)
    kernel_of[origin] = to
    given = dispatches.counters
    counters = (
        given.with_columns(
            kernel=kernel_of[given.kernel],
            name=trace.strings.codes(dispatches.strings.texts)[given.name],
        )
        if len(given)
        else given
    )
    problem = Problem(
        "info",
        trace.sources[0].path,
        len(to),
        f"kernels of {len(kernels)} have their geometry from {where}, by name and order",
    )
    return replace(
        trace,
        kernels=kernels.with_columns(**columns),
        counters=counters.take(counters.kernel != NULL),
        problems=(*trace.problems, problem),
    )


def _pairs(trace: Trace, dispatches: Trace) -> tuple[I64, I64]:
    """Rows of both that are the same launch."""
    pool = Strings()
    keys = [_keys(side, pool) for side in (trace, dispatches)]
    size = len(pool)
    counts = [np.bincount(key, minlength=size) for key in keys]
    even = counts[0] == counts[1]
    chosen = []
    for side, key in zip((trace, dispatches), keys, strict=True):
        order = np.lexsort((side.kernels.start_ns, key))
        chosen.append(order[even[key[order]]])
    return chosen[0], chosen[1]


def _elsewhen(trace: Trace, dispatches: Trace) -> bool:
    """Whether both have times, and none in common."""
    if not dispatches.kernels.start_ns.any():
        return False
    traced, dispatched = (
        np.array([side.kernels.start_ns.min(), side.kernels.start_ns.max()])
        for side in (trace, dispatches)
    )
    return bool(traced[1] < dispatched[0] or dispatched[1] < traced[0])


def _keys(trace: Trace, pool: Strings) -> I64:
    """Each kernel's name as a code of the pool, the same with and without the suffix of a kernel
    descriptor.
    """
    used, inverse = np.unique(trace.kernels.name, return_inverse=True)
    codes = [pool.code(_plain(trace.strings[int(code)]) if code != NULL else "") for code in used]
    return np.array(codes, np.int64)[inverse.reshape(-1)] if len(used) else np.empty(0, np.int64)


def _plain(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def _beside(path: Path) -> Path | None:
    base = path.name.removesuffix(".gz")
    stem = next((base.removesuffix(ending) for ending in _ENDINGS if base.endswith(ending)), None)
    for ending in (".csv", ".csv.gz"):
        table = path.with_name(f"{stem}{ending}")
        try:
            if (
                stem is not None
                and table.is_file()
                and rocprof_csv.sniff(read_head(table, _HEAD_BYTES), table.name)
            ):
                return table
        except InputError:
            continue
    return None
