"""rocprofv3's JSON output (`*_results.json`), read as a stream: one object per process, each with
its records and names.

Times are CLOCK_BOOTTIME ns. Values of a counter are added up over its instances (dies, shader
engines, channels), as the tool's own CSV does; so a counter of clocks counts each die of a device.
"""

from __future__ import annotations

from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.json_walk import DocumentEnds, JsonWalk
from profharness.readers.bytes.limits import processes_of
from profharness.readers.left_out import left_out
from profharness.readers.rocprofv3.json_rows import ProcessRows
from profharness.readers.rocprofv3.tables import RocmTables
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.places import named
from profharness.trace.wanted import Wanted

name = "rocprofv3-json"

KEY = "rocprofiler-sdk-tool"
_HINT = "the writer was interrupted or the file was damaged on its way: record or copy it again"


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """An object whose first key is the tool's."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"{") and start[1:].lstrip().startswith(f'"{KEY}"'.encode())


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file, a source per process. Raises InputError when nothing in the file is
    usable.
    """
    return read_blocks(path)


def read_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Trace:
    """`read` with blocks of a size of your choice. The result does not depend on it; memory and
    speed do.
    """
    walk = JsonWalk(path, block_bytes)
    strings = Strings()
    processes: list[ProcessRows] = []
    damage = ""
    try:
        _walk(walk, strings, processes, processes_of(path))
    except DocumentEnds as end:
        damage = walk.damage or str(end)
    tables = RocmTables(strings)
    sources = []
    for position, rows in enumerate(processes):
        rows.add_to(tables, position)
        sources.append(
            Source(
                path=str(path),
                format=name,
                clock=ClockDomain.BOOTTIME,
                host=rows.host,
                has_host_calls=rows.has_calls,
                pid=None if rows.pid == NULL else rows.pid,
                names=named([(rows.pid, NULL, rows.name)]),
            )
        )
    if not sources or ((damage or walk.unreadable) and not any(rows.records for rows in processes)):
        damage = damage or walk.first_error
        raise InputError(
            f"{path} holds no readable process{f': {damage}' if damage else ''}", _HINT
        )
    return tables.trace(sources, _problems(path, walk, damage, processes, tables))


def _walk(walk: JsonWalk, strings: Strings, processes: list[ProcessRows], most: int) -> None:
    """Reads `most` processes at the most. Raises DocumentEnds where the document does, or holds
    more.
    """
    for key in walk.members():
        if key != KEY:
            walk.skip()
            continue
        for _ in walk.elements():
            if len(processes) == most:
                raise DocumentEnds(
                    f"it holds more than {most} processes, as no file of its size does"
                )
            rows = ProcessRows(strings)
            processes.append(rows)
            for part in walk.members():
                rows.read(part, walk)


def _problems(
    path: Path, walk: JsonWalk, damage: str, processes: list[ProcessRows], tables: RocmTables
) -> list[Problem]:
    where = str(path)
    problems = []
    if damage:
        records = sum(rows.records for rows in processes)
        problems.append(
            Problem(
                "error",
                where,
                1,
                f"the file is cut or damaged: {damage}; {records} records were read",
            )
        )
    if walk.unreadable:
        problems.append(
            Problem(
                "warning",
                where,
                walk.unreadable,
                f"records are not readable and were left out (first: {walk.first_error})",
            )
        )
    if walk.repaired:
        problems.append(
            Problem(
                "info",
                where,
                walk.repaired,
                f"values were no valid JSON and were repaired (first: {walk.first_error})",
            )
        )
    problems += tables.problems(where)
    for rows in processes:
        if rows.nameless:
            problems.append(
                Problem(
                    "warning",
                    where,
                    rows.nameless,
                    "kernels are not in the file's list of kernels: named by their number",
                )
            )
        problems += left_out(where, rows.left_out, "records")
    return problems
