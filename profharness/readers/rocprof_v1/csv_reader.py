"""results.csv of rocprof v1: one row per kernel dispatch, with its geometry, registers and hardware
counters.

With `--timestamp on` or `--stats` the device times are there too (CLOCK_BOOTTIME); with counters
alone they are not, and then the file says nothing about durations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import Table, integers, lacking, not_numbers, read_table
from profharness.readers.rocprof_v1.dispatch_table import Dispatches, dispatches, listed
from profharness.readers.rocprof_v1.rocminfo import agents_beside
from profharness.readers.rocprof_v1.rows import gpus_only
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.wanted import Wanted

name = "rocprof"

_HEADER = (b"index", b"kernelname", b"gpu-id")
_SPREADSHEET = "a spreadsheet has shortened its times (like 8.1E+14): they are lost"


def sniff(head: bytes, name: str) -> bool:
    """The columns that every release writes first; pmc_perf.csv of Omniperf 1.x has them too, and
    is not taken.
    """
    columns = [
        column.strip(b'" \xef\xbb\xbf\r').lower() for column in head.partition(b"\n")[0].split(b",")
    ]
    return tuple(columns[:3]) == _HEADER and not name.startswith(("pmc_perf", "SQ_", "timestamps"))


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file: kernels and counters. Raises InputError when it has no header, or a
    spreadsheet took its times and there are no counters either.
    """
    return trace_of(read_table(path), name)


def trace_of(table: Table, format_name: str) -> Trace:
    """The trace of rows that have the columns of results.csv, from wherever they were read."""
    strings = Strings()
    dispatched = dispatches(table, strings)
    times = dispatched.times
    if times.scientific and not times.timed.any() and not len(dispatched.counters):
        raise InputError(
            f"{table.path}: {_SPREADSHEET}",
            "use the file as rocprof wrote it, not one that was saved again",
        )
    older = table.first("arch_vgpr") is None
    numbers = dispatched.places.numbers
    agents = agents_beside(table.path)
    devices = agents.devices(numbers, gpus_only=gpus_only(agents, numbers, older=older))
    pids = np.unique(dispatched.kernels.pid)
    source = Source(
        str(table.path),
        format_name,
        ClockDomain.BOOTTIME if times.timed.any() else ClockDomain.UNKNOWN,
        pid=int(pids[0]) if len(pids) == 1 and pids[0] != NULL else None,
        has_host_calls=False,
    )
    return Trace(
        sources=(source,),
        strings=strings,
        devices=devices,
        streams=dispatched.places.streams,
        kernels=dispatched.kernels,
        counters=dispatched.counters,
        problems=(*table.problems(), *agents.problems, *_problems(table, dispatched)),
    )


def _problems(table: Table, dispatched: Dispatches) -> Iterator[Problem]:
    where, times = str(table.path), dispatched.times
    if not table.rows:
        yield Problem(
            "warning",
            where,
            1,
            "the file holds no dispatch: the program did no work that the tool saw",
        )
    elif times.scientific and not times.timed.any():
        yield Problem(
            "error",
            where,
            times.scientific,
            f"dispatches have no durations that are known: {_SPREADSHEET}",
        )
    elif not times.timed.any():
        yield Problem(
            "warning",
            where,
            table.rows,
            "dispatches have no times (recorded without --timestamp on or --stats): "
            "their durations are not known",
        )
    elif dispatched.untimed:
        why = f": {_SPREADSHEET}" if times.scientific else ""
        yield Problem(
            "warning",
            where,
            dispatched.untimed,
            f"dispatches have no readable begin and end and were left out{why}",
        )
    if times.negative:
        yield Problem(
            "warning",
            where,
            times.negative,
            "dispatches end before they begin: their duration is taken as zero",
        )
    stated = integers(table.first("DurationNs"), table.rows)
    differs = int((stated.valid & times.timed & (stated.values != times.dur)).sum())
    if differs:
        yield Problem(
            "info",
            where,
            differs,
            "dispatches state a duration that is not their end less their begin: "
            "the latter is taken",
        )
    yield from not_numbers(table.path, dispatched.unreadable)
    yield from lacking(table.path, dispatched.empty)
    if dispatched.unknown:
        yield Problem(
            "info",
            where,
            len(dispatched.unknown),
            f"columns are not known and hold no numbers: {listed(dispatched.unknown)}",
        )
