"""Work of one stream on several hardware queues is told apart, and read back as one stream."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from profharness.readers import read
from profharness.trace.model import Copies, Device, Kernels, Source, Stream, Strings, Trace
from profharness.writers.perfetto import write
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode, multiset


def trace() -> Trace:
    """Stream 7 on queues 3 and 4, stream 5 that is a queue's number, and a copy of stream 7."""
    kernels = Kernels.build(
        start_ns=[0, 5, 20, 30], dur_ns=10, name=0, device=0, stream=[0, 0, 1, 0], pid=9, source=0
    ).with_columns(queue=[3, 4, 5, -1])
    copies = Copies.build(start_ns=[50], dur_ns=5, kind=1, device=0, stream=0, pid=9, source=0)
    return Trace(
        (Source("t", "rocpd"),),
        Strings(("k", "h2d")),
        (Device("0", name="AMD Instinct MI300X"),),
        (Stream(0, "7", 9), Stream(0, "5", 9)),
        kernels,
        copies,
    )


def test_queues_are_named_with_their_streams(tmp_path: Path) -> None:
    write(trace(), tmp_path / "m.pftrace")
    got = decode(tmp_path / "m.pftrace")
    assert Counter((e.ts, e.queue) for e in got.gpu) == Counter(
        [
            (0, "queue 3 (stream 7)"),
            (5, "queue 4 (stream 7)"),
            (20, "stream 5"),
            (30, "stream 7"),
            (50, "stream 7"),
        ]
    )
    assert multiset(got.gpu) == Counter(
        [(0, 10, "k"), (5, 10, "k"), (20, 10, "k"), (30, 10, "k"), (50, 5, "h2d")]
    )


def test_they_are_read_back_as_streams(tmp_path: Path) -> None:
    write(trace(), tmp_path / "m.pftrace")
    again = read(tmp_path / "m.pftrace")
    assert sorted(stream.name for stream in again.streams) == ["5", "7"]
    names = [again.streams[code].name for code in again.kernels.stream.tolist()]
    assert sorted(zip(again.kernels.start_ns.tolist(), names, strict=True)) == [
        (0, "7"),
        (5, "7"),
        (20, "5"),
        (30, "7"),
    ]


@pytest.mark.slow
def test_a_trace_processor_has_a_track_for_each(tmp_path: Path, load_trace: LoadTrace) -> None:  # noqa: F811
    write(trace(), tmp_path / "m.pftrace")
    client = load_trace(tmp_path / "m.pftrace")
    assert errors(client) == []
    rows = client.query(
        "SELECT t.name AS queue, count(*) AS n FROM gpu_slice g JOIN gpu_track t "
        "ON g.track_id = t.id GROUP BY t.name"
    )
    assert {r.queue: r.n for r in rows} == {
        "queue 3 (stream 7)": 1,
        "queue 4 (stream 7)": 1,
        "stream 5": 1,
        "stream 7": 2,
    }
