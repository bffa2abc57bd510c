from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.rundir import requests, requests_raw
from profharness.trace.columns.table import NULL


def i64(path: Path, rows: list[tuple[int, ...]], tail: bytes = b"") -> None:
    path.write_bytes(b"".join(struct.pack(f"<{len(row)}q", *row) for row in rows) + tail)


def level(folder: Path) -> Path:
    """Two clients, three requests answered in two executions, one failed, one cut off."""
    one = 1 << requests_raw.CLIENT_BITS
    i64(folder / "requests-0.i64", [(0, 90, 100, 300, 2, 0, 5, 0), (1, 290, 310, 600, 2, 1, 5, 0)])
    i64(
        folder / "requests-1.i64",
        [
            (0, 110, 120, 310, 2, 0, 0, 0),
            (1, 305, 320, 520, 2, 0, 0, 0),
            (2, 520, 530, 530, 2, 3, 0, 0),
        ],
    )
    i64(folder / "executions-77.i64", [(0, 150, 250, 4, 2, 0, 0, 0), (1, 400, 500, 2, 1, 0, 2, 0)])
    i64(folder / "members-77.i64", [(one,), (0,), (one + 1,)])
    return folder


def test_requests_are_joined_with_the_executions_that_served_them(tmp_path: Path) -> None:
    found = requests_raw.to_requests(requests_raw.read_level(level(tmp_path)), 0)
    assert found.sent_ns.tolist() == [100, 120, 310, 320, 530]
    assert found.client.tolist() == [0, 1, 0, 1, 1]
    assert found.ok.tolist() == [1, 1, 0, 1, NULL]
    assert found.execution.tolist() == [0, 0, NULL, 1, NULL]
    assert found.server_start_ns.tolist() == [150, 150, NULL, 400, NULL]
    assert found.server_compute_ns.tolist() == [100, 100, NULL, 100, NULL]
    assert found.think_ns.tolist() == [5, 0, 5, 0, 0]


def test_executions_are_marks_of_the_servers_process(tmp_path: Path) -> None:
    served = requests_raw.to_traces(level(tmp_path), "p")[1]
    marks = served.marks
    assert served.strings.decode(marks.name) == ["4 items of 2 requests", "2 items of 1 request"]
    assert set(served.strings.decode(marks.kind)) == {"execution"}
    assert marks.pid.tolist() == [77, 77]
    assert marks.dur_ns.tolist() == [100, 100]
    assert served.sources[0].pid == 77


def test_a_table_holds_what_the_raw_files_held(tmp_path: Path) -> None:
    raw = requests_raw.to_requests(requests_raw.read_level(level(tmp_path)), 0)
    requests.write(raw, tmp_path / requests.NAME)
    trace = requests.read(tmp_path / requests.NAME, "p")
    for name in requests.COLUMNS:
        assert getattr(trace.requests, name).tolist() == getattr(raw, name).tolist()
    assert trace.strings.decode(trace.requests.point) == ["p"] * 5


def test_a_cut_row_is_dropped_and_counted(tmp_path: Path) -> None:
    i64(tmp_path / "requests-0.i64", [(0, 90, 100, 300, 2, 0, 5, 0)], tail=b"\x01\x02\x03")
    (trace,) = requests_raw.to_traces(tmp_path, "p")
    assert len(trace.requests) == 1
    assert [problem.count for problem in trace.problems] == [1]


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no raw requests"):
        requests_raw.read_level(tmp_path)
    (tmp_path / requests.NAME).write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="not a table of requests"):
        requests.read(tmp_path / requests.NAME, "p")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=20), st.randoms())
def test_every_member_finds_its_execution(sizes: list[int], rng: object) -> None:
    """Whatever the batches: each request has the execution that lists it."""
    total = sum(sizes)
    members = list(range(total))
    rng.shuffle(members)  # type: ignore[attr-defined]  # a random.Random
    firsts = np.cumsum([0, *sizes[:-1]])
    rows = np.array(
        [
            (n, 1000 * n, 1000 * n + 10 + n, size, size, 0, first, 0)
            for n, (size, first) in enumerate(zip(sizes, firsts, strict=True))
        ],
        np.int64,
    )
    of = {
        member: n
        for n, (size, first) in enumerate(zip(sizes, firsts, strict=True))
        for member in members[first : first + size]
    }
    sent = np.array([(n, 0, n, n + 1, 1, 0, 0, 0) for n in range(total)], np.int64)
    raw = requests_raw.RawLevel(
        sent,
        np.zeros(total, np.int64),
        (requests_raw.Executions(1, rows, np.array(members, np.int64)),),
    )
    assert requests_raw.to_requests(raw).execution.tolist() == [of[n] for n in range(total)]
