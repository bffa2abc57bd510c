"""Hardware counters by kernel, as Kineto writes those of CUPTI's range profiler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.kernels.counter_table import counter_rows
from profharness.analysis.kernels.hotspots import by_kernel
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time import counts
from profharness.report.text.command_sentences import answer
from profharness.report.text.metrics import metrics_text
from profharness.trace.columns.table import NULL
from profharness.trace.wanted import Wanted

PREFIX = "smsp__sass_thread_inst_executed_op_"


def _written(path: Path, ranges: list[dict[str, object]], launches: int) -> Path:
    calls = [
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 7,
            "tid": 7,
            "ts": 100 + 10 * row,
            "dur": 2,
            "args": {"correlation": 50 + row},
        }
        for row in range(launches)
    ]
    events = [
        {"ph": "X", "cat": "cuda_profiler_range", "pid": 0, "tid": 0, "dur": 5, **one}
        for one in ranges
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*calls, *events]}))
    return path


RANGES: list[dict[str, object]] = [
    {"name": "second", "ts": 205, "args": {"a.sum": 3, "b": 2.5, "text": "no number"}},
    {"name": "__missing__", "ts": 200, "args": {"a.sum": 1}},
]


def test_the_answer_says_what_there_is(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.json", RANGES, 2)
    assert answer(summarise_trace(readers.read(path), "a.json")) == (
        "2 kernels are known by hardware counters alone, without times, so no device can be judged."
    )
    content = json.loads(path.read_text())
    span = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 90, "dur": 50}
    content["traceEvents"].append(span)
    path.write_text(json.dumps(content))
    assert answer(summarise_trace(readers.read(path), "a.json")).endswith(
        "no device can be judged. Operators of the host are recorded beside them."
    )


def test_ranges_are_counters_of_kernels_without_times(tmp_path: Path) -> None:
    trace = readers.read(_written(tmp_path / "a.json", RANGES, 2))
    kernels = trace.kernels
    assert [trace.strings[code] for code in kernels.name] == ["kernel without a name", "second"]
    assert (kernels.start_ns.tolist(), kernels.dur_ns.tolist()) == ([NULL] * 2, [0, 0])
    assert kernels.correlation.tolist() == [50, 51]
    assert [
        (int(row), trace.strings[code], value)
        for row, code, value in zip(
            trace.counters.kernel, trace.counters.name, trace.counters.value, strict=True
        )
    ] == [(0, "a.sum", 1.0), (1, "a.sum", 3.0), (1, "b", 2.5)]
    assert by_kernel(trace).total_ns is None
    assert by_kernel(readers.read(tmp_path / "a.json", wanted=Wanted.TIMES)) == by_kernel(trace)


def test_ranges_that_are_not_as_many_as_launches_belong_to_none(tmp_path: Path) -> None:
    trace = readers.read(_written(tmp_path / "a.json", RANGES, 3))
    assert trace.kernels.correlation.tolist() == [NULL, NULL]


@pytest.mark.parametrize("args", [None, [1, 2], {"a": None, "b": True}])
def test_ranges_without_numbers_have_no_counters(tmp_path: Path, args: object) -> None:
    trace = readers.read(_written(tmp_path / "a.json", [{"name": "k", "ts": 1, "args": args}], 1))
    assert (len(trace.kernels), len(trace.counters)) == (1, 0)


def test_the_recorded_file(shared: Path) -> None:
    trace = readers.read(shared / "fixtures/kineto/a100_cupti_range_counters.json.gz")
    assert (len(trace.kernels), len(trace.counters)) == (77, 77 * 9)
    assert counts.count(trace).kernels == 0
    ops = {
        trace.strings[name]: trace.strings[trace.ops.name[op]]
        for name, op in zip(trace.kernels.name, trace.kernels.op, strict=True)
    }
    assert ops["ampere_sgemm_32x32_sliced1x4_tn"] == "aten::addmm"
    added = {
        row.kernel: row.sum
        for row in counter_rows(trace)
        if row.counter == f"{PREFIX}ffma_pred_on.sum"
    }
    assert added["ampere_sgemm_32x32_sliced1x4_tn"] == 15_067_250_688
    summary = summarise_trace(trace, "a.json")
    assert summary.verdict is None
    assert not summary.findings
    assert "hardware counters, and no device work" in metrics_text(summary)
