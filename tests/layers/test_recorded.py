from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profharness.layers.recorded import holds_counters, holds_kernels
from profharness.rundir.left_files import tail_closes
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import write_csv, write_json
from tests.fakes.rocprofv3_program import program
from tests.fakes.stand_in_files import write_perfetto, write_v1

FULL = program(kernels=3)
EMPTY = replace(FULL, kernels=())
RECORD = {"name": "gemm", "call": 10, "start": 20, "end": 30, "workgroups": 4, "size": 64}


@pytest.mark.parametrize("whole", [FULL, EMPTY], ids=["kernels", "none"])
def test_rocprofv3_files(tmp_path: Path, whole: object) -> None:
    expected = whole is FULL
    made = FULL if expected else EMPTY
    assert holds_kernels(write_rocpd(tmp_path / "a_results.db", made), "rocpd") is expected
    assert (
        holds_kernels(write_json(tmp_path / "a_results.json", made), "rocprofv3-json") is expected
    )
    assert (
        holds_kernels(write_json(tmp_path / "a_results.json.gz", made), "rocprofv3-json")
        is expected
    )
    tables = {
        path.name: holds_kernels(path, "rocprofv3-csv")
        for path in write_csv(tmp_path, made, "6.3", "b_")
    }
    assert tables["b_hip_api_trace.csv"] is False
    assert tables.get("b_kernel_trace.csv", False) is expected


@pytest.mark.parametrize("counted", [True, False])
def test_counters_are_told_apart_from_kernels(tmp_path: Path, counted: bool) -> None:
    made = program(kernels=3, counters=counted)
    assert holds_counters(write_rocpd(tmp_path / "a_results.db", made)) is counted
    assert holds_counters(write_json(tmp_path / "a_results.json", made)) is counted
    assert any(holds_counters(path) for path in write_csv(tmp_path, made, "6.2", "b_")) is counted
    (tmp_path / "c_results.db").write_bytes(b"SQLite format 3" + bytes(100))
    assert not holds_counters(tmp_path / "c_results.db")
    assert not holds_counters(tmp_path / "d_counter_collection.csv")


@pytest.mark.parametrize("kernels", [[RECORD], []], ids=["kernels", "none"])
def test_files_of_the_older_tools(tmp_path: Path, kernels: list[dict[str, object]]) -> None:
    copies = [{"start": 1, "end": 5}]
    write_v1(
        tmp_path / "results.csv", [{"pid": 22222, "kernels": kernels, "copies": copies}], hip=True
    )
    assert holds_kernels(tmp_path / "results.csv", "rocprof") is bool(kernels)
    assert holds_kernels(tmp_path / "results.json", "rocprof-json") is bool(kernels)
    write_perfetto(tmp_path / "perfetto-trace-1.proto", kernels, 1)
    assert holds_kernels(tmp_path / "perfetto-trace-1.proto", "pftrace") is (
        None if kernels else False
    )


def test_what_cannot_be_told_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"not a database")
    assert holds_kernels(path, "rocpd") is None
    assert holds_kernels(tmp_path / "missing.csv", "rocprofv3-csv") is False
    assert holds_kernels(path, "amd-log") is None


def test_a_json_file_that_was_cut_off_is_not_whole(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", FULL)
    assert tail_closes(path)
    path.write_bytes(path.read_bytes()[:-40])
    assert not tail_closes(path)
    path.write_text(',{"args":{"name":"0"},"ph":"M"}\n')
    assert not tail_closes(path)
    assert not tail_closes(tmp_path / "missing.json")
