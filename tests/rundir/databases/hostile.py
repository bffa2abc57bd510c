"""Databases that are made to cost: rocpd files whose views or tables are bombs."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program

KERNEL = (
    "id, guid, tid, category, region, name, nid, pid, agent_abs_index, agent_log_index, "
    "agent_type_index, agent_type, code_object_id, kernel_id, dispatch_id, stream_id, queue_id, "
    'queue, stream, start, "end", stack_id'
)
COUNTED = "1, K.guid, 1, 'C', 'r', 'n', 1, 7, 1, 1, 0, 'GPU', 1, 1, 1, 1, 1, 'q', 's', 5, 9, 1"


def _kernels(select: str, before: str = "") -> Callable[[sqlite3.Connection], None]:
    """A view `kernels` that selects this."""

    def change(file: sqlite3.Connection) -> None:
        file.execute("DROP VIEW kernels")
        file.execute(f"CREATE VIEW kernels ({KERNEL}) AS {before} SELECT {select}")

    return change


def _named(value: str) -> str:
    """As COUNTED, with this in place of a time."""
    return COUNTED.replace(", 5,", f", {value},")


def _doubling(file: sqlite3.Connection) -> None:
    file.execute("CREATE VIEW v0 AS SELECT 1 AS x")
    for number in range(1, 30):
        file.execute(f"CREATE VIEW v{number} AS SELECT a.x FROM v{number - 1} a, v{number - 1} b")
    _kernels(f"{COUNTED} FROM rocpd_info_process K, v29")(file)


def _doubling_inside(file: sqlite3.Connection) -> None:
    """As above within one view, where it cannot be counted from names of views."""
    parts = ["w0 AS (SELECT 1 AS x)"]
    parts += [f"w{n} AS (SELECT a.x FROM w{n - 1} a, w{n - 1} b)" for n in range(1, 25)]
    _kernels(f"{COUNTED} FROM rocpd_info_process K, w24", f"WITH {', '.join(parts)}")(file)


def _blobs(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE heavy (value)")
    file.execute("INSERT INTO heavy VALUES (zeroblob(1000000))")
    _joined(file, "(SELECT value FROM heavy)")


def _texts(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE heavy (value)")
    file.execute("INSERT INTO heavy VALUES (?)", ("x" * 900_000,))
    _joined(file, "(SELECT value FROM heavy) || L.id")


def _json(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE heavy (value)")
    file.execute("INSERT INTO heavy VALUES (?)", ('{"a": [' + "1," * 400_000 + "1]}",))
    _joined(file, "json_extract((SELECT value FROM heavy) || substr(L.id, 1, 0), '$.a[399999]')")


def _joined(file: sqlite3.Connection, value: str) -> None:
    file.execute("CREATE TABLE line (id INTEGER PRIMARY KEY)")
    file.executemany("INSERT INTO line VALUES (?)", ((number,) for number in range(60_000)))
    _kernels(f"{_named(value)} FROM rocpd_info_process K, line L")(file)


def _many_tables(file: sqlite3.Connection) -> None:
    file.execute("PRAGMA writable_schema = ON")
    file.executemany(
        "INSERT INTO sqlite_master VALUES ('table', ?, ?, ?, ?)",
        ((f"t{n}", f"t{n}", 2, f"CREATE TABLE t{n} (a INTEGER)") for n in range(100_000)),
    )


def _many_columns(file: sqlite3.Connection) -> None:
    columns = ", ".join(f"c{n} INT" for n in range(30_000))
    file.execute("PRAGMA writable_schema = ON")
    file.execute(
        "INSERT INTO sqlite_master VALUES ('table', 'wide', 'wide', 2, ?)",
        (f"CREATE TABLE wide ({columns})",),
    )


def _virtual(file: sqlite3.Connection) -> None:
    file.execute("DROP VIEW kernels")
    file.execute(f"CREATE VIRTUAL TABLE kernels USING fts4({KERNEL.replace(chr(34), '')})")


def _generated(file: sqlite3.Connection) -> None:
    """The time of a function of this kind is the square of its values' length."""
    file.execute("CREATE TABLE made (a TEXT, b INTEGER GENERATED ALWAYS AS (instr(a, a || 'b')))")


def _padded(file: sqlite3.Connection) -> None:
    """Twenty MB of free pages, which buy nothing."""
    file.execute("CREATE TABLE padding (value)")
    file.execute("INSERT INTO padding VALUES (zeroblob(20000000))")
    file.execute("DROP TABLE padding")
    _joins(file)


_joins = _kernels(
    f"{COUNTED} FROM rocpd_info_process K, "
    + ", ".join(f"sqlite_master m{number}" for number in range(12))
)
BOMBS: dict[str, Callable[[sqlite3.Connection], None]] = {
    "recursive": _kernels(
        f"{COUNTED} FROM rocpd_info_process K, c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)",
    ),
    "joins": _joins,
    "padded": _padded,
    "zeroblob": _kernels(_named("zeroblob(999999999)") + " FROM rocpd_info_process K"),
    "extension": _kernels(_named("load_extension('x.so')") + " FROM rocpd_info_process K"),
    "doubling": _doubling,
    "doubling-inside": _doubling_inside,
    "blobs": _blobs,
    "texts": _texts,
    "json": _json,
    "tables": _many_tables,
    "columns": _many_columns,
    "virtual": _virtual,
    "generated": _generated,
}


def write(path: Path, bomb: str) -> Path:
    write_rocpd(path, program(1, 20))
    with contextlib.closing(sqlite3.connect(path)) as file:
        BOMBS[bomb](file)
        file.commit()
    return path
