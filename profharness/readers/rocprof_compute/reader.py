"""Files of a rocprof-compute (Omniperf) workload folder: counters per dispatch, their statistics,
and the machine.

The tool runs the program once per set of counters and joins the passes: times are those of one
pass, or means over passes, so that durations are comparable and starts are no timeline.
pmc_perf.csv has one row per dispatch with a column per counter in releases 1 to 3.2 and one row per
counter value in the newer form.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import Table, integers, read_table
from profharness.readers.rocprof_compute.machine_reader import machine_beside
from profharness.readers.rocprof_v1.dispatch_table import (
    Dispatches,
    dispatches,
    listed,
    long_counters,
)
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I64,
    ClockDomain,
    Counters,
    Device,
    Problem,
    Source,
    Strings,
    Trace,
)
from profharness.trace.wanted import Wanted

name = "rocprof-compute"

_V1_FILES = ("pmc_perf", "SQ_", "timestamps")
_WIDE = {"dispatch_id", "kernel_name", "gpu_id"}
_V1 = {"index", "kernelname", "gpu-id"}
_LONG = {"counter_name", "counter_value"}


def sniff(head: bytes, name: str) -> bool:
    """The columns of a dispatch as the tool names them; those of release 1 are rocprof's, and the
    file's name decides.
    """
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
    columns = {column.strip().strip('"').lower() for column in first.split(",")}
    return columns >= _WIDE or (columns >= _V1 and name.startswith(_V1_FILES))


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file: kernels, and their counters. The machine is that of sysinfo.csv beside
    it.

    Raises InputError when it has no header, or a spreadsheet took its times and there are no
    counters either.
    """
    return trace_of(read_table(path), name)


def trace_of(table: Table, format_name: str) -> Trace:
    """The trace of rows that have the columns of pmc_perf.csv, from wherever they were read."""
    path, strings = table.path, Strings()
    machine = machine_beside(path)
    is_long = {name.lower() for name in table.columns} >= _LONG
    whole, counters, lost = _long(table, strings) if is_long else _wide(table, strings)
    times = whole.times
    if times.scientific and not times.timed.any() and not len(counters):
        raise InputError(
            f"{path}: a spreadsheet has shortened its times (like 8.1E+14): they are lost",
            "use the file as rocprof-compute wrote it, not one that was saved again",
        )
    devices = tuple(
        machine.device(str(number)) if machine else Device(index=str(number), vendor="AMD")
        for number in whole.places.numbers
    )
    source = Source(
        str(path),
        format_name,
        ClockDomain.BOOTTIME if times.timed.any() else ClockDomain.UNKNOWN,
        has_host_calls=False,
        host=machine.host if machine else "",
        details=machine.details if machine else (),
    )
    return Trace(
        sources=(source,),
        strings=strings,
        devices=devices,
        streams=whole.places.streams,
        kernels=whole.kernels,
        counters=counters,
        problems=(*table.problems(), *_problems(table, whole, lost)),
    )


def _wide(table: Table, strings: Strings) -> tuple[Dispatches, Counters, int]:
    dispatched = dispatches(table, strings)
    return dispatched, dispatched.counters, 0


def _long(table: Table, strings: Strings) -> tuple[Dispatches, Counters, int]:
    """One kernel per dispatch, from its first row, and the counters of all its rows."""
    key = np.stack(
        [integers(table.first(column), table.rows).values for column in ("GPU_ID", "Dispatch_ID")],
        axis=1,
    )
    _, first, of = np.unique(key, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    rows = first[order]
    once = Table(
        table.path,
        {
            name: [column[row] for row in rows.tolist()]
            for name, column in table.columns.items()
            if name.lower() not in _LONG
        },
        len(rows),
    )
    dispatched = dispatches(once, strings)
    kernel_of_dispatch: I64 = np.full(len(rows), NULL, np.int64)
    kernel_of_dispatch[dispatched.kept] = np.arange(len(dispatched.kept))
    counters, lost = long_counters(table, strings, kernel_of_dispatch[rank[of.reshape(-1)]])
    return dispatched, counters, lost


def _problems(table: Table, dispatched: Dispatches, lost: int) -> Iterator[Problem]:
    where, times = str(table.path), dispatched.times
    yield _problem_of_times(table, dispatched)
    if times.timed.any() and dispatched.untimed:
        yield Problem(
            "warning",
            where,
            dispatched.untimed,
            "dispatches have no readable begin and end and were left out",
        )
    if times.negative:
        yield Problem(
            "warning",
            where,
            times.negative,
            "dispatches end before they begin: their duration is taken as zero",
        )
    if lost:
        yield Problem(
            "warning",
            where,
            lost,
            "counter values are no numbers, or belong to a dispatch without times, "
            "and were left out",
        )
    if dispatched.unknown:
        yield Problem(
            "info",
            where,
            len(dispatched.unknown),
            f"columns are not known and hold no numbers: {listed(dispatched.unknown)}",
        )


def _problem_of_times(table: Table, dispatched: Dispatches) -> Problem:
    """What the times of this table can be used for, and why."""
    where, times = str(table.path), dispatched.times
    if not table.rows:
        return Problem(
            "warning",
            where,
            1,
            "the file holds no dispatch: the program did no work that the tool saw",
        )
    if times.timed.any():
        return Problem(
            "info",
            where,
            int(times.timed.sum()),
            "dispatches were measured in several executions: their durations can be "
            "compared, their starts are no timeline"
            + (", and times are means over executions, rounded to ns" if times.fractions else ""),
        )
    if times.scientific:
        return Problem(
            "error",
            where,
            times.scientific,
            "dispatches have no durations that are known: a spreadsheet has shortened "
            "their times (like 8.1E+14)",
        )
    return Problem(
        "warning",
        where,
        len(dispatched.kernels),
        "dispatches have no times in this file: their durations are not known",
    )
