"""Processes and threads of a merged trace are called what their sources call them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profharness.readers import read
from profharness.trace import merge
from profharness.trace.model import Named, Trace
from profharness.writers.perfetto import write
from tests.conftest import shared_path
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode
from tests.writers.rich.kineto_file import write_kineto

ROCM = shared_path("fixtures/rocm/rocprofv3")


def process_names(path: Path) -> set[str]:
    return {t.process.process_name for t in decode(path).tracks.values() if t.HasField("process")}


def thread_names(path: Path) -> set[str]:
    return {t.thread.thread_name for t in decode(path).tracks.values() if t.HasField("thread")}


def of_job(trace: Trace, host: str, rank: int) -> Trace:
    return replace(trace, sources=(replace(trace.sources[0], host=host, rank=rank),))


@pytest.mark.slow
def test_a_trace_processor_finds_the_recorded_names(tmp_path: Path, load_trace: LoadTrace) -> None:  # noqa: F811
    write(read(write_kineto(tmp_path / "t.json")), tmp_path / "m.pftrace")
    client = load_trace(tmp_path / "m.pftrace")
    assert errors(client) == []
    rows = client.query(
        "SELECT p.name AS process, t.name AS thread, t.tid AS tid FROM thread t JOIN process p "
        "USING (upid) WHERE p.name IS NOT NULL AND t.name IS NOT NULL"
    )
    assert {(r.process, r.thread, r.tid) for r in rows} == {
        ("python3", "python3", 700),
        ("python3", "pt_autograd_0", 731),
    }


def test_ranks_and_hosts_stand_before_the_recorded_name(tmp_path: Path) -> None:
    one = read(write_kineto(tmp_path / "t.json"))
    two = merge.merge([of_job(one, "n0", 0), of_job(one, "n1", 1)])
    write(two, tmp_path / "m.pftrace")
    assert process_names(tmp_path / "m.pftrace") == {
        "t.json · rank 0 · n0 · python3",
        "t.json · rank 1 · n1 · python3",
    }
    assert thread_names(tmp_path / "m.pftrace") == {"python3", "pt_autograd_0"}


def test_equal_numbers_of_two_hosts_have_their_own_names(tmp_path: Path) -> None:
    one = read(write_kineto(tmp_path / "t.json"))
    other = replace(one, sources=(replace(one.sources[0], names=(Named(700, -1, "julia"),)),))
    passes = [
        replace(part, sources=(replace(part.sources[0], pass_name="torch"),))
        for part in (of_job(one, "n0", 0), of_job(other, "n1", 1))
    ]
    write(merge.merge(passes), tmp_path / "m.pftrace")
    assert process_names(tmp_path / "m.pftrace") == {
        "torch · rank 0 · n0 · python3",
        "torch · rank 1 · n1 · julia",
    }


def test_characters_without_a_shape_are_shown(tmp_path: Path) -> None:
    one = read(write_kineto(tmp_path / "t.json"))
    hostile = replace(one.sources[0], names=(Named(700, -1, "a\u202eb\x1b[31m\n"),))
    write(replace(one, sources=(hostile,)), tmp_path / "m.pftrace")
    assert process_names(tmp_path / "m.pftrace") == {"a\\u202eb\\u001b[31m\\n"}


def test_names_survive_a_second_merge(tmp_path: Path) -> None:
    write(read(write_kineto(tmp_path / "t.json")), tmp_path / "a.pftrace")
    again = read(tmp_path / "a.pftrace")
    write(again, tmp_path / "b.pftrace")
    assert process_names(tmp_path / "b.pftrace") == {"python3"}
    assert thread_names(tmp_path / "b.pftrace") == {"python3", "pt_autograd_0"}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("rocpd/mi300x_ck_gemm_28_results.db.gz", "tile_example_batched_gemm"),
        ("json/908_results.json.gz", "python3.10 train.py"),
        ("pftrace/mi300a_3648722_results.pftrace", "julia"),
    ],
)
@pytest.mark.usefixtures("shared")
def test_tools_of_rocm_name_their_processes(tmp_path: Path, file: str, name: str) -> None:
    write(read(ROCM / file), tmp_path / "m.pftrace")
    assert process_names(tmp_path / "m.pftrace") == {name}
