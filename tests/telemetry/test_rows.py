"""How rows are made: rates per source, failing sources, the files they go to."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.rundir import telemetry
from profharness.telemetry.files import FLUSH_BYTES, AppendFile, write_json
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sampler import MAX_FAILURES, Rows
from profharness.telemetry.sources import Column, Missing, SampledDevice

TENTH = 100_000_000


class Counting:
    """Counts its reads; fails on those in `broken`."""

    devices: tuple[SampledDevice, ...] = ()
    columns = (
        Column("memory_tree", "B", "instant"),
        Column("cpu_tree", "cores", "counter", 1.0, "d"),
    )

    def __init__(self, name: str, max_hz: float, broken: range = range(0)) -> None:
        self.name = name
        self.max_hz = max_hz
        self.reads = 0
        self._broken = broken

    def probe(self) -> tuple[Missing, ...]:
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        self.reads += 1
        row[at] = self.reads
        if self.reads - 1 in self._broken:
            raise RuntimeError("device lost")
        row[at + 1] = float(self.reads)


def _rows(path: Path, *sources: Counting) -> tuple[Rows, AppendFile]:
    layout = Layout(sources)
    file = AppendFile(str(path))
    file.append(encode_header(layout, {"host": "h", "hz": 10.0}))
    return Rows(layout, TENTH, file), file


def test_each_source_is_read_at_its_own_rate_in_spite_of_jitter(tmp_path: Path) -> None:
    fast, slow, odd = Counting("fast", 1000.0), Counting("slow", 1.0), Counting("odd", 5.0)
    rows, file = _rows(tmp_path / "f", fast, slow, odd)
    for tick in range(101):
        rows.record(tick * TENTH + (tick * 7919) % 30_000_000, 0)
    file.close()
    assert (fast.reads, slow.reads) == (101, 11)
    assert 45 <= odd.reads <= 51
    trace = telemetry.read(tmp_path / "f")
    assert (
        int((trace.samples.metric == trace.strings.find("memory_tree")).sum())
        == fast.reads + slow.reads + odd.reads
    )


def test_a_failing_source_is_counted_then_left_alone_and_harms_no_other(tmp_path: Path) -> None:
    good, flaky, dead = (
        Counting("good", 1000.0),
        Counting("flaky", 1000.0, range(3, 5)),
        Counting("dead", 1000.0, range(5, 1000)),
    )
    rows, file = _rows(tmp_path / "f", good, flaky, dead)
    for tick in range(40):
        rows.record(tick * TENTH, missed=2 if tick == 7 else 0)
    file.close()
    assert (rows.count, rows.missed) == (40, 2)
    assert (good.reads, flaky.reads, dead.reads) == (40, 40, 5 + MAX_FAILURES)
    assert {name: (f.total, f.last) for name, f in rows.failures.items()} == {
        "good": (0, ""),
        "flaky": (2, "RuntimeError: device lost"),
        "dead": (MAX_FAILURES, "RuntimeError: device lost"),
    }
    trace = telemetry.read(tmp_path / "f")
    # a failed read leaves no value behind, not even of the column that was filled before it failed
    assert int((trace.samples.metric == trace.strings.find("memory_tree")).sum()) == 40 + 38 + 5


def test_appended_bytes_reach_the_kernel_on_flush_and_when_many(tmp_path: Path) -> None:
    path = tmp_path / "f"
    file = AppendFile(str(path))
    file.append(b"abc")
    assert path.read_bytes() == b""
    file.flush()
    assert path.read_bytes() == b"abc"
    file.append(b"x" * FLUSH_BYTES)
    assert path.stat().st_size == 3 + FLUSH_BYTES
    file.close()
    with pytest.raises(FileExistsError):
        AppendFile(str(path))


def test_json_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    write_json(str(path), {"a": 1})
    write_json(str(path), {"a": 2})
    assert path.read_text() == '{"a": 2}\n'
    assert list(tmp_path.iterdir()) == [path]
