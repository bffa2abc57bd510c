"""The classic tool's lines: what scripts read, and why their throughput is not the table's."""

from __future__ import annotations

from profharness.analysis.records import Classic, PointSummary, Summary, TraceCounts
from profharness.report.text.classic_lines import classic_lines


def point(processes: int, batch: int) -> PointSummary:
    found = Classic(
        model="m.onnx",
        batch_size=batch,
        throughput=1234.56,
        latency_mean_ms=1.5,
        latency_median_ms=1.25,
        latency_std_ms=0.5,
        iterations=99,
    )
    return PointSummary(
        point=f"p{processes}b{batch}",
        backend="onnxruntime",
        batch_size=batch,
        processes=processes,
        throughput=1100.0,
        classic=found,
    )


def test_a_block_for_the_most_processes_of_each_batch_size() -> None:
    lines = classic_lines(
        Summary(source="x", trace=TraceCounts(), points=(point(4, 16), point(2, 16), point(2, 8)))
    )
    assert sorted(line for line in lines if line.startswith("Batch Size")) == [
        "Batch Size: 16",
        "Batch Size: 8",
    ]
    assert "Throughput (items/sec): 1234.5600" in lines
    assert "Latency Std (ms/batch): 0.5000" in lines
    assert lines[7] == (
        "(1235 sums each process over its own window, as "
        "multi_process_benchmark.py of the DeepSparse examples does, whose lines these are; "
        "the table's 1100 is over the window common to all 4)"
    )


def test_nothing_of_other_scans() -> None:
    assert (
        classic_lines(
            Summary(
                source="x", trace=TraceCounts(), points=(PointSummary(point="p", backend="torch"),)
            )
        )
        == ()
    )
