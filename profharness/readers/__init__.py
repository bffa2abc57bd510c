"""One reader per file format: bytes of a tool's file to a `Trace` on the file's own clock, with its
problems.

A reader is a module with `name`, `sniff` and `read`. It takes its file plain or gzipped, knows
which clock the format stamps, and never sees a manifest. What it drops or repairs is a counted
`Problem`. The members are listed here, specific formats before general ones; the first whose
`sniff` says yes reads the file (a file that begins as JSON is shown to the JSON formats first).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from profharness import families
from profharness.errors import InputError
from profharness.readers.border import reading, refuse_utf_16, refuse_wrapped
from profharness.readers.own.sidecar import SUFFIX
from profharness.rundir.blocks import read_head
from profharness.rundir.private.spool import SpooledPath
from profharness.trace.model import Problem, Trace
from profharness.trace.wanted import Wanted

HEAD_BYTES = 1 << 18
MOST_FILES = 256
GROUP = "profharness.readers"
NEEDS = ("name", "sniff", "read")


class Reader(Protocol):
    """What a format needs to offer.

    `sniff` gets the first `HEAD_BYTES` decompressed bytes and the file's name, and reads nothing
    else. `read` raises InputError when nothing in the file is usable; what is not `wanted` it may
    leave out.
    """

    name: str

    def sniff(self, head: bytes, name: str) -> bool: ...
    def read(self, path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace: ...


FORMATS = (
    "rundir.telemetry",
    "readers.rocprof_v1.db_reader",
    "readers.rocprof_compute.db_reader",
    "readers.rocprofv3.rocpd_reader",
    "readers.rocprofv3.json_reader",
    "readers.rocprof_v1.json_reader",
    "readers.rocprof_v1.stats_reader",
    "readers.rocprof_v1.csv_reader",
    "readers.rocprof_compute.reader",
    "readers.rocprof_compute.machine_reader",
    "readers.rocprofv3.csv_reader",
    "readers.code.thread_trace",
    "readers.logs.rocprof_sys_text",
    "readers.rocprof_v1.rocminfo",
    "readers.logs.onnxruntime",
    "readers.py_spy.reader",
    "readers.py_spy.speedscope",
    "readers.logs.autograd",
    "readers.kineto.reader",
    "readers.perfetto.reader",
    "readers.logs.amd_log",
    "readers.logs.miopen_log",
    "readers.logs.perf_analyzer",
)
_JSON = (
    "readers.rocprofv3.json_reader",
    "readers.rocprof_v1.json_reader",
    "readers.logs.onnxruntime",
    "readers.logs.perf_analyzer",
    "readers.py_spy.reader",
    "readers.py_spy.speedscope",
    "readers.logs.autograd",
    "readers.kineto.reader",
)
_KINETO, _KINETO_KEYS = (
    ("readers.kineto.reader",),
    (b'"schemaVersion"', b'"deviceProperties"'),
)  # keys that no other format has


# formats of which figures also need other files, by what those hold
_ROCMINFO = "what rocminfo printed (rocminfo.txt), and results.csv with the sizes of launches"
_WRITTEN_BESIDE = {
    "rocprofv3-csv": "PREFIX_agent_info.csv, and the tables of the other kinds of records",
    "rocprof": _ROCMINFO,
    "rocprof-json": _ROCMINFO,
    "rocprof-db": _ROCMINFO,
    "rocprof-compute": "sysinfo.csv, and the tables of the other counters",
    "rocprof-compute-machine": "the other tables of the analysis",
}


def member(module: str) -> Reader:
    """The reader of this name among `FORMATS`. It is imported when it is asked for: a file costs
    the import of few of them.
    """
    return cast("Reader", families.load(f"profharness.{module}"))


def _foreign() -> tuple[Reader, ...]:
    """The readers of other packages, which are asked after all of ours."""
    return tuple(cast("Reader", reader) for _, reader in families.foreign(GROUP, NEEDS))


def find_reader(path: Path) -> Reader:
    """The reader of a file. Raises InputError for a missing, unreadable or empty file, and for one
    of no known format.
    """
    head = read_head(path, HEAD_BYTES)
    refuse_utf_16(path, head)
    likely = (
        _KINETO
        if any(key in head for key in _KINETO_KEYS)
        else _JSON
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))
        else ()
    )
    for module in (*likely, *(module for module in FORMATS if module not in likely)):
        reader = member(module)
        if _knows(reader, head, path):
            return reader
    foreign = _foreign()
    for reader in foreign:
        if _knows(reader, head, path):
            return reader
    refuse_wrapped(path, head)
    names = ", ".join(reader.name for reader in (*map(member, FORMATS), *foreign))
    scan = "\na CSV of scan results is for `saturation`, `report` and `plot`"
    raise InputError(
        f"{path} is of no known trace format",
        f"known formats, plain or gzipped: {names}{scan if '.csv' in path.name else ''}",
    )


def _knows(reader: Reader, head: bytes, path: Path) -> bool:
    """Whether the file is of this reader's format. Raises InputError where its beginning already
    breaks the reader.
    """
    with reading(path, reader.name):
        return reader.sniff(head, path.name)


def readable_in(folder: Path) -> tuple[str, ...]:
    """Names of the folder's own files that are of a known format, in the order of `FORMATS`, then
    by name. Looks at the first `MOST_FILES` only.
    """
    order = {member(module).name: number for number, module in enumerate(FORMATS)}
    ranked: list[tuple[int, str]] = []
    for path in sorted(
        path for path in folder.iterdir() if path.is_file() and not _is_beside(path)
    )[:MOST_FILES]:
        try:
            ranked.append((order.get(find_reader(path).name, len(order)), path.name))
        except InputError:
            continue
    return tuple(name for _, name in sorted(ranked))


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace in a file of any known format. Raises InputError as `find_reader` does, and for
    whatever the format's reader raises.
    """
    from profharness.readers.bytes.allocation import keep_freed_memory

    keep_freed_memory()
    reader = find_reader(path)
    with reading(path, reader.name):
        trace = bounded(reader.read(path, wanted=wanted), (path,))
    lacking = _WRITTEN_BESIDE.get(reader.name) if isinstance(path, SpooledPath) else None
    if lacking is None:
        return trace
    problem = Problem(
        "info",
        str(path),
        1,
        f"it came through a pipe, without what the tool wrote beside: {lacking}",
    )
    return replace(trace, problems=(*trace.problems, problem))


def bounded(trace: Trace, paths: Sequence[Path]) -> Trace:
    """The trace of some files, if it names no more devices than can be measured, and no more
    kernels, no operators nest without end, and its times can be summed up. Raises InputError else.
    """
    from profharness.readers.bytes.limits import LEVELS, devices_of
    from profharness.trace.invariants import too_long_together

    path = paths[0]
    if len(trace.devices) > (most := devices_of(path)):
        raise InputError(
            f"{path} names {len(trace.devices)} devices, more than the {most} that a file of its "
            "size may",
            "name the files of the single ranks",
        )
    _check_names(trace, paths)
    _check_streams(trace, paths)
    _check_processes(trace, paths)
    _check_counters(trace, path)
    if len(trace.ops) and int(trace.ops.depth.max()) > LEVELS:
        raise InputError(
            f"{path} cannot be trusted: more than {LEVELS} of its operators lie inside of one "
            "another",
            "the file was damaged: copy or record it again",
        )
    if endless := too_long_together(trace):
        raise InputError(
            f"{path} cannot be trusted: its {endless} together last longer than 292 years",
            "the file was damaged: copy or record it again",
        )
    return trace


def _check_names(trace: Trace, paths: Sequence[Path]) -> None:
    """Raises InputError where kernels have more different names, or longer ones, than can be
    judged.
    """
    from profharness.readers.bytes.limits import kernel_names_of
    from profharness.trace.columns.keys import distinct

    most, most_characters = kernel_names_of(paths)
    used = [trace.strings[code] for code in distinct(trace.kernels.name).tolist()]
    used += {row.name for row in trace.statistics}
    if len(used) > most:
        what = f"{len(used)} different names, more than the {most}"
    elif (length := sum(map(len, used))) > most_characters:
        what = f"names of {length} characters, more than the {most_characters}"
    else:
        return
    raise InputError(
        f"{paths[0]} cannot be trusted: its kernels have {what} that a file of its size may have",
        "the file was damaged: copy or record it again",
    )


def _check_streams(trace: Trace, paths: Sequence[Path]) -> None:
    """Raises InputError where kernels ran on more streams than can be followed."""
    from profharness.readers.bytes.limits import STREAMS, streams_of
    from profharness.trace.columns.keys import distinct

    if len(trace.kernels) <= STREAMS:
        return
    streams = len(distinct(trace.kernels.stream))
    if streams > (most := streams_of(paths)):
        raise InputError(
            f"{paths[0]} cannot be trusted: its kernels ran on {streams} streams, more than the "
            f"{most} that a file of its size may have",
            "the file was damaged: copy or record it again",
        )


def _check_processes(trace: Trace, paths: Sequence[Path]) -> None:
    """Raises InputError where the records are of more processes than can be put together."""
    from profharness.readers.bytes.limits import PROCESSES, processes_of_trace
    from profharness.trace.columns.keys import first_rows, pack

    tables = (trace.kernels, trace.copies, trace.api, trace.ops, trace.marks)
    if sum(map(len, tables)) <= PROCESSES:
        return
    found: set[tuple[int, ...]] = set()
    for table in tables:
        columns = (table.source, table.host, table.rank, table.pid)
        first, _ = first_rows(pack(columns))
        found.update(zip(*(column[first].tolist() for column in columns), strict=True))
    if len(found) > (most := processes_of_trace(paths)):
        raise InputError(
            f"{paths[0]} cannot be trusted: its records are of {len(found)} processes, more than "
            f"the {most} that a file of its size may have",
            "the file was damaged: copy or record it again",
        )


def _check_counters(trace: Trace, path: Path) -> None:
    """Raises InputError where kernels have values of more counters than any device counts."""
    from profharness.readers.bytes.limits import COUNTERS
    from profharness.trace.columns.keys import distinct

    if len(trace.counters) > COUNTERS and (found := len(distinct(trace.counters.name))) > COUNTERS:
        raise InputError(
            f"{path} cannot be trusted: it has {found} different hardware counters, more than the "
            f"{COUNTERS} that a file may have",
            "the file was damaged: copy or record it again",
        )


def stated_rank(path: Path) -> int | None:
    """The rank that a file states in its head, without reading the rest; None where only the whole
    file says. Raises InputError as `find_reader` does.
    """
    from profharness.readers.kineto.header import stated_rank as of_kineto

    head = read_head(path, HEAD_BYTES)
    with reading(path):
        return of_kineto(head)


def group_files(paths: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Files that make one trace each: the CSV files that rocprofv3 wrote for one process, those of
    one workload of rocprof-compute, and every other file by itself.

    What a hook wrote beside a tool's file is read with that file, so a pattern such as `*.json` may
    name it. Raises InputError as `find_reader` does.
    """
    everything = list(paths)
    listed = [path for path in everything if not _is_beside(path)] or everything
    named = [path for path in listed if ".csv" in path.name]
    if not named:
        return [(path,) for path in listed]
    from profharness.readers.rocprof_compute import reader as rocprof_compute
    from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv

    reader_of = {path: find_reader(path) for path in named}
    tables = [path for path in named if reader_of[path] is rocprofv3_csv]
    counted = [path for path in named if reader_of[path] is rocprof_compute]
    with reading(named[0]):
        sets = [*rocprofv3_csv.sets(tables), *rocprof_compute.sets(counted)]
    return [
        *((path,) for path in listed if path not in tables and path not in counted),
        *(tuple(files) for files in sets),
    ]


def _is_beside(path: Path) -> bool:
    return path.name.endswith(SUFFIX) and path.with_name(path.name.removesuffix(SUFFIX)).exists()


def read_group(paths: Sequence[Path], *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one group of `together`. Raises InputError as `read` does."""
    if len(paths) == 1:
        return read(paths[0], wanted=wanted)
    from profharness.readers.rocprof_compute import reader as rocprof_compute
    from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv

    with reading(paths[0]):
        if rocprof_compute.is_workload(paths):
            return bounded(rocprof_compute.read_set(paths), paths)
        return bounded(rocprofv3_csv.read_set(paths), paths)


def foreign_names() -> tuple[str, ...]:
    """The entry points' names of those that other packages add."""
    return tuple(name for name, _ in families.foreign(GROUP, NEEDS))
