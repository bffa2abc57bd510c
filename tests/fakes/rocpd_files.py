"""Writes rocpd databases of a made-up program: tables with the process's GUID in their names, and
the views over them, in schema 3 or any later one (`rocpd_schemas`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tests.fakes.rocpd_schemas import add_graphs, renewed
from tests.fakes.rocprofv3_files import agent_record
from tests.fakes.rocprofv3_program import Program

# table: columns; each table has an id and a guid in front
TABLES: dict[str, str] = {
    "metadata": "tag TEXT, value TEXT",
    "string": "string TEXT",
    "info_node": (
        "hash BIGINT, machine_id TEXT, system_name TEXT, hostname TEXT, release TEXT, "
        "version TEXT, hardware_name TEXT, domain_name TEXT"
    ),
    "info_process": (
        "nid INT, ppid INT, pid INT, init BIGINT, fini BIGINT, start BIGINT, "
        '"end" BIGINT, command TEXT, environment JSONB, extdata JSONB'
    ),
    "info_thread": (
        'nid INT, ppid INT, pid INT, tid INT, name TEXT, start BIGINT, "end" BIGINT, extdata JSONB'
    ),
    "info_agent": "nid INT, pid INT, type TEXT, absolute_index INT, logical_index INT, "
    "type_index INT, uuid INT, name TEXT, model_name TEXT,"
    " vendor_name TEXT, product_name TEXT, user_name TEXT, extdata JSONB",
    "info_queue": "nid INT, pid INT, name TEXT, extdata JSONB",
    "info_stream": "nid INT, pid INT, name TEXT, extdata JSONB",
    "info_pmc": "nid INT, pid INT, agent_id INT, name TEXT, symbol TEXT, extdata JSONB",
    "info_kernel_symbol": "nid INT, pid INT, code_object_id INT, kernel_name TEXT, "
    "display_name TEXT, group_segment_size INT, private_segment_size INT,"
    " sgpr_count INT, arch_vgpr_count INT, accum_vgpr_count INT, extdata JSONB",
    "track": "nid INT, pid INT, tid INT, name_id INT, extdata JSONB",
    "event": (
        "category_id INT, stack_id INT, parent_stack_id INT, correlation_id INT, "
        "call_stack JSONB, line_info JSONB, extdata JSONB"
    ),
    "pmc_event": "event_id INT, pmc_id INT, value REAL, extdata JSONB",
    "region": (
        'nid INT, pid INT, tid INT, start BIGINT, "end" BIGINT, name_id INT, '
        "event_id INT, extdata JSONB"
    ),
    "sample": "track_id INT, timestamp BIGINT, event_id INT, extdata JSONB",
    "kernel_dispatch": "nid INT, pid INT, tid INT, agent_id INT, kernel_id INT, "
    "dispatch_id INT, queue_id INT, stream_id INT, start BIGINT, "
    '"end" BIGINT,'
    " private_segment_size INT, group_segment_size INT, workgroup_size_x INT, "
    "workgroup_size_y INT, workgroup_size_z INT,"
    " grid_size_x INT, grid_size_y INT, grid_size_z INT, region_name_id INT, event_id INT, "
    "extdata JSONB",
    "memory_copy": 'nid INT, pid INT, tid INT, start BIGINT, "end" BIGINT, name_id INT, '
    "dst_agent_id INT, dst_address INT, src_agent_id INT,"
    " src_address INT, size INT, queue_id INT, stream_id INT, region_name_id INT, "
    "event_id INT, extdata JSONB",
    "memory_allocate": "nid INT, pid INT, tid INT, agent_id INT, type TEXT, level TEXT, "
    'start BIGINT, "end" BIGINT, address INT, size INT,'
    " queue_id INT, stream_id INT, event_id INT, extdata JSONB",
}


def _text(column: str, of: str) -> str:
    return f"(SELECT string FROM rocpd_string X WHERE X.id = {column} AND X.guid = {of}.guid)"


def _join(name: str, alias: str, column: str, of: str, kind: str = "JOIN") -> str:
    return f"{kind} rocpd_{name} {alias} ON {alias}.id = {column} AND {alias}.guid = {of}.guid"


VIEWS: dict[str, str] = {
    "processes": (
        "SELECT N.id AS nid, N.hostname, P.guid, P.ppid, P.pid, P.init, P.start, "
        'P."end", P.fini, P.command FROM rocpd_info_process P '
    )
    + _join("info_node", "N", "P.nid", "P"),
    "regions": f"SELECT R.id, R.guid, {_text('E.category_id', 'E')} AS category, "
    'S.string AS name, R.nid, P.pid, T.tid, R.start, R."end",'
    ' (R."end" - R.start) AS duration, R.event_id, E.stack_id, E.parent_stack_id, '
    "E.correlation_id AS corr_id, E.extdata FROM rocpd_region R "
    + " ".join(
        (
            _join("event", "E", "R.event_id", "R"),
            _join("string", "S", "R.name_id", "R"),
            _join("info_process", "P", "R.pid", "R"),
            _join("info_thread", "T", "R.tid", "R"),
        )
    ),
    "samples": f"SELECT R.id, R.guid, {_text('E.category_id', 'E')} AS category, "
    f"{_text('T.name_id', 'T')} AS name, T.nid, P.pid, H.tid, R.timestamp,"
    " R.event_id, E.stack_id, E.extdata FROM rocpd_sample R "
    + " ".join(
        (
            _join("track", "T", "R.track_id", "R"),
            _join("event", "E", "R.event_id", "R"),
            _join("info_process", "P", "T.pid", "T"),
            _join("info_thread", "H", "T.tid", "T"),
        )
    ),
    "kernels": f"SELECT K.id, K.guid, T.tid, {_text('E.category_id', 'E')} AS category, "
    "R.string AS region, S.display_name AS name, K.nid, P.pid,"
    " A.absolute_index AS agent_abs_index, A.logical_index AS agent_log_index, "
    "A.type_index AS agent_type_index, A.type AS agent_type,"
    " S.code_object_id, K.kernel_id, K.dispatch_id, K.stream_id, K.queue_id, Q.name AS queue, "
    'ST.name AS stream, K.start, K."end",'
    ' (K."end" - K.start) AS duration, K.grid_size_x AS grid_x, K.grid_size_y AS grid_y, '
    "K.grid_size_z AS grid_z,"
    " K.workgroup_size_x AS workgroup_x, K.workgroup_size_y AS workgroup_y, "
    "K.workgroup_size_z AS workgroup_z,"
    " K.group_segment_size AS lds_size, K.private_segment_size AS scratch_size, "
    "S.arch_vgpr_count AS vgpr_count, S.accum_vgpr_count,"
    " S.sgpr_count, S.group_segment_size AS static_lds_size, E.stack_id, E.parent_stack_id, "
    "E.correlation_id AS corr_id"
    " FROM rocpd_kernel_dispatch K "
    + " ".join(
        (
            _join("info_agent", "A", "K.agent_id", "K"),
            _join("event", "E", "K.event_id", "K"),
            _join("string", "R", "K.region_name_id", "K"),
            _join("info_kernel_symbol", "S", "K.kernel_id", "K"),
            _join("info_stream", "ST", "K.stream_id", "K", "LEFT JOIN"),
            _join("info_queue", "Q", "K.queue_id", "K", "LEFT JOIN"),
            _join("info_process", "P", "Q.pid", "Q"),
            _join("info_thread", "T", "K.tid", "K"),
        )
    ),
    "memory_copies": f"SELECT M.id, M.guid, {_text('E.category_id', 'E')} AS category, M.nid, "
    'P.pid, T.tid, M.start, M."end",'
    ' (M."end" - M.start) AS duration, S.string AS name, M.stream_id, M.queue_id, M.size, '
    "D.logical_index AS dst_agent_log_index,"
    " D.type AS dst_agent_type, F.logical_index AS src_agent_log_index, "
    "F.type AS src_agent_type, E.stack_id FROM rocpd_memory_copy M "
    + " ".join(
        (
            _join("string", "S", "M.name_id", "M"),
            _join("info_agent", "D", "M.dst_agent_id", "M"),
            _join("info_agent", "F", "M.src_agent_id", "M"),
            _join("event", "E", "M.event_id", "M"),
            _join("info_process", "P", "M.pid", "M"),
            _join("info_thread", "T", "M.tid", "M"),
        )
    ),
    "memory_allocations": f"SELECT M.id, M.guid, {_text('E.category_id', 'E')} AS category, "
    'M.nid, P.pid, T.tid, M.start, M."end", M.type, M.level, '
    "A.logical_index AS agent_log_index, M.address,"
    " M.size, E.stack_id FROM rocpd_memory_allocate M "
    + " ".join(
        (
            _join("info_agent", "A", "M.agent_id", "M", "LEFT JOIN"),
            _join("event", "E", "M.event_id", "M"),
            _join("info_process", "P", "M.pid", "M"),
            _join("info_thread", "T", "M.tid", "M"),
        )
    ),
    "scratch_memory": (
        "SELECT M.id, M.guid, M.nid, P.pid, M.type AS operation, M.start, "
        'M."end", M.size FROM rocpd_memory_allocate M '
    )
    + _join("info_process", "P", "M.pid", "M")
    + " WHERE M.level = 'SCRATCH'",
    "counters_collection": "SELECT MIN(V.id) AS id, V.guid, K.dispatch_id, P.pid, "
    'I.name AS counter_name, SUM(V.value) AS value, K.start, K."end"'
    " FROM rocpd_pmc_event V "
    + " ".join(
        (
            _join("info_pmc", "I", "V.pmc_id", "V"),
            "JOIN rocpd_kernel_dispatch K ON K.event_id = V.event_id AND K.guid = V.guid",
            _join("info_process", "P", "K.pid", "K"),
        )
    )
    + " GROUP BY V.guid, K.dispatch_id, I.name, K.agent_id",
}


def write_rocpd(
    path: Path,
    *programs: Program,
    environment: dict[str, str] | None = None,
    schema: str = "3",
) -> Path:
    """One database; each program is a process with tables of its own, and the views join them."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    guids = [
        f"0000{number:04x}-92cb-72cb-9169-c7e541b1fcdf" for number in range(1, len(programs) + 1)
    ]
    for guid in guids:
        for table, columns in TABLES.items():
            front = "" if table == "metadata" else ", guid TEXT"
            connection.execute(
                f'CREATE TABLE "rocpd_{table}{_suffix(guid)}" (id INTEGER PRIMARY KEY{front}, '
                f"{columns})"
            )
    for table in TABLES:
        union = " UNION ALL ".join(
            f'SELECT * FROM "rocpd_{table}{_suffix(guid)}"' for guid in guids
        )
        connection.execute(f"CREATE VIEW rocpd_{table} AS {union}")
    for view, body in VIEWS.items():
        connection.execute(f"CREATE VIEW {view} AS {body}")
    for guid, program in zip(guids, programs, strict=True):
        _Writer(connection, guid, program).write(environment or {})
    renewed(connection, [_suffix(guid) for guid in guids], schema)
    if schema >= "3.0.2":
        for guid, program in zip(guids, programs, strict=True):
            add_graphs(connection, _suffix(guid), guid, program)
    connection.execute("COMMIT")
    connection.close()
    return path


def _suffix(guid: str) -> str:
    return "_" + guid.replace("-", "_")


class _Writer:
    """Fills the tables of one process."""

    def __init__(self, connection: sqlite3.Connection, guid: str, program: Program) -> None:
        self.connection = connection
        self.guid = guid
        self.program = program
        self.strings: dict[str, int] = {}
        self.events = 0

    def write(self, environment: dict[str, str]) -> None:
        program, node = self.program, 77
        self._rows(
            "metadata",
            [(1, "schema_version", "3"), (2, "uuid", _suffix(self.guid)), (3, "guid", self.guid)],
            guid=False,
        )
        self._rows("info_node", [(node, 1, "m", "Linux", program.host, "6", "1", "x86_64", "")])
        self._rows(
            "info_process",
            [
                (
                    program.pid,
                    node,
                    1,
                    program.pid,
                    1,
                    2,
                    1,
                    2,
                    "./app",
                    msgspec.json.encode(environment).decode(),
                    "{}",
                )
            ],
        )
        cpus = [
            (
                "CPU",
                number,
                number,
                number,
                0,
                f"CPU {number}",
                "",
                "CPU",
                f"CPU {number}",
                "",
                "{}",
            )
            for number in range(program.cpus)
        ]
        gpus = [
            (
                "GPU",
                agent.number,
                agent.number,
                index,
                0,
                agent.name,
                "",
                "AMD",
                agent.product,
                agent.product,
                msgspec.json.encode(agent_record(agent, index)).decode(),
            )
            for index, agent in enumerate(program.agents)
        ]
        self._rows("info_agent", [(row[1], node, program.pid, *row) for row in (*cpus, *gpus)])
        threads = {
            record.tid
            for record in (*program.kernels, *program.calls, *program.copies, *program.allocations)
        }
        self._rows(
            "info_thread",
            [(tid, node, 1, program.pid, tid, None, None, None, "{}") for tid in sorted(threads)],
        )
        self._rows(
            "info_queue",
            [
                (queue, node, program.pid, f"Queue {queue}", "{}")
                for queue in sorted({0, *(k.queue for k in program.kernels)})
            ],
        )
        self._rows(
            "info_stream",
            [
                (stream, node, program.pid, f"Stream {stream}", "{}")
                for stream in sorted({0, *(k.stream for k in program.kernels)})
            ],
        )
        self._rows(
            "info_kernel_symbol",
            [
                (
                    s.number,
                    node,
                    program.pid,
                    1,
                    f"{s.name}.kd",
                    s.name,
                    s.static_lds,
                    0,
                    s.sgpr,
                    s.vgpr,
                    s.accum_vgpr,
                    "{}",
                )
                for s in program.symbols
            ],
        )
        self._kernels(node)
        self._rows(
            "memory_copy",
            [
                (
                    number,
                    node,
                    program.pid,
                    c.tid,
                    c.start,
                    c.end,
                    self._string(f"MEMORY_COPY_{c.direction}"),
                    c.target,
                    0,
                    c.source,
                    0,
                    c.bytes,
                    0,
                    c.stream,
                    None,
                    self._event("MEMORY_COPY", c.correlation),
                    "{}",
                )
                for number, c in enumerate(program.copies, 1)
            ],
        )
        self._rows(
            "memory_allocate",
            [
                (
                    number,
                    node,
                    program.pid,
                    a.tid,
                    a.agent,
                    a.kind,
                    a.level,
                    a.start,
                    a.end,
                    a.address,
                    a.bytes,
                    None,
                    None,
                    self._event(
                        "SCRATCH_MEMORY" if a.level == "SCRATCH" else "MEMORY_ALLOCATION",
                        a.correlation,
                    ),
                    "{}",
                )
                for number, a in enumerate(program.allocations, 1)
            ],
        )
        self._calls(node)
        self._rows("string", [(number, text) for text, number in self.strings.items()])

    def _kernels(self, node: int) -> None:
        program = self.program
        empty = self._string("")
        counters = {
            name: number
            for number, name in enumerate(
                sorted(
                    {name for k in program.kernels for name, _ in k.counters}
                    | {name for name, _ in program.loose}
                ),
                1,
            )
        }
        self._rows(
            "info_pmc",
            [(number, node, program.pid, 2, name, name, "{}") for name, number in counters.items()],
        )
        values = []
        rows = []
        for k in program.kernels:
            event = self._event("KERNEL_DISPATCH", k.correlation)
            rows.append(
                (
                    k.dispatch,
                    node,
                    program.pid,
                    k.tid,
                    k.agent,
                    k.symbol,
                    k.dispatch,
                    k.queue,
                    k.stream,
                    k.start,
                    k.end,
                    k.scratch,
                    k.lds,
                    *k.size,
                    *k.grid,
                    empty,
                    event,
                    "{}",
                )
            )
            values += [
                (event, counters[name], value, "{}")
                for name, parts in k.counters
                for value in parts
            ]
        values += [
            (self._event("COUNTER_COLLECTION", 0), counters[name], value, "{}")
            for name, value in program.loose
        ]
        self._rows("kernel_dispatch", rows)
        self._rows("pmc_event", [(number, *row) for number, row in enumerate(values, 1)])

    def _calls(self, node: int) -> None:
        """Calls without length are samples on a track that is called after their category, as the
        tool writes them.
        """
        regions, samples, tracks = [], [], {}
        for c in self.program.calls:
            extra = msgspec.json.encode({"message": c.message}).decode() if c.message else "{}"
            domain = f"{c.domain}_EXT" if c.domain.startswith("HIP") else c.domain
            event = self._event(domain, c.correlation, extra)
            if c.start != c.end:
                regions.append(
                    (
                        c.correlation,
                        node,
                        self.program.pid,
                        c.tid,
                        c.start,
                        c.end,
                        self._string(c.name),
                        event,
                        "{}",
                    )
                )
                continue
            track = tracks.setdefault((c.tid, domain), len(tracks) + 1)
            samples.append((c.correlation, track, c.start, event, "{}"))
        self._rows("region", regions)
        self._rows("sample", samples)
        self._rows(
            "track",
            [
                (number, node, self.program.pid, tid, self._string(domain), "{}")
                for (tid, domain), number in tracks.items()
            ],
        )

    def _event(self, category: str, correlation: int, extra: str = "{}") -> int:
        self.events += 1
        self._rows(
            "event", [(self.events, self._string(category), correlation, 0, 0, "{}", "{}", extra)]
        )
        return self.events

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings) + 1)

    def _rows(self, table: str, rows: Iterable[Sequence[object]], *, guid: bool = True) -> None:
        given = [(row[0], self.guid, *row[1:]) if guid else tuple(row) for row in rows]
        if given:
            marks = ", ".join("?" * len(given[0]))
            self.connection.executemany(
                f'INSERT INTO "rocpd_{table}{_suffix(self.guid)}" VALUES ({marks})', given
            )
