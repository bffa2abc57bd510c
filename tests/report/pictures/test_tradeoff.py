from __future__ import annotations

import json

import msgspec
import pytest

from profharness.analysis.curves.records import Knee
from profharness.report.pictures.tradeoff import tradeoff_plot
from profharness.report.text import names
from tests.report.samples import SAMPLES, gpu_scan


def test_each_curve_has_its_levels_with_both_figures() -> None:
    summary = gpu_scan()
    plot = tradeoff_plot(summary)
    assert plot is not None
    lines = {
        one["name"]: [item["value"] for item in one["data"]]
        for one in json.loads(plot.json)["series"]
        if one["type"] == "line"
    }
    torch = [point for point in summary.points if point.backend == "torch"]
    assert set(lines) == {"torch", "onnxruntime"}
    assert lines["torch"] == [
        [point.throughput, pytest.approx(point.metrics[names.LATENCY_P50].value)] for point in torch
    ]


def test_the_recommended_level_is_marked() -> None:
    plot = tradeoff_plot(gpu_scan())
    assert plot is not None
    rings = [one for one in json.loads(plot.json)["series"] if one["type"] == "scatter"]
    assert [ring["data"][0]["told"] for ring in rings] == ["batch 256", "batch 256"]
    assert "The recommended level of torch is batch 256." in plot.description


def test_a_knee_goes_before_a_recommendation() -> None:
    summary = gpu_scan()
    torch = msgspec.structs.replace(summary.series[0], knee=Knee(n=50.0))
    plot = tradeoff_plot(msgspec.structs.replace(summary, series=(torch,)))
    assert plot is not None
    (ring,) = (one for one in json.loads(plot.json)["series"] if one["type"] == "scatter")
    assert ring["data"][0]["told"] == "batch 64"
    assert "The knee of torch is at 50, marked at batch 64." in plot.description


def test_latencies_in_other_units_are_ms() -> None:
    summary = gpu_scan()
    points = tuple(
        msgspec.structs.replace(
            point,
            metrics={
                **point.metrics,
                names.LATENCY_P50: msgspec.structs.replace(
                    point.metrics[names.LATENCY_P50], unit="s", value=0.5, low=None, high=None
                ),
            },
        )
        for point in summary.points
    )
    plot = tradeoff_plot(msgspec.structs.replace(summary, points=points))
    assert plot is not None
    line = json.loads(plot.json)["series"][0]
    assert {item["value"][1] for item in line["data"]} == {500.0}


@pytest.mark.parametrize("name", ["empty", "command"])
def test_without_a_scan_there_is_none(name: str) -> None:
    assert tradeoff_plot(SAMPLES[name]()) is None
