"""A value that a damaged table lost, or holds by half, is told: of a table that was cut within its
last field, of fields that are no numbers, and of what lies beside.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.trace.model import Trace
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program

PAGE = 4096
_OPEN = "its last line has no end"
_NO_NUMBER = "values are no numbers"


@pytest.fixture
def rocm(shared: Path) -> Path:
    return shared / "fixtures" / "rocm"


def told(trace: Trace, sentence: str) -> int:
    """How often the problems say so."""
    return sum(problem.count for problem in trace.problems if sentence in problem.message)


def changed(folder: Path, original: Path, old: str, new: str, times: int = 1) -> Path:
    """A copy of a file with another text in its place, at its first `times` occurrences."""
    text = original.read_text()
    assert old in text
    path = folder / original.name
    path.write_text(text.replace(old, new, times))
    return path


@pytest.mark.parametrize(
    "name",
    [
        "rocprofv3/csv/gfx950_bank_test_counter_collection.csv",
        "rocprofv3/readme_snippets/hip_readme_9_kernel_stats.csv",
        "rocprof_v1/kokkos_2021/results.hip_stats.csv",
        "rocprof_v1/mi300a_vecadd/output_vec_add_gpu.csv",
        "rocprof_compute/vcopy_MI300X/SQ_LEVEL_WAVES.csv",
        "rocprof_compute/analyze_csv_MI300X/17.1_Speed-of-Light.csv",
        "rocprof_sys/wall_clock_jacobi_openmp_cxx_a.txt",
        "amd_log_level/rocm5_level4_vadd.log",
        "miopen_log/gfx942_info_pr3522.log",
    ],
)
def test_a_file_that_was_cut_within_its_last_value_says_so(
    rocm: Path, tmp_path: Path, name: str
) -> None:
    whole = (rocm / name).read_bytes()
    path = tmp_path / Path(name).name
    path.write_bytes(whole)
    assert told(readers.read(path), _OPEN) == 0
    path.write_bytes(whole.rstrip()[:-1])
    assert told(readers.read(path), _OPEN) == 1


@pytest.mark.parametrize("lost", ["x", "", "12 34", "8\0"])
def test_a_counter_that_is_no_number_is_told(rocm: Path, tmp_path: Path, lost: str) -> None:
    original = rocm / "rocprofv3" / "docs_samples_0.5.0" / "counter_collection.csv"
    whole = readers.read(original)
    trace = readers.read(changed(tmp_path, original, ",16384", f',"{lost}"'))
    assert told(whole, _NO_NUMBER) == 0
    assert told(trace, _NO_NUMBER) == 1
    assert np.nansum(trace.counters.value) == whole.counters.value.sum() - 16384


def test_a_field_that_is_no_number_loses_itself_and_not_its_column(
    rocm: Path, tmp_path: Path
) -> None:
    """In a table with a column for each counter."""
    original = rocm / "rocprof_v1" / "mi300a_vecadd" / "output_vec_add_gpu.csv"
    header, row, *rest = original.read_text().splitlines(keepends=True)
    path = tmp_path / original.name
    path.write_text("".join((header, row, row.replace("15625000.0000000000", "-"), *rest)))
    counters = len(readers.read(original).counters)
    trace = readers.read(path)
    assert told(trace, _NO_NUMBER) == 1
    assert len(trace.counters) == 2 * counters - 1


@pytest.mark.parametrize(("old", "new"), [("1000000000", "10x"), (",256,", ",25\0,")])
def test_a_size_that_is_no_number_is_told(rocm: Path, tmp_path: Path, old: str, new: str) -> None:
    original = rocm / "rocprof_v1" / "mi300a_vecadd" / "output_vec_add_gpu.csv"
    trace = readers.read(changed(tmp_path, original, old, new))
    assert told(trace, _NO_NUMBER) == 1
    assert trace.kernels.workgroups[0] == -1


def test_a_zero_byte_makes_no_shorter_number(rocm: Path, tmp_path: Path) -> None:
    original = rocm / "rocprofv3" / "readme_snippets" / "hip_readme_9_kernel_stats.csv"
    total = readers.read(original).statistics[0].total_ns
    path = changed(tmp_path, original, f"{total}", f"{total // 10}\0")
    trace = readers.read(path)
    assert all(row.total_ns != total // 10 for row in trace.statistics)
    assert told(trace, "no whole number") == 1


def test_sums_below_zero_are_left_out(rocm: Path, tmp_path: Path) -> None:
    original = rocm / "rocprofv3" / "readme_snippets" / "hip_readme_9_kernel_stats.csv"
    rows = readers.read(original).statistics
    trace = readers.read(changed(tmp_path, original, f"{rows[0].total_ns}", "-5"))
    assert trace.statistics == rows[1:]
    assert told(trace, "no whole number") == 1


def test_one_deviation_that_is_no_number_leaves_the_others(rocm: Path, tmp_path: Path) -> None:
    original = rocm / "rocprofv3" / "readme_snippets" / "hip_readme_9_kernel_stats.csv"
    rows = readers.read(original).statistics
    trace = readers.read(changed(tmp_path, original, "8821.418627", "8821.x"))
    assert [row.std_ns for row in trace.statistics].count(None) == 1
    assert sum(row.std_ns is None for row in rows) == 0
    assert told(trace, _NO_NUMBER) == 1


@pytest.mark.parametrize("agent", ["nan", "1_000", "Agent x", ""])
def test_a_device_of_no_number_is_told(rocm: Path, tmp_path: Path, agent: str) -> None:
    original = rocm / "rocprofv3" / "docs_samples_0.5.0" / "kernel_trace.csv"
    trace = readers.read(changed(tmp_path, original, 'DISPATCH",1,', f'DISPATCH","{agent}",'))
    assert told(trace, "name a device by no number") == 1


@pytest.mark.parametrize(
    ("name", "beside", "sentence"),
    [
        ("rocprof_v1/mi300a_vecadd/results.json", "results.sysinfo.txt", "its end is missing"),
        ("rocprof_v1/mi300a_vecadd/results.db", "results.sysinfo.txt", "its end is missing"),
        ("rocprof_compute/vcopy_MI100/pmc_perf.csv", "sysinfo.csv", "more or fewer fields"),
        (
            "rocprofv3/csv/gfx950_bank_test_counter_collection.csv",
            "gfx950_bank_test_agent_info.csv",
            "more or fewer fields",
        ),
    ],
)
def test_a_cut_file_of_facts_beside_is_told(
    rocm: Path, tmp_path: Path, name: str, beside: str, sentence: str
) -> None:
    original = rocm / name
    path = Path(shutil.copy(original, tmp_path))
    facts = original.with_name(beside).read_bytes()
    (tmp_path / beside).write_bytes(facts)
    assert told(readers.read(path), sentence) == 0
    (tmp_path / beside).write_bytes(facts[: len(facts) * 3 // 4])
    assert told(readers.read(path), sentence) == 1


def test_an_old_page_in_place_of_a_new_one_is_told(rocm: Path, tmp_path: Path) -> None:
    """SQLite reads it without an error: its rows stand twice, and others are gone."""
    pages = bytearray((rocm / "rocprof_v1" / "kokkos_2021" / "results.db").read_bytes())
    path = tmp_path / "results.db"
    path.write_bytes(pages)
    assert told(readers.read(path), "cut or damaged") == 0
    pages[6 * PAGE : 7 * PAGE] = pages[5 * PAGE : 6 * PAGE]
    path.write_bytes(pages)
    assert told(readers.read(path), "out of order") == 1


def test_facts_of_a_device_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, 3))
    assert told(readers.read(path), "facts of a device") == 0
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        (name,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_info_agent_%'"
        ).fetchone()
        count = connection.execute(f"UPDATE {name} SET extdata = '{{\"cu_count\": 30'").rowcount
    assert told(readers.read(path), "facts of a device") == count


def test_a_header_that_names_a_column_twice_is_told(rocm: Path, tmp_path: Path) -> None:
    for name, column in (
        ("rocprofv3/csv/gfx1151_decode_kernel_trace.csv", "Start_Timestamp"),
        ("rocprof_v1/mi300a_vecadd/output_vec_add_gpu.csv", "grd"),
    ):
        lines = (rocm / name).read_text().splitlines()
        path = tmp_path / Path(name).name
        twice = [f"{lines[0]},{column}", *(f"{line},5" for line in lines[1:])]
        path.write_text("\n".join(twice) + "\n")
        whole, trace = readers.read(rocm / name), readers.read(path)
        assert told(whole, "name of another") == 0
        assert told(trace, "name of another") == 1
        assert np.array_equal(whole.kernels.start_ns, trace.kernels.start_ns)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("distributedInfo", {"rank": 2**63, "world_size": 2}),
        ("distributedInfo", {"rank": 0, "world_size": 2**63}),
        ("baseTimeNanoseconds", 2**63),
        ("deviceProperties", [{"id": 0, "name": "A", "numSms": -4}]),
    ],
)
def test_a_number_in_a_head_that_no_column_holds_is_told(
    tmp_path: Path, key: str, value: object
) -> None:
    """A rank of 2**63 became rank 0 of another process."""
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 7}
    document = {"schemaVersion": 1, key: value, "traceEvents": [{**event, "args": {"device": 0}}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    trace = readers.read(path)
    assert len(trace.kernels) == 1
    assert trace.sources[0].rank is None
    assert told(trace, f"unexpected form: {key}") == 1
    assert readers.stated_rank(path) in (None, 0)


def test_the_reason_why_no_event_is_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [' + "[" * 99_999 + "]" * 99_999 + "]}")
    with pytest.raises(InputError, match="event: a value that is no object"):
        readers.read(path)


def test_a_hole_in_the_head_of_a_trace_is_told(shared: Path, tmp_path: Path) -> None:
    """Within quotes it leaves JSON that reads well and lacks a key."""
    packed = (shared / "fixtures" / "kineto" / "mi250_minitoy_rocm6.2.json.gz").read_bytes()
    text = bytearray(gzip.decompress(packed))
    path = tmp_path / "a.json"
    path.write_bytes(text)
    assert told(readers.read(path), "says of itself") == 0
    first = text.index(b'"maxThreadsPerBlock"') + 4
    last = text.index(b'"numSms"') + 4
    text[first:last] = bytes(last - first)
    path.write_bytes(text)
    assert told(readers.read(path), "says of itself") == 1
