from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from profharness.analysis.pictures.records import Pictures, Strips
from profharness.report.json import metrics_json, run_json, summary_json
from tests.report.samples import SAMPLES, failing, gpu_scan, odd_numbers

RUN_FIELDS = {
    "point",
    "backend",
    "batch_size",
    "concurrency",
    "processes",
    "trials",
    "warmup_trials",
    "throughput",
    "throughput_sem",
    "latency_ms",
    "consistency",
    "overhead",
    "state",
    "error",
}
FINDING_FIELDS = {"id", "severity", "message", "figures"}
JUDGED = ["verdict", "verdict_needs", "partition", "work"]


def check_judged(value: dict[str, Any]) -> None:
    """A verdict or what it needs, and a partition whose parts sum to its window."""
    verdict, partition = value["verdict"], value["partition"]
    if verdict is not None:
        assert list(verdict) == ["kind", "text", "at_most"]
        assert verdict["at_most"] is None or 1 <= verdict["at_most"] <= 100_000
    assert verdict is None or value["verdict_needs"] is None
    if partition is not None:
        parts = [ns for name, ns in partition.items() if name != "window_ns"]
        assert sum(parts) == partition["window_ns"]
        assert min(parts) >= 0
    work = value["work"]
    if work is not None:
        assert list(work) == ["matrix_kernel_ns", "known_ns", "reasons"]
        assert work["known_ns"] + sum(work["reasons"].values()) == work["matrix_kernel_ns"]


def test_summary_json_has_the_same_verdicts_and_partitions() -> None:
    summary = gpu_scan()
    whole, shown = json.loads(summary_json(summary)), json.loads(metrics_json(summary))
    for mine, theirs in zip((whole, *whole["points"]), (shown, *shown["points"]), strict=True):
        assert {name: mine[name] for name in JUDGED} == {name: theirs[name] for name in JUDGED}
        assert "grounds" not in mine


@pytest.mark.parametrize("name", SAMPLES)
def test_run_json_has_the_documented_shape(name: str) -> None:
    data = run_json(SAMPLES[name]())
    assert data.endswith(b"}\n")
    value = json.loads(data)
    assert list(value) == ["schema", "run", "points", *JUDGED, "findings", "problems"]
    check_judged(value)
    assert value["schema"] == 2
    assert isinstance(value["run"], str)
    for point in value["points"]:
        assert set(point) <= RUN_FIELDS | set(JUDGED)
        assert {"point", *JUDGED} <= set(point)
        check_judged(point)
    for finding in value["findings"]:
        assert FINDING_FIELDS <= set(finding) <= FINDING_FIELDS | {"advice", "point"}
    for problem in value["problems"]:
        assert set(problem) == {"source", "severity", "count", "message"}


def test_a_point_of_run_json_holds_plain_numbers() -> None:
    point = json.loads(run_json(gpu_scan()))["points"][0]
    assert set(point) == {
        "point",
        "backend",
        "batch_size",
        "trials",
        "warmup_trials",
        "throughput",
        "throughput_sem",
        "latency_ms",
        "consistency",
        "overhead",
        *JUDGED,
    }
    assert point["batch_size"] == 4
    assert isinstance(point["throughput"], float)
    assert set(point["overhead"]["torch"]) == {"value", "low", "high"}


def test_every_point_stands_once() -> None:
    points = [point["point"] for point in json.loads(run_json(failing()))["points"]]
    assert len(points) == len(set(points)) == 4


def test_a_failed_point_has_no_throughput_and_says_why() -> None:
    point = json.loads(run_json(failing()))["points"][2]
    assert point["state"] == "failed"
    assert "OutOfMemoryError" in point["error"]
    assert "throughput" not in point


@pytest.mark.parametrize("name", SAMPLES)
def test_metrics_json_has_the_documented_shape(name: str) -> None:
    value = json.loads(metrics_json(SAMPLES[name]()))
    assert list(value) == [
        "schema",
        "source",
        "trace",
        "devices",
        "points",
        "metrics",
        *JUDGED,
        "findings",
        "problems",
    ]
    check_judged(value)
    assert set(value["trace"]) == {
        "pass",
        "kernels",
        "copies",
        "devices",
        "streams",
        "ranks",
        "span_ns",
        "busy_ns",
        "busy_any_ns",
        "sum_kernel_ns",
        "unlinked_kernels",
        "graph_launches",
        "kernels_in_graphs",
        "distinct_kernels",
    }
    for device in value["devices"].values():
        assert set(device) == {"kernels", "busy_ns", "busy_any_ns", "span_ns"}
    for figure in value["metrics"].values():
        assert {"value", "unit", "low", "high", "from", "needs"} <= set(figure)
    for point in value["points"]:
        assert set(point) == {"point", "metrics", *JUDGED}
        check_judged(point)
        for figure in point["metrics"].values():
            assert {"value", "unit", "low", "high", "from"} <= set(figure)


def test_what_was_not_measured_is_null_and_says_what_it_needs() -> None:
    figure = json.loads(metrics_json(gpu_scan()))["metrics"]["hfu"]
    assert figure["value"] is None
    assert figure["needs"] == "a counter pass (--pmc)"


def test_numbers_that_are_not_finite_become_null() -> None:
    assert (
        json.loads(run_json(odd_numbers()), parse_constant=pytest.fail)["points"][0]["throughput"]
        is None
    )
    assert (
        json.loads(metrics_json(odd_numbers()), parse_constant=pytest.fail)["metrics"]["power_w"][
            "value"
        ]
        is None
    )


def test_pictures_stand_in_no_json() -> None:
    summary = SAMPLES["gpu_scan"]()
    drawn = msgspec.structs.replace(summary, pictures=Pictures(strips=Strips(left_out=3)))
    for written in (run_json, metrics_json, summary_json):
        assert written(drawn) == written(summary)
