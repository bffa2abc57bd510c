"""Files that hold one planted secret each, in every form that tools and programs leave."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from tests.secrets.planted.kinds import Kind

Write = Callable[[Path, Kind, str], None]


def text(path: Path, kind: Kind, value: str) -> None:
    path.write_text(f"first line\n{kind.variable}={value}\nlast line\n")


def setting(path: Path, kind: Kind, value: str) -> None:
    path.write_text(f'[main]\n  x = 1\n  {kind.variable} = "{value}"\n')


def as_json(path: Path, kind: Kind, value: str) -> None:
    path.write_text(json.dumps({"n": 1, "env": {kind.variable: value}, "events": [1, 2]}))


def json_in_json(path: Path, kind: Kind, value: str) -> None:
    path.write_text(json.dumps({"environment": json.dumps({kind.variable: value}), "n": 1}))


def compressed(path: Path, kind: Kind, value: str) -> None:
    path.write_bytes(gzip.compress(f"a\n{kind.variable}={value}\nb\n".encode()))


def table(path: Path, kind: Kind, value: str) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["name", "value", "n"], ["x", "y", 1], [kind.variable, value, 2]])
    path.write_text(out.getvalue())


def _database(path: Path, cells: list[tuple[object, object]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE anything (name TEXT, value TEXT UNIQUE, n INTEGER)")
        connection.executemany("INSERT INTO anything VALUES (?, ?, 7)", cells)


def database_text(path: Path, kind: Kind, value: str) -> None:
    _database(path, [("x", "y"), (kind.variable, value)])


def database_blob(path: Path, kind: Kind, value: str) -> None:
    _database(path, [("x", "y"), ("note", f"{kind.variable}={value}".encode())])


def database_packed_blob(path: Path, kind: Kind, value: str) -> None:
    _database(path, [("x", gzip.compress(f"{kind.variable}={value}\n".encode()))])


def parquet(path: Path, kind: Kind, value: str) -> None:
    pq.write_table(pa.table({"name": ["x", kind.variable], "value": ["y", value]}), path)


def pftrace(path: Path, kind: Kind, value: str) -> None:
    trace = Trace()
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id, packet.timestamp = 1, 5
    packet.track_event.name = "step"
    packet.track_event.debug_annotations.add(name=kind.variable, string_value=value)
    path.write_bytes(trace.SerializeToString())


def page(path: Path, kind: Kind, value: str) -> None:
    path.write_text(
        f"<html><body><table><tr><td>{kind.variable}</td><td>{html.escape(value)}</td></tr>"
        "</table></body></html>"
    )


def manifest(path: Path, kind: Kind, value: str) -> None:
    said = {"argv": ["python", f"--{kind.variable}", value], "passes": [{"env": {"PATH": "/bin"}}]}
    path.write_text(json.dumps(said, indent=1))


def environment(path: Path, kind: Kind, value: str) -> None:
    path.write_bytes(f"PATH=/bin\0{kind.variable}={value}\0HOME=/x\0".encode())


def command_line(path: Path, kind: Kind, value: str) -> None:
    path.write_bytes(
        b"\0".join([b"python", f"--{kind.variable}".encode(), value.encode(), b"-v\0"])
    )


def shell(path: Path, kind: Kind, value: str) -> None:
    path.write_text(f"+ srun python x.py --{kind.variable} {shlex.quote(value)} --epochs 3\n")


def log(path: Path, kind: Kind, value: str) -> None:
    path.write_text(
        f"2026-01-01 12:00:00,123 INFO start\n2026-01-01 DEBUG {kind.variable}: {value}\n"
    )


CONTAINERS: dict[str, tuple[str, Write]] = {
    "text": ("a.txt", text),
    "settings": ("a.ini", setting),
    "JSON": ("a.json", as_json),
    "JSON in JSON": ("b.json", json_in_json),
    "gz": ("a.txt.gz", compressed),
    "CSV": ("a.csv", table),
    "SQLite text": ("t.db", database_text),
    "SQLite blob": ("b.db", database_blob),
    "SQLite gz blob": ("z.db", database_packed_blob),
    "Parquet": ("a.parquet", parquet),
    "pftrace": ("a.pftrace", pftrace),
    "HTML": ("a.html", page),
    "manifest": ("manifest.json", manifest),
    "environment": ("environ", environment),
    "command line": ("cmdline", command_line),
    "shell": ("job.log", shell),
    "log": ("a.log", log),
}
