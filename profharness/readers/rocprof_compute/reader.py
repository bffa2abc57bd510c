"""Files of a rocprof-compute (Omniperf) workload folder: counters per dispatch, their statistics,
and the machine.

The tool runs the program once per set of counters and joins the passes: times are those of one
pass, or means over passes, so that durations are comparable and starts are no timeline.
pmc_perf.csv has one row per dispatch with a column per counter in releases 1 to 3.2 and one row per
counter value in the newer form, which `replays` joins; from 3.6 on each execution has a table of
its own, and databases may stand for the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.allocation import without_collection
from profharness.readers.bytes.csv_columns import Table, lacking, not_numbers, read_table
from profharness.readers.bytes.limits import EXECUTIONS, fields_of_executions
from profharness.readers.rocprof_compute import ceilings, dies, replay_database, replays
from profharness.readers.rocprof_compute.machine_reader import machine_beside
from profharness.readers.rocprof_compute.replays import Replays
from profharness.readers.rocprof_v1.dispatch_table import (
    Dispatches,
    dispatches,
    is_counter,
    listed,
    long_counters,
)
from profharness.trace.model import (
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
    with without_collection():
        return trace_of([read_table(path)], name)


def read_set(paths: Sequence[Path]) -> Trace:
    """The trace of a workload from the tables of its single executions, in which a dispatch counts
    once. Where the table of all executions is among them, it speaks for the others.

    A table that cannot be read is a problem. Raises InputError where none can be, and as `read`.
    """
    joined = [path for path in paths if replays.JOINED.search(path.name)]
    if joined:
        return read(joined[0])
    if len(paths) > EXECUTIONS:
        raise InputError(
            f"{paths[0].parent} holds tables of {len(paths)} executions, more than the "
            f"{EXECUTIONS} that are read",
            "copy the folder again, or name the table of one execution",
        )
    tables, unread, left = [], [], fields_of_executions(paths)
    for path in sorted(paths, key=str):
        try:
            tables.append(_rows_of(path))
        except InputError as error:
            unread.append((path, error))
            continue
        left -= tables[-1].rows * len(tables[-1].columns) if path.suffix != ".db" else 0
        if left < 0:
            raise InputError(
                f"{path.parent} cannot be trusted: its tables hold more fields than files of their "
                "size do",
                "copy the folder again from where the tool wrote it",
            )
    if not tables:
        raise unread[0][1]
    if tables[0].path.suffix == ".db":  # of all processes of all executions
        tables = [replays.concatenated(tables)]
    lost = tuple(
        Problem("error", str(path), 1, f"{error.message}; its counters are left out")
        for path, error in unread
    )
    with without_collection():
        trace = trace_of(tables, name)
    return replace(trace, problems=(*lost, *trace.problems))


def _rows_of(path: Path) -> Table:
    with without_collection():
        is_database = path.suffix == ".db"
        return replays.compact(replay_database.read(path) if is_database else read_table(path))


def sets(paths: Iterable[Path]) -> list[list[Path]]:
    """The files that make one trace each: the tables of one folder, of whichever executions."""
    of_folder: dict[Path, list[Path]] = {}
    single: list[list[Path]] = []
    for path in paths:
        if replays.JOINED.search(path.name) or replays.REPLAY.search(path.name):
            of_folder.setdefault(path.parent, []).append(path)
        else:
            single.append([path])
    return [*of_folder.values(), *single]


def is_joined(paths: Sequence[Path]) -> bool:
    """Whether the table of all executions is among these files."""
    return any(replays.JOINED.search(path.name) for path in paths)


def is_workload(paths: Sequence[Path]) -> bool:
    """Whether these files, which make one trace, are of this tool, by their names."""
    patterns = (replays.JOINED, replays.REPLAY, replay_database.NAME)
    return all(any(pattern.match(path.name) for pattern in patterns) for path in paths)


def trace_of(tables: Sequence[Table], format_name: str) -> Trace:
    """The trace of rows that have the columns of pmc_perf.csv, from wherever they were read: of one
    table, or of one for each execution.
    """
    path, strings = tables[0].path, Strings()
    machine, beside = machine_beside(path)
    more: tuple[Problem, ...] = tuple(beside)
    if len(tables) == 1 and not replays.is_long(tables[0]):
        whole = dispatches(tables[0], strings)
        counters, lost, table = whole.counters, 0, tables[0]
    else:
        joined = replays.replays_of(tables)
        table = joined.table
        whole, counters, lost = _long(joined, strings)
        more = (*more, *_of_replays(joined))
    if machine:
        machine, said = dies.checked(machine, whole.kernels, counters, strings)
        if said:
            more = (*more, Problem("warning", str(path), 1, said))
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
        devices=ceilings.of_devices(devices, path, machine),
        streams=whole.places.streams,
        kernels=whole.kernels,
        counters=counters,
        problems=(*table.problems(), *_problems(table, whole, lost), *more),
    )


def _long(joined: Replays, strings: Strings) -> tuple[Dispatches, Counters, int]:
    """One kernel per call, from its first row, and the counters of all its rows."""
    table = joined.table
    once = Table(
        table.path,
        {
            name: [column[row] for row in joined.first.tolist()]
            for name, column in table.columns.items()
            if name.lower() not in replays.LONG and not is_counter(name)
        },
        len(joined.first),
    )
    dispatched = dispatches(once, strings)
    named = [text != "" for text in table.first("Counter_Name") or []]
    counted = np.flatnonzero(np.array(named, np.bool_) & joined.counts)
    rows = Table(
        table.path,
        {
            name: [column[row] for row in counted.tolist()]
            for name, column in table.columns.items()
            if name.lower() in replays.LONG
        },
        len(counted),
    )
    kernel = replays.kernel_of_rows(joined, dispatched.kept)[counted]
    counters, lost = long_counters(rows, strings, kernel)
    return dispatched, counters, lost


def _of_replays(joined: Replays) -> Iterator[Problem]:
    """What the executions have in common, and what not."""
    where = str(joined.table.path)
    if joined.executions > 1:
        yield Problem(
            "info",
            where,
            1,
            f"{joined.executions} executions recorded the same {len(joined.first)} dispatches: "
            "each is one call, with the times of the first of them",
        )
    if joined.differing:
        yield Problem(
            "warning",
            where,
            joined.differing,
            "dispatches are of another kernel than in the first execution, and their counters were "
            "left out: the program did not do the same work each time",
        )
    if joined.shared:
        average, every, lacking = replays.coverage(joined)
        rest = (
            f"; launched too few times to have all: {listed(lacking)}"
            if lacking
            else "; every kernel has all of them among its launches"
        )
        yield Problem(
            "info",
            where,
            1,
            f"counted in one execution: a dispatch carries {average:.3g} of {every} counters on "
            f"average{rest}",
        )


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
    yield from not_numbers(table.path, dispatched.unreadable)
    yield from lacking(table.path, dispatched.empty)
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
            "dispatches were measured while counting, in one execution or several: their "
            "durations can be compared, their starts are no timeline"
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
