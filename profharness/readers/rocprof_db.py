"""results.db of rocprof v1, the SQLite file from which the tool makes its JSON and its statistics.

KERN holds the rows of results.csv; OPS, COPY, HIP, HSA and rocTX hold traced records, in which `Index` of a device record is
that of the call that launched it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers import rocprof_csv
from profharness.readers.csv_columns import Table
from profharness.readers.files import read_head
from profharness.readers.kineto_events import integers
from profharness.readers.rocprof_rows import Rows, build_trace
from profharness.readers.sqlite_file import MAGIC, opened, quoted, tables
from profharness.trace.model import I64, NULL, Problem, Trace

name = "rocprof-db"

_OPS = {"OPS": "kernels", "COPY": "copies"}
_CALLS = {"HIP": "hip", "HSA": "hsa", "KFD": "kfd"}
_BEGIN, _END = "BeginNs", "EndNs"
_BLOCK = 1 << 16
_SCHEMA = (b'"BeginNs" INTEGER', b'"KernelName" TEXT')

Columns = Mapping[str, tuple[str, ...]]


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  # part of the contract; the content decides
    """A SQLite file whose schema, on its first page, has rocprof's columns."""
    return head.startswith(MAGIC) and any(column in head for column in _SCHEMA)


def read(path: Path, *, ops: bool = True) -> Trace:  # noqa: ARG001  # part of the contract; there are no operators
    """The trace of one file. Raises InputError when it is no readable database of rocprof."""
    read_head(path, 1)  # says what is wrong with a path that cannot be read
    with opened(path) as connection:
        found = tables(connection)
        traced = {table: _size(connection, table) for table in (*_OPS, *_CALLS, "rocTX") if table in found}
        kernels = _size(connection, "KERN") if "KERN" in found else 0
        if kernels and not traced.get("OPS") and not any(traced.values()):
            return rocprof_csv.trace_of(_kern(connection, path), name)
        if not traced and "KERN" not in found:
            raise InputError(f"{path} holds none of rocprof's tables", "name results.db as rocprof wrote it")
        rows = _rows(connection, found)
    problems = [] if not kernels else [Problem(
        "info", str(path), kernels, "dispatches of the table KERN were left out: the traced records say more; their counters are in results.csv")]
    return build_trace(rows, path, name, problems)


def _size(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0])


def _kern(connection: sqlite3.Connection, path: Path) -> Table:
    """The rows of results.csv, whose texts are kept with their quotes."""
    cursor = connection.execute('SELECT * FROM "KERN" ORDER BY rowid')
    header = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    columns = {column: ["" if row[place] is None else str(row[place]) for row in rows] for place, column in enumerate(header)}
    if "KernelName" in columns:
        columns["KernelName"] = [_unquoted(text) for text in columns["KernelName"]]
    return Table(path, columns, len(rows))


def _rows(connection: sqlite3.Connection, found: Columns) -> Rows:
    rows = Rows(older=any("proc-id" in found.get(table, ()) for table in _OPS))
    for table, kind in _OPS.items():
        if table in found:
            _add(connection, table, found[table], rows, kind)
    for table in (*_CALLS, "rocTX"):
        if table in found:
            _add(connection, table, found[table], rows, "calls" if table in _CALLS else "marks")
    return rows


def _add(connection: sqlite3.Connection, table: str, columns: tuple[str, ...], rows: Rows, kind: str) -> None:
    wanted = [_BEGIN, _END, "Name", "pid", "tid", *(("dev-id", "queue-id", "stream-id", "proc-id") if kind in _OPS.values() else ()), "Index"]
    present = [column for column in wanted if column in columns]
    cursor = connection.execute(f"SELECT {', '.join(map(quoted, present))} FROM {quoted(table)} ORDER BY rowid")
    while batch := cursor.fetchmany(_BLOCK):
        values = dict(zip(present, zip(*batch, strict=True), strict=True))
        texts = values.pop("Name", ("",) * len(batch))
        numbers = {column: integers(list(given)) for column, given in values.items()}
        blank = np.full(len(batch), NULL, np.int64)
        taken = {column: numbers.get(column, blank) for column in wanted if column != "Name"}
        timed = (taken[_BEGIN] != NULL) & (taken[_END] != NULL)
        rows.untimed += int((~timed).sum())
        codes = rows.names.codes([_unquoted(str(text or "")) for text in texts]).astype(np.int64)
        grown = {"start": taken[_BEGIN], "end": taken[_END], "name": codes, **_owner(taken, rows.older, kind)}
        if kind in _OPS.values():
            grown |= {"device": taken["dev-id"], "queue": taken["queue-id"], "stream": taken["stream-id"]}
        if kind == "calls":
            grown["domain"] = np.full(len(batch), rows.strings.code(_CALLS[table]), np.int64)
        if kind != "marks":
            grown["link"] = taken["Index"]
        getattr(rows, kind).add(int(timed.sum()), **{column: given[timed] for column, given in grown.items()})


def _owner(taken: Mapping[str, I64], older: bool, kind: str) -> dict[str, I64]:
    """Process and thread. In older files device records name the process apart, and calls a section in its place."""
    if not older:
        return {"pid": taken["pid"], "tid": taken["tid"]}
    blank = np.full(len(taken["pid"]), NULL, np.int64)
    if kind in _OPS.values():
        return {"pid": taken["proc-id"], "tid": blank}
    return {"pid": blank, "tid": taken["tid"]}


def _unquoted(text: str) -> str:
    """rocprof keeps the quotes that its CSV has around names."""
    return text[1:-1] if len(text) > 1 and text.startswith('"') and text.endswith('"') else text
