"""A value of a wrong type, or one that cannot be, is told once with its count, and never taken for
something else.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.readers.rocprof_compute import folder as workload_folder
from profharness.trace.model import Problem, Trace
from profharness.trace.wanted import Wanted
from tests.fakes.amd_tools.compute_files import write_analysis_database
from tests.readers.kineto.kineto_files import document, kernel, launch, op, write

ODD = "no numbers, or none that can be"


def told(trace: Trace, sentence: str) -> list[Problem]:
    return [problem for problem in trace.problems if sentence in problem.message]


def kineto(folder: Path, odd: list[Any], wanted: Wanted = Wanted.ALL) -> Trace:
    """Twenty kernels as they should be, and these events."""
    good = [
        event
        for at in range(1, 21)
        for event in (
            op("aten::mm", 10 * at, 5, at, tid=100),
            launch("cudaLaunchKernel", 10 * at + 1, 1, at),
            kernel(
                "gemm",
                10 * at + 3,
                4,
                correlation=at,
                grid=[4, 1, 1],
                block=[64, 1, 1],
                registers_per_thread=32,
            ),
        )
    ]
    path = write(folder / "a.json", document([*good, *odd]))
    return readers.read(path, wanted=wanted)


def test_a_file_without_such_values_is_told_nothing(tmp_path: Path) -> None:
    trace = kineto(tmp_path, [])
    assert not told(trace, ODD)
    assert not told(trace, "by no number")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("registers per thread", "many"),
        ("registers per thread", "1_0"),
        ("registers per thread", "\u0661\u0662"),
        ("registers per thread", "0x10"),
        ("registers per thread", ""),
        ("registers per thread", 2.5),
        ("registers per thread", -5),
        ("registers per thread", 2**40),
        ("shared memory", -4096),
        ("correlation", "x"),
        ("External id", 1.5),
        ("grid", [4, 1, 1, 1]),
        ("grid", []),
        ("grid", [-4, 1, 1]),
        ("grid", [4.5, 1, 1]),
        ("grid", ["4", 1, 1]),
        ("grid", "4,1,1"),
        ("block", [0, 1, 1]),
        ("block", 64),
    ],
)
def test_an_argument_of_a_kernel_that_cannot_be_is_told(
    tmp_path: Path, argument: str, value: Any
) -> None:
    odd = kernel("odd", 500, 4)
    odd["args"][argument] = value
    trace = kineto(tmp_path, [odd])
    (problem,) = told(trace, ODD)
    assert (problem.severity, problem.count) == ("warning", 1)
    assert f"({argument} 1)" in problem.message
    row = trace.kernels.take(trace.kernels.start_ns == 500_000)
    assert (row.vgpr.tolist(), row.lds_bytes.tolist()) == ([-1], [-1])
    assert (row.workgroups.tolist(), row.workgroup_size_x.tolist()) == ([-1], [-1])


@pytest.mark.parametrize("whole", [32, 32.0, "32", " 32", -1, None])
def test_numbers_as_text_and_what_is_not_recorded_are_no_fault(tmp_path: Path, whole: Any) -> None:
    trace = kineto(tmp_path, [kernel("k", 500, 4, registers_per_thread=whole)])
    assert not told(trace, ODD)


@pytest.mark.parametrize(("key", "value"), [("pid", "x"), ("pid", -7), ("pid", 1.5), ("tid", "x")])
def test_a_process_or_thread_that_is_no_number_is_told(
    tmp_path: Path, key: str, value: Any
) -> None:
    odd = launch("cudaMalloc", 500, 1, 77)
    odd[key] = value
    (problem,) = told(kineto(tmp_path, [odd]), ODD)
    assert (problem.count, f"({key} 1)" in problem.message) == (1, True)
    negative = launch("cudaMalloc", 500, 1, 77, tid=-1201)  # as torch writes threads
    assert not told(kineto(tmp_path, [negative]), ODD)


@pytest.mark.parametrize("wanted", [Wanted.ALL, Wanted.DEVICES, Wanted.TIMES])
@pytest.mark.parametrize("device", ["x", -3, 1.5, "\u0661", "1_0", ""])
def test_a_device_that_is_no_number_is_told(tmp_path: Path, device: Any, wanted: Wanted) -> None:
    odd = [kernel("odd", 500 + at, 1, device=device) for at in range(3)]
    (problem,) = told(kineto(tmp_path, odd, wanted), "devices by no number")
    assert (problem.severity, problem.count) == ("warning", 3)
    assert repr(str(device)) in problem.message


@pytest.mark.parametrize("stream", ["x", -3, 1.5])
def test_a_stream_that_is_no_number_is_told(tmp_path: Path, stream: Any) -> None:
    (problem,) = told(kineto(tmp_path, [kernel("odd", 500, 1, stream=stream)]), "streams by no")
    assert problem.count == 1


@pytest.mark.parametrize("order", [(0, 0.0), (0.0, 0)])
def test_a_device_is_one_however_its_number_is_written(
    tmp_path: Path, order: tuple[Any, Any]
) -> None:
    path = write(
        tmp_path / "b.json",
        document([kernel("k", 10 * at, 4, device=one) for at, one in enumerate(order)]),
    )
    assert [device.index for device in readers.read(path).devices] == ["0"]


def test_sizes_of_collectives_that_cannot_be_are_told(tmp_path: Path) -> None:
    odd = kernel(
        "ncclKernel",
        500,
        4,
        Collective_name="allreduce",
        In_msg_nelems="x",
        Group_size=-5,
    )
    (problem,) = told(kineto(tmp_path, [odd]), ODD)
    assert "(Group size 1, In msg nelems 1)" in problem.message


@pytest.mark.parametrize(
    ("argument", "value"),
    [("dev-id", "x"), ("dev-id", -2), ("queue-id", "0x1"), ("pid", "1_0"), ("stream-id", 1.5)],
)
def test_an_id_of_rocprof_that_cannot_be_is_told(
    shared: Path, tmp_path: Path, argument: str, value: Any
) -> None:
    original = shared / "fixtures" / "rocm" / "rocprof_v1" / "mi300a_vecadd" / "results.json"
    content = json.loads(original.read_text())
    assert not told(readers.read(original), ODD)
    record = next(
        event for event in content["traceEvents"] if "dev-id" in (event.get("args") or {})
    )
    record["args"][argument] = value
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content))
    (problem,) = told(readers.read(path), ODD)
    assert (problem.count, f"({argument} 1)" in problem.message) == (1, True)


def test_a_time_of_rocprof_below_zero_is_none(shared: Path, tmp_path: Path) -> None:
    original = shared / "fixtures" / "rocm" / "rocprof_v1" / "mi300a_vecadd" / "results.json"
    content = json.loads(original.read_text())
    record = next(
        event for event in content["traceEvents"] if "dev-id" in (event.get("args") or {})
    )
    record["args"]["BeginNs"] = "-500"
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content))
    whole, trace = readers.read(original), readers.read(path)
    assert len(trace.kernels) + len(trace.copies) == len(whole.kernels) + len(whole.copies) - 1
    assert [problem.count for problem in told(trace, "no readable begin")] == [1]


@pytest.mark.parametrize("lost", ["x", "12 34", "1_000", "\u0661", "inf", "0x10"])
def test_a_metric_of_rocprof_compute_that_is_no_number_is_told(
    shared: Path, tmp_path: Path, lost: str
) -> None:
    folder = shared / "fixtures" / "rocm" / "rocprof_compute" / "analyze_csv_MI300X"
    original = folder / "2.1_Speed-of-Light.csv"
    path = tmp_path / original.name
    path.write_text(original.read_text().replace(",2852.58,", f",{lost},"))
    whole, trace = readers.read(original), readers.read(path)
    assert [problem.count for problem in told(trace, "values are no numbers")] == [1]
    assert not told(whole, "values are no numbers")
    assert len(trace.tool_metrics) == len(whole.tool_metrics) - 1


@pytest.mark.parametrize("unknown", ["", "N/A", "nan", "None", "<NA>"])
def test_a_metric_that_the_tool_does_not_know_is_no_fault(tmp_path: Path, unknown: str) -> None:
    path = tmp_path / "2.1_Speed-of-Light.csv"
    path.write_text(f"Metric,Avg,Unit,Peak\nIPC,{unknown},a,none\nVALU,0.5,a,what\n")
    trace = readers.read(path)
    assert (trace.problems, len(trace.tool_metrics)) == ((), 1)


@pytest.mark.parametrize("as_table", [True, False])
def test_metrics_beside_the_counters_are_told_too(
    shared: Path, tmp_path: Path, as_table: bool
) -> None:
    workload = shared / "fixtures" / "rocm" / "rocprof_compute" / "vcopy_MI300X"
    for name in ("pmc_perf.csv", "sysinfo.csv"):
        (tmp_path / name).write_bytes((workload / name).read_bytes())
    if as_table:
        (tmp_path / "analyze").mkdir()
        table = tmp_path / "analyze" / "2.1_Speed-of-Light.csv"
        table.write_text("Metric,Avg,Unit\nIPC,x,a\nVALU,0.5,a\n")
    else:
        path = tmp_path / "rocprof_compute_0123.db"
        write_analysis_database(path)
        with contextlib.closing(sqlite3.connect(path)) as opened, opened:
            changed = "SELECT rowid FROM compute_workload_metric_value WHERE value_name = 'Avg'"
            opened.execute(
                "UPDATE compute_workload_metric_value SET value = 'x' "
                f"WHERE rowid = ({changed} AND value IS NOT NULL LIMIT 1)"
            )
    trace = workload_folder.read(tmp_path)
    assert len(trace.tool_metrics) > 0
    assert [problem.count for problem in told(trace, "values are no numbers")] == [1]


HEAD = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","VGPR_Count"'
)


def rocprofv3(folder: Path, old: str = "", new: str = "") -> Trace:
    """Nine kernels, the fifth with another text in a place."""
    rows = [
        f'"KERNEL_DISPATCH",1,2,5,"gemm",{at},{1000 * at},{1000 * at + 500},3{at}'
        for at in range(1, 10)
    ]
    assert old in rows[4]
    rows[4] = rows[4].replace(old, new)
    path = folder / "1_kernel_trace.csv"
    path.write_text("\n".join([HEAD, *rows, ""]))
    return readers.read(path)


@pytest.mark.parametrize("value", ["0x10", "0X10", "1_0", "\u0661\u0662", "-5", "x"])
def test_a_number_of_a_csv_that_is_no_decimal_is_told(tmp_path: Path, value: str) -> None:
    trace = rocprofv3(tmp_path, ",35", f",{value}")
    assert [problem.count for problem in told(trace, "values are no numbers")] == [1]
    assert trace.kernels.vgpr.tolist() == [31, 32, 33, 34, -1, 36, 37, 38, 39]


@pytest.mark.parametrize("value", ["-5000", "-1", "0x1388"])
def test_a_time_of_a_csv_that_cannot_be_loses_its_row(tmp_path: Path, value: str) -> None:
    trace = rocprofv3(tmp_path, ",5000,", f",{value},")
    assert [problem.count for problem in told(trace, "below zero")] == [1]
    assert len(trace.kernels) == 8


def test_hexadecimal_digits_in_a_name_change_nothing(tmp_path: Path) -> None:
    trace = rocprofv3(tmp_path, "gemm", "gemm_0x10")
    assert (trace.problems, len(trace.kernels), trace.kernels.vgpr[4]) == ((), 9, 35)


@pytest.mark.parametrize(
    ("old", "new", "column"), [("gemm", "", "kernel_name"), (",35", ",", "vgpr_count")]
)
def test_a_field_that_others_fill_is_told_where_it_is_empty(
    tmp_path: Path, old: str, new: str, column: str
) -> None:
    (problem,) = told(rocprofv3(tmp_path, old, new), "fields are empty")
    assert (problem.count, f"({column} 1)" in problem.message) == (1, True)
    assert not told(rocprofv3(tmp_path), "fields are empty")


@pytest.mark.parametrize(
    ("value", "said"),
    [("1_0", "no numbers"), ("\u0661", "no numbers"), ("-5", "no numbers"), ("", "are empty")],
)
def test_a_size_of_a_small_table_that_cannot_be_is_told(
    shared: Path, tmp_path: Path, value: str, said: str
) -> None:
    folder = shared / "fixtures" / "rocm" / "rocprof_v1" / "mi300a_vecadd"
    header, row = (folder / "output_vec_add_gpu.csv").read_text().splitlines()[:2]
    path = tmp_path / "output.csv"
    path.write_text("\n".join([header, row, row.replace(",256,", f",{value},"), row, ""]))
    assert [problem.count for problem in told(readers.read(path), said)] == [1]
