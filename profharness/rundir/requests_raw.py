"""The raw requests of one level as the load generator writes them, and the executions that served
them.

`requests-<k>.i64` of client process k holds little-endian int64 rows of 8: number, intended, sent,
done, items, status, think time, server. `executions-<pid>.i64` of a server holds rows of 8: number,
start, end, items, requests, instance, first row in the members file, model; `members-<pid>.i64` one
request number for each request of each execution, in order (-1 where it carried none). Times are
CLOCK_MONOTONIC ns. A request number is `k * 2**40 + number`. A cut last row is dropped and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.rundir.foreign.limits import RAW_BYTES, WHOLE
from profharness.rundir.foreign.small_files import read_file
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I64,
    ClockDomain,
    Marks,
    Problem,
    Requests,
    Source,
    Strings,
    Trace,
)

COLUMNS = 8
SEQUENCE, INTENDED, SENT, DONE, ITEMS, STATUS, THINK, SERVER = range(COLUMNS)
NUMBER, START, END, EXEC_ITEMS, EXEC_REQUESTS, INSTANCE, FIRST_MEMBER, MODEL = range(COLUMNS)
ANSWERED, FAILED, TIMED_OUT, CUT_OFF = range(4)
CLIENT_BITS = 40
_DIGITS = 10  # no client and no process number has as many
SOURCE = Source(path="", format="requests", clock=ClockDomain.MONOTONIC, has_host_calls=False)


@dataclass(frozen=True, eq=False)
class Executions:
    """What one server process ran: `rows` of 8 columns, `members` the numbers of the requests in
    them.
    """

    pid: int
    rows: I64
    members: I64


@dataclass(frozen=True, eq=False)
class RawLevel:
    """One level: request rows of all clients by time sent, each client's number beside them, and
    the servers' executions.
    """

    rows: I64
    client: I64
    executions: tuple[Executions, ...]
    cut: int = 0

    @property
    def numbers(self) -> I64:
        """The request numbers, unique over the clients."""
        return (self.client << CLIENT_BITS) + self.rows[:, SEQUENCE]


def read_level(folder: Path) -> RawLevel:
    """All raw files of a point's folder. Raises InputError where there is none, or one cannot be
    read.
    """
    paths = sorted(folder.glob("requests-*.i64"))
    if not paths:
        raise InputError(f"{folder}: no raw requests", "the level may not have been measured")
    parts = [_table(path, COLUMNS) for path in paths]
    clients = [
        np.full(len(rows), _number(path), np.int64)
        for path, (rows, _) in zip(paths, parts, strict=True)
    ]
    rows, client = np.concatenate([rows for rows, _ in parts]), np.concatenate(clients)
    order = np.argsort(rows[:, SENT], kind="stable")
    servers = [_executions(path) for path in sorted(folder.glob("executions-*.i64"))]
    cut = sum(part for _, part in parts) + sum(part for _, part in servers)
    return RawLevel(rows[order], client[order], tuple(found for found, _ in servers), cut)


def _executions(path: Path) -> tuple[Executions, int]:
    rows, cut = _table(path, COLUMNS)
    members = path.with_name(path.name.replace("executions", "members"))
    numbers, more = _table(members, 1) if members.exists() else (np.empty((0, 1), np.int64), 0)
    return Executions(_number(path), rows, numbers[:, 0]), cut + more


def _table(path: Path, columns: int) -> tuple[I64, int]:
    """The whole rows, and how many were cut or hold numbers that are no times or counts."""
    try:
        data = read_file(path, RAW_BYTES)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})", "the run directory may be incomplete"
        ) from error
    whole = len(data) // (8 * columns) * 8 * columns
    rows = np.frombuffer(data[:whole], "<i8").astype(np.int64).reshape(-1, columns)
    fit = ((rows <= WHOLE) & (rows >= -WHOLE)).all(axis=1)
    lost = int(whole != len(data)) + len(rows) - int(np.count_nonzero(fit))
    return rows if fit.all() else rows[fit], lost


def _number(path: Path) -> int:
    """The client or process in the file's name."""
    text = path.stem.rpartition("-")[2]
    return int(text) if text.isdecimal() and len(text) < _DIGITS else 0


def to_requests(level: RawLevel, point: int = NULL) -> Requests:
    """The requests with the execution that served each, where the server wrote which; `point` is
    the point's code.
    """
    rows = level.rows
    ok = np.select([rows[:, STATUS] == ANSWERED, rows[:, STATUS] == CUT_OFF], [1, NULL], 0)
    start, compute, execution = _served(level)
    return Requests.build(
        len(rows),
        intended_ns=rows[:, INTENDED],
        sent_ns=rows[:, SENT],
        done_ns=rows[:, DONE],
        think_ns=rows[:, THINK],
        point=point,
        items=rows[:, ITEMS],
        ok=ok,
        client=level.client,
        server_start_ns=start,
        server_compute_ns=compute,
        execution=execution,
        source=0,
    )


def _served(level: RawLevel) -> tuple[I64, I64, I64]:
    """Start and length of the execution of each request, and its number."""
    start, compute, number = (np.full(len(level.rows), NULL, np.int64) for _ in range(3))
    wanted = level.numbers
    for served in level.executions:
        counts = np.clip(served.rows[:, EXEC_REQUESTS], 0, len(served.members))
        # no more members are looked up than there are, whatever the executions say
        counts = np.clip(len(served.members) - (np.cumsum(counts) - counts), 0, counts)
        of = np.repeat(np.arange(len(served.rows)), counts)
        at = (
            np.repeat(served.rows[:, FIRST_MEMBER], counts)
            + np.arange(len(of))
            - np.repeat(np.cumsum(counts) - counts, counts)
        )
        there = (at >= 0) & (at < len(served.members))
        of, members = of[there], served.members[at[there]]
        known = members != NULL
        of, members = of[known], members[known]
        if not len(members):
            continue
        order = np.argsort(members, kind="stable")
        place = np.minimum(np.searchsorted(members[order], wanted), len(members) - 1)
        found = members[order][place] == wanted
        row = served.rows[of[order][place[found]]]
        start[found], compute[found], number[found] = (
            row[:, START],
            row[:, END] - row[:, START],
            row[:, NUMBER],
        )
    return start, compute, number


def to_traces(folder: Path, point: str) -> tuple[Trace, ...]:
    """The requests as one trace, and each server's executions as another; none are aligned. Raises
    InputError as `read_level`.
    """
    level = read_level(folder)
    strings = Strings([point])
    problems = (
        (Problem("warning", str(folder), level.cut, "rows of raw requests were cut and left out"),)
        if level.cut
        else ()
    )
    return (
        Trace(
            sources=(replace(SOURCE, path=str(folder / "requests.i64")),),
            strings=strings,
            requests=to_requests(level, 0),
            problems=problems,
        ),
        *(
            execution_trace(served, folder, point)
            for served in level.executions
            if len(served.rows)
        ),
    )


def executions(folder: Path, point: str) -> tuple[Trace, ...]:
    """The executions alone, where the requests were read from elsewhere."""
    found = [_executions(path)[0] for path in sorted(folder.glob("executions-*.i64"))]
    return tuple(execution_trace(served, folder, point) for served in found if len(served.rows))


def execution_trace(served: Executions, folder: Path, point: str) -> Trace:
    """One mark per execution, named by its batch."""
    strings = Strings()
    rows = served.rows
    shapes, which = np.unique(rows[:, [EXEC_ITEMS, EXEC_REQUESTS]], axis=0, return_inverse=True)
    names = strings.codes(_words(int(items), int(requests)) for items, requests in shapes)
    marks = Marks.build(
        len(rows),
        start_ns=rows[:, START],
        dur_ns=np.maximum(rows[:, END] - rows[:, START], 0),
        name=names[which.reshape(-1)],
        kind=strings.code("execution"),
        point=strings.code(point),
        items=rows[:, EXEC_ITEMS],
        pid=served.pid,
        source=0,
    )
    source = replace(
        SOURCE,
        path=str(folder / f"executions-{served.pid}.i64"),
        format="executions",
        pid=served.pid,
    )
    return Trace(sources=(source,), strings=strings, marks=marks)


def _words(items: int, requests: int) -> str:
    return f"{items} item{'s' * (items != 1)} of {requests} request{'s' * (requests != 1)}"
