"""rocpd databases (`*_results.db`), SQLite, as rocprofv3 writes them from ROCm 7 on and rocprof-sys
where it is asked to: schema 3.0.0 to 3.0.5, and 4.1.

The tables carry the process's GUID in their names; everything is read through the views without
one, by the names of their columns. What a file has is asked of its tables: programs number their
schemas as they like, and some numbers mean two things. Times are CLOCK_BOOTTIME ns. A host call and
the device records that it made share the event's `stack_id`; the column `correlation_id` is the
user's external id. rocmProfileData's files of the same name are another, older format.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.limits import processes_of_trace
from profharness.readers.bytes.sqlite_tables import problems_of
from profharness.readers.left_out import left_out
from profharness.readers.rocprofv3.rocpd_owners import (
    Owner,
    environment_size,
    names_of,
    owners,
)
from profharness.readers.rocprofv3.rocpd_rows import ProcessReader
from profharness.readers.rocprofv3.rocpd_scopes import Scope, scopes
from profharness.readers.rocprofv3.rocpd_views import CALL, KERNEL
from profharness.readers.rocprofv3.tables import RocmTables
from profharness.rundir.databases.header import MAGIC
from profharness.rundir.databases.opening import Opened, opened
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.wanted import Wanted

name = "rocpd"

_NEEDED = frozenset(
    {
        "rocpd_metadata",
        "rocpd_info_agent",
        "rocpd_info_kernel_symbol",
        "rocpd_string",
        "processes",
        "kernels",
        "regions",
    }
)
# columns without which a view tells nothing, each by any of these names
_LEAST = tuple(
    (view, wanted[column])
    for view, wanted, columns in (
        ("kernels", KERNEL, ("start", "end", "kernel", "agent")),
        ("regions", CALL, ("start", "end", "name")),
    )
    for column in columns
)


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """Any SQLite file: of the formats that are read, only this one is."""
    return head.startswith(MAGIC)


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one database, a source per process.

    Raises InputError when it is no rocpd database, has a schema that cannot be read, or holds
    nothing usable.
    """
    with opened(path) as file:
        version = _check(path, file.connection)
        processes = [(scope, owner) for scope in scopes(file.connection) for owner in owners(scope)]
        if not processes:
            raise InputError(f"{path} holds no process", "the writer was interrupted: record again")
        if len(processes) > (most := processes_of_trace((path,))):
            raise InputError(
                f"{path} cannot be trusted: its records are of {len(processes)} processes, more "
                f"than the {most} that a file of its size may have",
                "the file was damaged: copy or record it again",
            )
        return _read(path, file, processes, version)


def _read(path: Path, file: Opened, processes: list[tuple[Scope, Owner]], version: str) -> Trace:
    tables = RocmTables(Strings())
    problems = [*problems_of(file, path)]
    sources = []
    beside = Counter(scope for scope, _ in processes)
    for position, (scope, owner) in enumerate(processes):
        reader = ProcessReader(scope, owner, tables, position, alone=beside[scope] == 1)
        reader.read()
        sources.append(
            Source(
                path=str(path),
                format=name,
                clock=ClockDomain.BOOTTIME,
                host=owner.host,
                pid=owner.pid,
                names=names_of(scope, owner),
                has_host_calls=reader.has_calls,
                details=(("schema", version),),
            )
        )
        problems += _problems_of(reader, str(path))
    if _is_damaged(problems) and not tables.kernels and not tables.has_calls:
        raise InputError(
            f"{path} holds no readable record: {problems[0].message}", "record or copy it again"
        )
    problems += tables.problems(str(path))
    problems += _environment(str(path), sum(map(environment_size, beside)))
    return tables.trace(sources, problems)


def _problems_of(reader: ProcessReader, where: str) -> Iterator[Problem]:
    """What was lost of one process's records, or not read."""
    if reader.damage:
        message = f"the file is cut or damaged: {reader.damage}; {reader.records} records were read"
        yield Problem("error", where, 1, message)
    yield from left_out(where, reader.left_out, "records", "warning")
    yield from left_out(where, reader.unread, "records")


def _environment(where: str, variables: int) -> Iterator[Problem]:
    """What a reader of the file may see beside its records."""
    if variables:
        yield Problem(
            "info",
            where,
            variables,
            "environment variables of the process stand in this file, with what they hold: "
            "look before you share it",
        )


def _is_damaged(problems: list[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _check(path: Path, connection: sqlite3.Connection) -> str:
    """The schema version. Raises InputError for other databases, saying which."""
    names = {
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        )
    }
    if {"rocpd_api", "rocpd_op"} <= names:
        raise InputError(
            f"{path} was written by rocmProfileData (rpd), not by rocprofv3: "
            "the two share a name, not a schema",
            "record with `profharness run --profile rocprofv3`",
        )
    if any(table.startswith("CUPTI_ACTIVITY_") for table in names) or "NVTX_EVENTS" in names:
        program = "Nsight Systems" if "StringIds" in names else "nvprof"
        raise InputError(
            f"{path} is a database of {program}, which profharness does not read",
            "record the program by `profharness run --profile torch -- COMMAND`, or name a trace "
            "of torch.profiler",
        )
    if missing := _NEEDED - names:
        raise InputError(
            f"{path} is an SQLite database, but no rocpd: it has no {min(missing)}",
            "name the *_results.db that rocprofv3 wrote",
        )
    metadata = dict(connection.execute("SELECT tag, value FROM rocpd_metadata"))
    version = str(metadata.get("schema_version", "unknown"))
    if reason := _unreadable(metadata, version, names, connection):
        raise InputError(
            f"{path} is a rocpd database of schema version {version}, which is not read: {reason}",
            "convert it with `rocpd convert -f csv` and name its kernel_trace.csv",
        )
    return version


def _unreadable(
    metadata: Mapping[str, object], version: str, names: Collection[str], file: sqlite3.Connection
) -> str:
    """Why the file's schema cannot be read; empty where it can. Trial versions of the tool wrote
    texts compressed (schema 4), or times apart from their records (4.0.0).
    """
    compression = metadata.get("compression")
    if compression or version == "4":
        return f"its texts are compressed ({compression or 'lz4'})"
    if any(name.startswith("rocpd_timestamp") for name in names):
        return "its records keep their times in a table of their own (rocpd_timestamp)"
    lacking = [
        f"{view} has no {' or '.join(choices)}"
        for view, choices in _LEAST
        if not _has(file, view, choices)
    ]
    return "" if not lacking else f"its view {lacking[0]}"


def _has(file: sqlite3.Connection, view: str, choices: Collection[str]) -> bool:
    return any(row[1] in choices for row in file.execute(f'PRAGMA table_info("{view}")'))
