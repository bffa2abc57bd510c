"""results.db of rocprof v1, the SQLite file from which the tool makes its JSON and its statistics.

KERN holds the rows of results.csv; OPS, COPY, HIP, HSA and rocTX hold traced records, in which
`Index` of a device record is that of the call that launched it. Where both are there, the
dispatches of KERN give the traced kernels their geometry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import Table
from profharness.readers.bytes.sqlite_tables import Database, opened
from profharness.readers.kineto.values import Odd
from profharness.readers.rocprof_v1 import csv_reader as rocprof_csv
from profharness.readers.rocprof_v1.geometry import with_dispatches, with_geometry
from profharness.readers.rocprof_v1.rows import Rows, build_trace
from profharness.rundir.databases.header import MAGIC
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Problem, Trace
from profharness.trace.wanted import Wanted

name = "rocprof-db"

_OPS = {"OPS": "kernels", "COPY": "copies"}
_MARKS = "rocTX"
_CALLS = {"HIP": "hip", "HSA": "hsa", "KFD": "kfd"}
_BEGIN, _END = "BeginNs", "EndNs"
_BLOCK = 1 << 16
_SCHEMA = (b'"BeginNs" INTEGER', b'"KernelName" TEXT')


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """A SQLite file whose schema, on its first page, has rocprof's columns."""
    return head.startswith(MAGIC) and any(column in head for column in _SCHEMA)


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file. Raises InputError when it is no readable database of rocprof."""
    with opened(path) as database:
        tables = [table for table in ("KERN", *_OPS, *_CALLS, _MARKS) if table in database.columns]
        if not tables:
            raise InputError(
                f"{path} holds none of rocprof's tables", "name results.db as rocprof wrote it"
            )
        kernels = database.size("KERN")
        if kernels and not any(database.size(table) for table in tables if table != "KERN"):
            trace = rocprof_csv.trace_of(_kern(database, path), name)
            return replace(trace, problems=(*_noted(database), *trace.problems))
        table = _kern(database, path) if kernels else None
        rows = _rows(database)
    trace = build_trace(rows, path, name, list(database.problems))
    if table is None:
        return with_dispatches(trace, path)
    return with_geometry(trace, rocprof_csv.trace_of(table, name), f"{path} (its table KERN)")


def _noted(database: Database) -> tuple[Problem, ...]:
    """What is said of the file beside its damage, which the reader of tables says itself."""
    return tuple(problem for problem in database.problems if problem.severity != "error")


def _kern(database: Database, path: Path) -> Table:
    """The rows of results.csv, whose texts are kept with their quotes."""
    header = database.columns["KERN"]
    rows = database.rows("KERN", header).fetchall()
    columns = {
        column: ["" if row[place] is None else str(row[place]) for row in rows]
        for place, column in enumerate(header)
    }
    if "KernelName" in columns:
        columns["KernelName"] = [_unquoted(text) for text in columns["KernelName"]]
    return Table(path, columns, len(rows), damage=database.damage)


def _rows(database: Database) -> Rows:
    rows = Rows(older=any("proc-id" in database.columns.get(table, ()) for table in _OPS))
    for table in (*_OPS, *_CALLS, _MARKS):
        if table in database.columns:
            _add(database, table, rows)
    return rows


def _add(database: Database, table: str, rows: Rows) -> None:
    kind = _OPS.get(table, "calls" if table in _CALLS else "marks")
    wanted = [
        _BEGIN,
        _END,
        "Name",
        "pid",
        "tid",
        *(("dev-id", "queue-id", "stream-id", "proc-id") if kind in _OPS.values() else ()),
        "Index",
    ]
    present = [column for column in wanted if column in database.columns[table]]
    cursor = database.rows(table, present)
    times = Odd()  # a row without times is counted as such
    while batch := cursor.fetchmany(_BLOCK):
        values = dict(zip(present, zip(*batch, strict=True), strict=True))
        texts = values.pop("Name", ("",) * len(batch))
        numbers = {
            column: (times if column in (_BEGIN, _END) else rows.odd).whole(column, list(given))
            for column, given in values.items()
        }
        blank = np.full(len(batch), NULL, np.int64)
        taken = {column: numbers.get(column, blank) for column in wanted if column != "Name"}
        timed = (taken[_BEGIN] >= 0) & (taken[_END] >= 0)
        rows.untimed += int((~timed).sum())
        codes = rows.names.codes([_unquoted(str(text or "")) for text in texts]).astype(np.int64)
        grown = {
            "start": taken[_BEGIN],
            "end": taken[_END],
            "name": codes,
            **_owner(taken, rows.older, kind),
        }
        if kind in _OPS.values():
            grown |= {
                "device": taken["dev-id"],
                "queue": taken["queue-id"],
                "stream": taken["stream-id"],
            }
        if kind == "calls":
            grown["domain"] = np.full(len(batch), rows.strings.code(_CALLS[table]), np.int64)
        if kind != "marks":
            grown["link"] = taken["Index"]
        getattr(rows, kind).add(
            int(timed.sum()), **{column: given[timed] for column, given in grown.items()}
        )


def _owner(taken: Mapping[str, I64], older: bool, kind: str) -> dict[str, I64]:
    """Process and thread. In older files device records name the process apart, and calls a section
    in its place.
    """
    if not older:
        return {"pid": taken["pid"], "tid": taken["tid"]}
    blank = np.full(len(taken["pid"]), NULL, np.int64)
    if kind in _OPS.values():
        return {"pid": taken["proc-id"], "tid": blank}
    return {"pid": blank, "tid": taken["tid"]}


def _unquoted(text: str) -> str:
    """The name without the quotes that the CSV has around it, and that the tool keeps."""
    return text[1:-1] if len(text) > 1 and text.startswith('"') and text.endswith('"') else text
