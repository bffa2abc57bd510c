"""Later schemas of rocpd, made from a database of schema 3: the columns and tables that each version
added or renamed, and rows in them that no reader may take for something else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from tests.fakes.rocprofv3_program import Program

LATER = ("3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.4-blobs", "3.0.5", "4.1.0")
"""What can be read beside `3`; two programs call two different schemas 3.0.4."""
UNREADABLE = ("4", "4.0.0")


def add_graphs(connection: sqlite3.Connection, suffix: str, guid: str, program: Program) -> None:
    """Which graphs kernels are nodes of, and the launches, into a database of 3.0.2 or later."""
    connection.executemany(
        f'UPDATE "rocpd_kernel_dispatch{suffix}" SET graph_exec_id = ? WHERE dispatch_id = ?',
        [(kernel.graph, kernel.dispatch) for kernel in program.kernels],
    )
    connection.executemany(
        f'INSERT INTO "rocpd_graph_launch{suffix}" (guid, pid, tid, start, "end", graph_exec_id, '
        "kernel_dispatch_count) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(guid, program.pid, g.tid, g.start, g.end, g.graph, g.kernels) for g in program.graphs],
    )


def renewed(connection: sqlite3.Connection, suffixes: Sequence[str], schema: str) -> None:
    """Makes the database one of that schema, step by step."""
    if schema == "3":
        return
    number = schema.partition("-")[0]
    for step in _STEPS:
        if step.__name__.removeprefix("_to_").replace("_", ".") <= number:
            step(connection, suffixes)
    if schema == "3.0.4-blobs":
        _blobs(connection, suffixes)
    for suffix in suffixes:
        connection.execute(
            f'UPDATE "rocpd_metadata{suffix}" SET value = ? WHERE tag = ?',
            (number, "schema_version"),
        )
    if schema == "4":
        for suffix in suffixes:
            connection.execute(
                f'INSERT INTO "rocpd_metadata{suffix}" VALUES (9, ?, ?)',
                ("compression", "lz4-frame-v1"),
            )
    if schema == "4.0.0":
        _new_table(connection, suffixes, "timestamp", "value BIGINT")


def _to_3_0_1(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    """Network cards are agents, too. Theirs has the number of the first GPU here."""
    _new_table(connection, suffixes, "event_operation", "event_id INT, operation INT")
    for suffix in suffixes:
        connection.execute(
            f'INSERT INTO "rocpd_info_agent{suffix}" (id, guid, nid, pid, type, absolute_index, '
            "logical_index, type_index, name, product_name, extdata) "
            "SELECT 900, guid, nid, pid, 'NIC', 90, MIN(logical_index), 0, 'mlx5', 'ConnectX', "
            f"""'{{}}' FROM "rocpd_info_agent{suffix}" WHERE type = 'GPU' """
        )


def _to_3_0_2(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    """Which graph, and which of its nodes, made a kernel or a copy; 0 for none."""
    for table in ("kernel_dispatch", "memory_copy"):
        _new_columns(connection, suffixes, table, ("graph_exec_id", "graph_node_id"))
    _new_table(
        connection,
        suffixes,
        "graph_launch",
        'nid INT, pid INT, tid INT, agent_id INT, queue_id INT, start BIGINT, "end" BIGINT, '
        "graph_exec_id INT, kernel_dispatch_count INT, event_id INT, extdata JSONB",
    )


def _to_3_0_3(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    """Values of counters that were sampled while a kernel ran stand among those of its end. The
    view of sums leaves them out.
    """
    columns = ("sample_id", "xcc", "shader_engine", "instance")
    _new_columns(connection, suffixes, "pmc_event", columns)
    _new_columns(connection, suffixes, "info_pmc", ("spm_support",))
    for suffix in suffixes:
        connection.execute(
            f'INSERT INTO "rocpd_pmc_event{suffix}" (guid, event_id, pmc_id, value, extdata, '
            "sample_id, xcc, shader_engine, instance) "
            "SELECT guid, event_id, pmc_id, value + 1e6, extdata, 1, 0, 0, 0 "
            f'FROM "rocpd_pmc_event{suffix}"'
        )
    body = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'counters_collection'"
    ).fetchone()[0]
    connection.execute("DROP VIEW counters_collection")
    connection.execute(body.replace(" GROUP BY", " WHERE V.sample_id IS NULL GROUP BY"))
    connection.execute(
        "CREATE VIEW spm_counters AS SELECT * FROM rocpd_pmc_event WHERE sample_id IS NOT NULL"
    )


def _to_3_0_4(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    _new_table(connection, suffixes, "hip_event", "nid INT, pid INT, tid INT, start BIGINT")
    connection.execute("CREATE VIEW hip_events AS SELECT * FROM rocpd_hip_event")


def _blobs(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    """The other schema of this number."""
    connection.execute("DROP VIEW hip_events")
    connection.execute("DROP VIEW rocpd_hip_event")
    _new_columns(connection, suffixes, "event", ("parent_id",))
    _new_table(connection, suffixes, "gpu_pc_sample", "timestamp BIGINT, exec_mask INT")


def _to_3_0_5(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    _new_columns(connection, suffixes, "pmc_event", ("shader_array", "wgp"))


def _to_4_1_0(connection: sqlite3.Connection, suffixes: Sequence[str]) -> None:
    """Rows name a track instead of process, thread, agent, queue and stream; the views rename
    columns, and their LDS is rounded up to 512 bytes.
    """
    bodies = dict(
        connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall()
    )
    for view in bodies:  # a column of a table that a view names cannot be dropped
        connection.execute(f"DROP VIEW {view}")
    _new_columns(connection, suffixes, "track", ("ppid", "agent_id", "queue_id", "stream_id"))
    _new_columns(connection, suffixes, "info_agent", ("generic_name",))
    for suffix in suffixes:
        connection.execute(f"""UPDATE "rocpd_info_agent{suffix}" SET generic_name = name""")
        connection.execute(
            f"""UPDATE "rocpd_info_agent{suffix}" SET name = '' WHERE type = 'GPU'"""
        )
        connection.execute(f'ALTER TABLE "rocpd_info_agent{suffix}" DROP COLUMN user_name')
        _on_tracks(connection, suffix)
    for view in bodies.keys() - {"counters_collection", "scratch_memory"}:
        connection.execute(_renamed(view, bodies[view]) if view in _RENEWED else bodies[view])
    connection.execute(
        "CREATE VIEW kernel_pmc_events AS SELECT V.guid, K.dispatch_id, T.pid, "
        "I.name AS pmc_name, V.value AS pmc_value, V.sample_id FROM rocpd_pmc_event V "
        "JOIN rocpd_info_pmc I ON I.id = V.pmc_id AND I.guid = V.guid "
        "JOIN rocpd_kernel_dispatch K ON K.event_id = V.event_id AND K.guid = V.guid "
        "JOIN rocpd_track T ON T.id = K.track_id AND T.guid = K.guid"
    )


_STEPS: tuple[Callable[[sqlite3.Connection, Sequence[str]], None], ...] = (
    _to_3_0_1,
    _to_3_0_2,
    _to_3_0_3,
    _to_3_0_4,
    _to_3_0_5,
    _to_4_1_0,
)
_ON_TRACKS = ("region", "kernel_dispatch", "memory_copy", "memory_allocate")
_OF_TRACK = ("nid", "pid", "tid", "agent_id", "queue_id", "stream_id")
_RENEWED = ("regions", "kernels", "memory_copies", "memory_allocations", "samples")
_NAMES = (
    ("agent_abs_index", "agent_absolute_index"),
    ("agent_log_index", "agent_logical_index"),
    ("corr_id", "correlation_id"),
    (
        "K.group_segment_size AS lds_size",
        "((K.group_segment_size + 511) / 512) * 512 AS lds_block_size",
    ),
    ("static_lds_size", "static_lds_block_size"),
    ("AS vgpr_count", "AS arch_vgpr_count"),
)


def _on_tracks(connection: sqlite3.Connection, suffix: str) -> None:
    """Moves what a row says of its place into a track; those of samples have their own already."""
    for table in _ON_TRACKS:
        name = f"rocpd_{table}{suffix}"
        present = {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')}
        moved = [column for column in _OF_TRACK if column in present]
        connection.execute(f'ALTER TABLE "{name}" ADD COLUMN track_id INT')
        places = connection.execute(f'SELECT DISTINCT guid, {", ".join(moved)} FROM "{name}"')
        for guid, *place in places.fetchall():
            track = connection.execute(
                f'INSERT INTO "rocpd_track{suffix}" (guid, {", ".join(moved)}) '
                f"VALUES (?, {', '.join('?' * len(moved))})",
                (guid, *place),
            ).lastrowid
            same = " AND ".join(f"{column} IS ?" for column in moved)
            connection.execute(f'UPDATE "{name}" SET track_id = ? WHERE {same}', (track, *place))
        for column in moved:
            connection.execute(f'ALTER TABLE "{name}" DROP COLUMN {column}')
    for column in ("call_stack", "line_info"):
        connection.execute(f'ALTER TABLE "rocpd_event{suffix}" DROP COLUMN {column}')


def _renamed(view: str, body: str) -> str:
    """The view with the new names; what its table lost comes from the track, and a process is
    joined by its own number.
    """
    for old, new in _NAMES:
        body = body.replace(old, new)
    if view == "samples":
        return body
    alias = {"regions": "R", "kernels": "K"}.get(view, "M")
    for column in _OF_TRACK:
        body = body.replace(f"{alias}.{column}", f"TR.{column}")
    body = body.replace("P.id = Q.pid", "P.pid = Q.pid").replace("P.id = TR.pid", "P.pid = TR.pid")
    table = body.index(f" {alias} ", body.index("FROM rocpd_")) + len(alias) + 2
    return (
        f"{body[:table]}JOIN rocpd_track TR ON TR.id = {alias}.track_id "
        f"AND TR.guid = {alias}.guid {body[table:]}"
    )


def _new_columns(
    connection: sqlite3.Connection, suffixes: Iterable[str], table: str, columns: Iterable[str]
) -> None:
    for suffix in suffixes:
        for column in columns:
            connection.execute(f'ALTER TABLE "rocpd_{table}{suffix}" ADD COLUMN {column} INT')


def _new_table(
    connection: sqlite3.Connection, suffixes: Sequence[str], table: str, columns: str
) -> None:
    names = [f'"rocpd_{table}{suffix}"' for suffix in suffixes]
    for name in names:
        connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, guid TEXT, {columns})")
    union = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
    connection.execute(f"CREATE VIEW rocpd_{table} AS {union}")
