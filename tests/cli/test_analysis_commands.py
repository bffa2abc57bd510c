"""`hotspots` and `metrics` on a small file, as a user calls them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.understand.load import no_run

GEMM = "void gemm_kernel<float, 128>(float const*, float*)"


def event(
    category: str, name: str, start_us: float, dur_us: float, **args: int
) -> dict[str, object]:
    device = category in ("kernel", "gpu_memcpy")
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 0 if device else 7,
        "tid": 0 if device else 8,
        "ts": start_us,
        "dur": dur_us,
        "args": {**args, **({"device": 0, "stream": 0} if device else {})},
    }


@pytest.fixture
def kineto(tmp_path: Path) -> Path:
    """Two kernels and a copy with their calls, and two nested operators."""
    events = [
        event("cpu_op", "aten::linear", 10.0, 20.0),
        event("cpu_op", "aten::addmm", 12.0, 10.0),
        event("cuda_runtime", "hipLaunchKernel", 14.0, 2.0, correlation=1),
        event("kernel", GEMM, 20.0, 30.5, correlation=1),
        event("cuda_runtime", "hipLaunchKernel", 24.0, 2.0, correlation=2),
        event("kernel", GEMM, 60.0, 10.25, correlation=2),
        event("cuda_runtime", "hipMemcpyAsync", 27.0, 2.0, correlation=3),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Host)", 80.0, 5.0, correlation=3, bytes=4),
    ]
    path = tmp_path / "small.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.fixture
def operators_only(tmp_path: Path) -> Path:
    path = tmp_path / "cpu.pt.trace.json"
    path.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "traceEvents": [
                    event("cpu_op", "aten::mm", 1.0, 4.0),
                    event("cpu_op", "aten::add", 6.0, 1.0),
                ],
            }
        )
    )
    return path


def output(capsys, *arguments: str | Path) -> str:
    assert run_cli([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_hotspots_json(capsys, kineto):
    table = json.loads(output(capsys, "hotspots", kineto, "--format", "json"))
    assert (table["schema"], table["by"], table["pass"], table["total_ns"]) == (
        2,
        "kernel",
        None,
        40_750,
    )
    (row,) = table["rows"]
    assert {
        name: row[name]
        for name in (
            "name",
            "category",
            "calls",
            "total_ns",
            "share",
            "mean_ns",
            "median_ns",
            "min_ns",
            "max_ns",
        )
    } == {
        "name": GEMM,
        "category": "gemm",
        "calls": 2,
        "total_ns": 40_750,
        "share": 1.0,
        "mean_ns": 20_375.0,
        "median_ns": 20_375.0,
        "min_ns": 10_250,
        "max_ns": 30_500,
    }
    assert json.loads(output(capsys, "hotspots", kineto, "--json")) == table


def test_hotspots_by_op_and_category(capsys, kineto):
    by_op = json.loads(output(capsys, "hotspots", kineto, "--by", "op", "--format", "json"))
    assert [(row["name"], row["total_ns"], row["kernel_ns"]) for row in by_op["rows"]] == [
        ("aten::addmm", 10_000, 30_500),
        ("aten::linear", 10_000, 10_250),
    ]
    by_category = json.loads(
        output(capsys, "hotspots", kineto, "--by", "category", "--format", "json")
    )
    assert [(row["name"], row["total_ns"]) for row in by_category["rows"]] == [
        ("gemm", 40_750),
        ("copy", 5_000),
    ]


def test_hotspots_default_to_operators_without_device_kernels(capsys, operators_only):
    table = json.loads(output(capsys, "hotspots", operators_only, "--format", "json"))
    assert (table["by"], [row["name"] for row in table["rows"]]) == (
        "op",
        ["aten::mm", "aten::add"],
    )


def test_hotspots_csv_and_top(capsys, operators_only):
    rows = list(
        csv.DictReader(
            io.StringIO(output(capsys, "hotspots", operators_only, "--format", "csv", "--top", "1"))
        )
    )
    assert [(row["name"], row["total_ns"]) for row in rows] == [("aten::mm", "4000")]
    cut = json.loads(output(capsys, "hotspots", operators_only, "--format", "json", "--top", "1"))
    assert (len(cut["rows"]), cut["total_ns"]) == (1, 5000)


def test_hotspots_table_shows_whole_names_in_a_pipe(capsys, kineto, operators_only):
    text = output(capsys, "hotspots", kineto)
    assert text.splitlines()[0].startswith("by kernel")
    assert text.splitlines()[2].endswith(f"gemm      {GEMM}")
    assert "and 1 more rows" in output(capsys, "hotspots", operators_only, "--top", "1")


def test_hotspots_folds_names_to_the_terminal(kineto):
    from profharness.report.text.hotspots import plain_table
    from profharness.understand.hotspots import hotspots_of
    from profharness.understand.load import load

    table = hotspots_of(load([kineto]))
    assert GEMM not in plain_table(table, 5, 80)
    assert "gemm_kernel" in plain_table(table, 5, 80)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--pass", "torch"), 2),
        (("--by", "file"), 2),
        (("--format", "xml"), 2),
        (("--top", "0"), 2),
    ],
)
def test_hotspots_refuses_what_it_does_not_know(capsys, kineto, arguments, status):
    assert run_cli(["hotspots", str(kineto), *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error:")


@pytest.mark.parametrize(
    ("by", "advice"),
    [
        ("module", "record them with --stacks"),
        ("stack", "record them with --stacks"),
        ("range", "name ranges in the program, with record_function, roctx or NVTX"),
        ("shape", "record shapes with the operators (record_shapes=True of torch.profiler)"),
    ],
)
def test_hotspots_say_what_records_rows_that_a_file_has_not(capsys, kineto, by, advice):
    assert run_cli(["hotspots", str(kineto), "--by", by]) == 0
    assert capsys.readouterr().err == f"{kineto}: nothing to list by {by}; {advice}\n"


def test_hotspots_of_a_file_that_is_none(capsys, tmp_path):
    assert run_cli(["hotspots", str(tmp_path / "absent.json")]) == 4
    (tmp_path / "empty.json").write_text("")
    assert run_cli(["hotspots", str(tmp_path / "empty.json")]) == 4
    assert "empty.json" in capsys.readouterr().err


def test_metrics_json(capsys, kineto):
    document = json.loads(output(capsys, "metrics", kineto, "--json"))
    assert list(document) == [
        "schema",
        "source",
        "trace",
        "devices",
        "points",
        "metrics",
        "verdict",
        "verdict_needs",
        "partition",
        "work",
        "findings",
        "problems",
        "operator_share",
        "copies_by",
        "queues",
        "host",
    ]
    assert document["source"] == str(kineto)
    assert document["trace"] == {
        "pass": None,
        "kernels": 2,
        "copies": 1,
        "devices": 1,
        "streams": 1,
        "ranks": 1,
        "span_ns": 65_000,
        "busy_ns": 40_750,
        "busy_any_ns": 45_750,
        "sum_kernel_ns": 40_750,
        "unlinked_kernels": 0,
        "graph_launches": 0,
        "kernels_in_graphs": 0,
        "distinct_kernels": 1,
    }
    assert document["devices"] == {
        "0": {"kernels": 2, "busy_ns": 40_750, "busy_any_ns": 45_750, "span_ns": 65_000}
    }
    assert document["verdict"]["kind"] == "kernels"
    assert document["verdict"]["at_most"] is document["verdict_needs"] is None
    assert f"verdict   {document['verdict']['text']}\n" in output(capsys, "metrics", kineto)
    partition = document["partition"]
    idle = sum(ns for name, ns in partition.items() if "idle" in name)
    assert (partition["window_ns"], partition["unknown_work_ns"]) == (65_000, 40_750)
    assert (partition["exposed_copy_ns"], idle) == (5_000, 19_250)
    assert sum(partition.values()) == 2 * 65_000
    assert document["metrics"]["busy"]["value"] == pytest.approx(40_750 / 65_000)
    for figure in document["metrics"].values():
        assert {"value", "unit", "low", "high", "from", "needs"} <= set(figure)
        assert (figure["value"] is None) == bool(figure["needs"])


def test_metrics_for_a_person(capsys, kineto, operators_only):
    text = output(capsys, "metrics", kineto)
    assert "2 kernels, 1 name, 1 copy, 1 stream, 1 device, 1 rank" in text
    assert "compute 62.7 %" in text
    assert "  fill; fill while busy; underfilled: needs workgroups" in text
    assert "operators" in output(capsys, "metrics", operators_only)


def test_metrics_name_what_a_broken_file_lost(capsys, kineto):
    kineto.write_text(kineto.read_text()[:-40])
    document = json.loads(output(capsys, "metrics", kineto, "--json"))
    assert "truncated-file" in [item["id"] for item in document["findings"]]
    assert document["problems"]


def test_metrics_say_once_that_there_are_no_device_kernels(capsys, kineto, operators_only):
    text = output(capsys, "metrics", operators_only)
    assert text.count("no device kernels in the trace") == 1
    assert "needs kernels" not in text
    assert max(len(line) for line in text.splitlines()) < 300
    assert "no device kernels" not in output(capsys, "metrics", kineto)


@pytest.mark.parametrize("by", ["kernel", "category"])
def test_hotspots_without_rows_name_the_table_that_has_some(capsys, kineto, operators_only, by):
    assert run_cli(["hotspots", str(operators_only), "--by", by]) == 0
    assert (
        f"nothing to list by {by}; its operators are listed by --by op" in capsys.readouterr().err
    )
    assert run_cli(["hotspots", str(kineto), "--by", by]) == 0
    assert capsys.readouterr().err == ""


def test_hotspots_of_an_empty_file_promise_no_other_table(capsys, tmp_path):
    path = tmp_path / "none.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": []}))
    assert run_cli(["hotspots", str(path), "--by", "kernel"]) == 0
    assert "nothing to list by kernel; a run records operators" in capsys.readouterr().err


@pytest.fixture
def hip_log(tmp_path: Path) -> Path:
    path = tmp_path / "hip.log"
    path.write_text(
        ":3:hip_memory.cpp           :12  : 0000001000 us: [pid:7 tid:0x8]  hipMalloc ( 8 ) \n"
        ":3:hip_memory.cpp           :12  : 0000001034 us: [pid:7 tid:0x8] hipMalloc: "
        "Returned hipSuccess : \n"
    )
    return path


def test_hotspots_of_a_log_of_host_calls_list_these(capsys, hip_log, kineto, operators_only):
    table = json.loads(output(capsys, "hotspots", hip_log, "--json"))
    assert (
        table["by"],
        [(row["name"], row["category"], row["calls"], row["total_ns"]) for row in table["rows"]],
    ) == ("call", [("hipMalloc", "hip", 1, 34_000)])
    assert capsys.readouterr().err == ""
    text = output(capsys, "hotspots", hip_log)
    assert text.splitlines()[0] == "by call, 34.00 µs in 1 calls"
    assert text.endswith("host calls: the time of one holds that of the calls inside it\n")
    calls = json.loads(output(capsys, "hotspots", kineto, "--by", "call", "--json"))
    assert [(row["name"], row["calls"], row["total_ns"]) for row in calls["rows"]] == [
        ("hipLaunchKernel", 2, 4000),
        ("hipMemcpyAsync", 1, 2000),
    ]
    for other, by in ((kineto, "kernel"), (operators_only, "op")):
        assert (
            json.loads(output(capsys, "hotspots", hip_log, other, "--processes", "1", "--json"))[
                "by"
            ]
            == by
        )


def test_hotspots_without_rows_name_the_host_calls_and_the_readers_notes(capsys, hip_log):
    assert run_cli(["hotspots", str(hip_log), "--by", "kernel"]) == 0
    error = capsys.readouterr().err
    assert "nothing to list by kernel; its host calls are listed by --by call" in error
    assert f"info: {hip_log}: 2 x lines of a HIP log" in error


def test_hotspots_of_lines_without_times_say_what_would_give_some(capsys, tmp_path):
    path = tmp_path / "miopen.log"
    path.write_text("MIOpen(HIP): Info [get_device_name] Raw device name: gfx942\n")
    assert run_cli(["hotspots", str(path)]) == 0
    error = capsys.readouterr().err
    assert (
        "lines have no time: MIOpen writes none, and they were not stamped as they arrived, "
        "which --profile amd-log does" in error
    )
    assert "nothing to list by kernel" in error


@pytest.mark.parametrize("command", ["hotspots", "metrics", "merge"])
def test_a_folder_of_trace_files_names_those_that_can_be_given(capsys, hip_log, kineto, command):
    (hip_log.parent / "notes.txt").write_text("nothing of ours")
    assert run_cli([command, str(hip_log.parent)]) == 4
    error = capsys.readouterr().err
    assert (
        "is not a run directory (no manifest.json)\n  name one of its files: "
        "small.pt.trace.json, hip.log\n" in error
    )


def test_only_some_of_many_files_are_named(tmp_path, hip_log):
    for number in range(5):
        (tmp_path / f"hip{number}.log").write_bytes(hip_log.read_bytes())
    error = no_run(tmp_path)
    assert error.hint == "name one of its files: hip.log, hip0.log, hip1.log, hip2.log and 2 more"


def test_a_folder_of_rocprof_names_its_database_first(shared):
    error = no_run(shared / "fixtures" / "rocm" / "rocprof_v1" / "kokkos_2021")
    assert error.hint == (
        "name one of its files: results.db, results.json, results.copy_stats.csv, "
        "results.hip_stats.csv and 2 more"
    )


def test_a_report_of_a_folder_names_the_files_in_it(capsys, kineto, tmp_path):
    assert run_cli(["report", str(kineto.parent)]) == 4
    assert "  name one of its files: small.pt.trace.json\n" in capsys.readouterr().err
    assert run_cli(["report", str(tmp_path / "none")]) == 4
    assert "there is no such file or run directory" in capsys.readouterr().err


def test_hotspots_name_what_a_broken_file_lost(capsys, kineto):
    kineto.write_text(kineto.read_text()[:-40])
    assert run_cli(["hotspots", str(kineto)]) == 0
    captured = capsys.readouterr()
    assert "gemm" in captured.out
    assert captured.err.startswith("error: ")
    assert str(kineto) in captured.err
    assert "info" not in captured.err


def test_merge_is_brief_unless_it_is_asked_for_more(capsys, kineto, operators_only, tmp_path):
    kineto.write_text(kineto.read_text()[:-40])
    words = [
        "merge",
        str(kineto),
        str(operators_only),
        "--allow-unaligned",
        "--force",
        "-o",
        str(tmp_path / "m.pftrace"),
        "--processes",
        "1",
    ]
    assert run_cli(words) == 0
    brief = capsys.readouterr()
    assert run_cli([*words, "--verbose"]) == 0
    full = capsys.readouterr()
    assert brief.out == full.out == f"{tmp_path / 'm.pftrace'}\n"
    lines = brief.err.splitlines()
    assert lines[0] == "2 sources"
    assert lines[1].startswith("2 not aligned, their times stand as the tools wrote them: ")
    assert lines[2].startswith("error: ")
    assert lines[-1].startswith("wrote ")
    assert f"{kineto}: not aligned" in full.err
    assert "not aligned: its" not in brief.err


def test_telemetry_is_joined_to_no_host_calls(hip_log):
    from profharness.errors import UsageError
    from profharness.understand.hotspots import hotspots_of
    from profharness.understand.load import load

    with pytest.raises(UsageError, match="not for rows by call"):
        hotspots_of(load([hip_log]), "call", samples="power")
