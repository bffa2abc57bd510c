"""Secrets where a file keeps them apart or packed: each is removed, or what was not looked at is
said.
"""

from __future__ import annotations

import bz2
import gzip
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from profharness.secrets import cells
from profharness.secrets import scrub as scrubbing

TOKEN = "ghp_" + "a1B2" * 9
NAMED = "0a1b2c3d" * 5


def database(path: Path, rows: list[tuple[object, object]], encoding: str = "UTF-8") -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE anything (k, v)")
        connection.executemany("INSERT INTO anything VALUES (?, ?)", rows)
    return path


def rows_of(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM anything").fetchall()


def scrubbed(path: Path) -> tuple[int, list[str]]:
    left: list[str] = []
    return scrubbing.scrub(path, left).total(), left


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_database_of_utf16_loses_its_secrets_and_nothing_else(
    tmp_path: Path, encoding: str
) -> None:
    path = database(
        tmp_path / "a.db", [("naïve 令", f"see {TOKEN}!"), ("WANDB_API_KEY", NAMED)], encoding
    )
    assert scrubbed(path) == (2, [])
    mark = "[removed by profharness]"
    assert rows_of(path) == [("naïve 令", f"see {mark}!"), ("WANDB_API_KEY", mark)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA encoding").fetchone() == (encoding,)


def test_a_value_beside_its_name_is_found_under_any_name_of_a_column(tmp_path: Path) -> None:
    rows: list[tuple[object, object]] = [
        ("WANDB_API_KEY", NAMED),
        ("sample_token", "sample_token_v2.kd"),
        ("password", "enter it 2 times"),
        ("max_new_tokens", NAMED),
    ]
    path = database(tmp_path / "a.db", rows)
    assert scrubbed(path) == (1, [])
    assert rows_of(path)[1:] == rows[1:]


def test_packed_blobs_are_looked_into_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"see {TOKEN}".encode()
    two = gzip.compress(b"first ") + gzip.compress(text)
    path = database(tmp_path / "a.db", [(zlib.compress(text), two)])
    assert scrubbed(path) == (2, [])
    ((small, members),) = rows_of(path)
    assert isinstance(small, bytes)
    assert isinstance(members, bytes)
    assert zlib.decompress(small) == b"see [removed by profharness]"
    assert gzip.decompress(members) == b"first see [removed by profharness]"

    monkeypatch.setattr(cells, "_LARGEST_UNPACKED", 1000)
    large = gzip.compress(b"x" * 2000 + text)
    _, left = scrubbed(database(tmp_path / "b.db", [(large, bz2.compress(text))]))
    assert [part.partition(": ")[2] for part in left] == [
        "blobs in anything.k that are packed as gzip of too much",
        "blobs in anything.v that are packed as bzip2",
    ]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([TOKEN.encode()], pa.binary(len(TOKEN))),
        pa.array([TOKEN], pa.string_view()),
        pa.array([[(TOKEN, "x")]], pa.map_(pa.string(), pa.string())),
    ],
    ids=["fixed length", "view", "key of a map"],
)
def test_parquet_columns_of_every_kind_of_text(tmp_path: Path, column: pa.Array) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": column}), path)
    assert scrubbed(path) == (1, [])
    assert TOKEN not in str(pq.read_table(path).to_pylist())
    assert TOKEN.encode() not in path.read_bytes()
    assert pq.read_table(path).schema.field("v").type == column.type


def test_names_and_notes_of_parquet_columns_are_told(tmp_path: Path) -> None:
    for number, field in enumerate(
        (pa.field(TOKEN, pa.int64()), pa.field("v", pa.int64(), metadata={"note": TOKEN}))
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table([pa.array([1])], schema=pa.schema([field])), path)
        found, left = scrubbed(path)
        assert (found, len(left)) == (0, 1)
        assert TOKEN not in left[0]


def test_a_long_text_of_a_trace_is_looked_into(tmp_path: Path) -> None:
    trace = Trace()
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id, packet.timestamp = 1, 5
    packet.track_event.name = "step"
    packet.track_event.debug_annotations.add(
        name="script", string_value="x = 1\n" * 20000 + f"use {TOKEN}\n"
    )
    path = tmp_path / "a.pftrace"
    path.write_bytes(trace.SerializeToString())
    assert scrubbed(path) == (1, [])
    assert TOKEN.encode() not in path.read_bytes()
