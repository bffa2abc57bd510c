"""A record whose times are 0 and 0 has none, in every format: it counts, and lies nowhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from profharness import readers
from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv
from profharness.trace.columns.table import NULL
from profharness.trace.model import Copies, Kernels, Trace
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import write_csv, write_json
from tests.fakes.rocprofv3_program import Program, program
from tests.readers.kineto.kineto_files import document, event, kernel, launch, write

_FORMS: dict[str, Callable[[Path, Program], Trace]] = {
    "csv": lambda folder, given: rocprofv3_csv.read_set(write_csv(folder, given, "7.0")),
    "json": lambda folder, given: readers.read(write_json(folder / "7_results.json", given)),
    "rocpd": lambda folder, given: readers.read(write_rocpd(folder / "7_results.db", given)),
}


def times(table: Kernels | Copies) -> list[tuple[int, int]]:
    return sorted(zip(table.start_ns.tolist(), table.dur_ns.tolist(), strict=True))


@pytest.mark.parametrize("form", list(_FORMS))
def test_rocprofv3(tmp_path: Path, form: str) -> None:
    whole = program(3, 12, counters=False)
    lost = replace(
        whole,
        kernels=tuple(
            replace(one, start=0, end=0) if row in (4, 9) else one
            for row, one in enumerate(whole.kernels)
        ),
        copies=(replace(whole.copies[0], start=0, end=0), *whole.copies[1:]),
        calls=(replace(whole.calls[0], start=0, end=0), *whole.calls[1:]),
    )
    (tmp_path / "whole").mkdir()
    (tmp_path / "lost").mkdir()
    before = _FORMS[form](tmp_path / "whole", whole)
    trace = _FORMS[form](tmp_path / "lost", lost)
    expected = [
        (one.start, one.end - one.start)
        for row, one in enumerate(whole.kernels)
        if row not in (4, 9)
    ]
    assert times(trace.kernels) == sorted([(NULL, 0)] * 2 + expected)
    assert times(trace.copies) == sorted(
        [(NULL, 0), *((one.start, one.end - one.start) for one in whole.copies[1:])]
    )
    # a call of the host is needed for its place alone
    assert len(trace.api) + len(trace.marks) == len(before.api) + len(before.marks) - 1
    told = [p.message for p in trace.problems if p.count == 1 and "left out" in p.message]
    assert any("times of 0 and 0" in one or "shorter than" in one for one in told), told


@pytest.mark.parametrize("base", [{}, {"baseTimeNanoseconds": 1_700_000_000_000_000_000}])
def test_kineto(tmp_path: Path, base: dict[str, int]) -> None:
    zero = base.get("baseTimeNanoseconds", 0)
    events = [
        kernel("a", 10, 5, correlation=1),
        kernel("b", 0, 0, correlation=2),
        kernel("at the base", 0, 3, correlation=3),
        kernel("no length", 40, 0, correlation=4),
        event("gpu_memcpy", "Memcpy HtoD", 0, 0, device=0, stream=7, correlation=5),
        *(launch("cudaLaunchKernel", number, 1, number) for number in range(1, 6)),
    ]
    trace = readers.read(write(tmp_path / "a.json", document(events, **base)))
    assert times(trace.kernels) == [
        (NULL, 0),
        (zero, 3000),
        (zero + 10_000, 5000),
        (zero + 40_000, 0),
    ]
    assert times(trace.copies) == [(NULL, 0)]
    assert (trace.kernels.correlation != NULL).all()


_HEAD = '"Index","KernelName","gpu-id","queue-id","pid","tid","grd","wgr","BeginNs","EndNs"\n'


def test_rocprof_v1(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(
        f'{_HEAD}0,"k",4,0,7,8,64,64,1000,1500\n1,"k",4,0,7,8,64,64,0,0\n2,"k",4,0,7,8,64,64,,\n'
    )
    trace = readers.read(path)
    assert times(trace.kernels) == [(NULL, 0), (1000, 500)]
    assert [p.count for p in trace.problems if "no readable begin" in p.message] == [1]
    (old := tmp_path / "results.json").write_text(
        '{"traceEvents":[{"ph":"X","name":"k","pid":10,"tid":0,"ts":"0","dur":"0","args":'
        '{"BeginNs":"0","EndNs":"0","dev-id":"4","queue-id":"0"}},{"ph":"X","name":"k","pid":10,'
        '"tid":0,"ts":"1","dur":"2","args":{"BeginNs":"1000","EndNs":"3000","dev-id":"4",'
        '"queue-id":"0"}},{"args":{"name":"GPU4"},"ph":"M","pid":10,"name":"process_name",'
        '"sort_index":3}]}'
    )
    assert times(readers.read(old).kernels) == [(NULL, 0), (1000, 2000)]
