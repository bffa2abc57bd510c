from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from profharness.report.plots import curves, partition, roofline, saturation, telemetry, trials
from profharness.report.plots.base import Plot, log_ticks
from profharness.report.plots.chart import Curve, Scale, chart_json
from profharness.report.plots.colors import BACKENDS, BOUND, CAUSES, CURVES, MEASURES, REQUEST
from tests.report.samples import SAMPLES, command, cpu_scan, empty, gpu_scan


def _option(plot: Plot | None) -> dict[str, Any]:
    assert plot is not None
    return json.loads(plot.json, parse_constant=pytest.fail)


def _series(plot: Plot | None, *, kinds: tuple[str, ...] = ("line", "scatter", "bar")) -> list[Any]:
    """The drawn series, intervals and labels left out."""
    return [one for one in _option(plot)["series"] if one["type"] in kinds]


def _points(series: dict[str, Any]) -> list[list[Any]]:
    return [one["value"] if isinstance(one, dict) else one for one in series["data"]]


def _column(series: dict[str, Any], at: int) -> list[Any]:
    return [point[at] for point in _points(series)]


def test_throughput_has_intervals_fit_and_recommended_point() -> None:
    plot = curves.throughput_plot(gpu_scan())
    torch, fit, recommended, *others = _series(plot)
    assert [one["name"] for one in (torch, fit, recommended, *others)] == [
        "torch",
        "fit",
        "recommended",
        "onnxruntime",
        "fit",
        "recommended",
    ]
    assert _option(plot)["legend"]["data"] == ["torch", "fit", "recommended", "onnxruntime"]
    (bars, _) = _series(plot, kinds=("custom",))
    assert bars["renderItem"] == "interval"
    assert bars["name"] == "torch"
    measured = {point[0]: point[1] for point in _points(torch)}
    assert len(measured) == 10
    for x, low, high in bars["data"]:
        assert low < measured[x] < high
    assert _column(recommended, 0) == [256]
    fitted = {point[0]: point[1] for point in _points(fit)}
    assert fitted[min(fitted)] == pytest.approx(measured[min(measured)], rel=1e-6)


def test_the_text_under_the_pointer_names_the_source() -> None:
    torch = _series(curves.throughput_plot(gpu_scan()))[0]
    point = gpu_scan().points[0]
    assert torch["tooltip"]["formatter"] == "point:torch\n{x}: {y:4} jets/s{note}"
    said = torch["words"][_points(torch)[0][2]]
    assert said == f"\nfrom {point.metrics['throughput'].source}"


def test_axes_carry_units_and_log_levels() -> None:
    option = _option(curves.throughput_plot(gpu_scan()))
    assert option["xAxis"]["type"] == "log"
    assert option["xAxis"]["axisLabel"]["customValues"][:2] == [4, 16]
    assert option["yAxis"]["name"] == "throughput (jets/s)"
    assert _option(curves.latency_plot(gpu_scan()))["yAxis"]["name"] == "latency (ms, log scale)"


def test_no_plot_says_how_text_and_axes_are_coloured() -> None:
    scan, run = gpu_scan(), command()
    for plot in (curves.latency_plot(scan), *partition.partition_plots(run)):
        assert plot is not None
        assert "textStyle" not in plot.json
        assert "function" not in plot.json


def test_one_colour_stands_for_one_thing() -> None:
    tables = ({**BACKENDS}, dict(enumerate(CURVES)), CAUSES, MEASURES, REQUEST, {"bound": BOUND})
    kinds = [set(table.values()) for table in tables]
    for at, kind in enumerate(kinds):
        for other in kinds[at + 1 :]:
            assert not kind & other
    torch = _series(curves.throughput_plot(gpu_scan()))[0]["itemStyle"]["color"]
    assert torch == _series(curves.latency_plot(gpu_scan()))[0]["itemStyle"]["color"]
    assert torch == _series(trials.trials_plot(gpu_scan()))[0]["itemStyle"]["color"]
    assert torch == BACKENDS["torch"]


def test_latency_in_nanoseconds_is_drawn_in_milliseconds() -> None:
    scan = cpu_scan()
    points = tuple(
        msgspec.structs.replace(
            point,
            metrics={
                "latency_p50": msgspec.structs.replace(
                    point.metrics["latency_p50"],
                    value=point.metrics["latency_p50"].value * 1e6,
                    low=None,
                    high=None,
                    unit="ns",
                )
            },
        )
        for point in scan.points
    )
    drawn = _column(
        _series(curves.latency_plot(msgspec.structs.replace(scan, points=points)))[0], 1
    )
    assert drawn == pytest.approx([point.metrics["latency_p50"].value for point in scan.points])


def test_a_point_with_too_few_trials_for_a_median_shows_its_mean() -> None:
    scan = cpu_scan()
    few = msgspec.structs.replace(
        scan.points[-1],
        latency_ms=70.0,
        metrics={
            name: figure
            for name, figure in scan.points[-1].metrics.items()
            if not name.startswith("latency_p")
        },
    )
    drawn = _series(
        curves.latency_plot(msgspec.structs.replace(scan, points=(*scan.points[:-1], few)))
    )
    means = [one for one in drawn if one["name"].endswith("mean")]
    assert [(_points(one), one["type"]) for one in means] == [([[few.batch_size, 70.0]], "scatter")]


def test_partitions_sum_to_the_whole() -> None:
    for plot in (*partition.partition_plots(gpu_scan()), *partition.partition_plots(command())):
        bars = _series(plot)
        at = 0 if _option(plot)["yAxis"]["type"] == "category" else 1
        for parts in zip(*(_column(one, at) for one in bars), strict=True):
            assert sum(parts) == pytest.approx(100.0, abs=1e-6)
        for one in bars:
            assert one["itemStyle"]["color"] in CAUSES.values()
            assert len(one["words"]) == len(set(one["words"]))


def test_cpu_runs_show_cores_and_gpu_runs_shares() -> None:
    (plot, *_) = saturation.saturation_plots(cpu_scan())
    assert [one["name"] for one in _series(plot)] == ["cores used", "cores allowed"]
    shares = _series(saturation.saturation_plots(gpu_scan())[0])
    assert {"GPU %", "fill", "power"} <= {one["name"] for one in shares}
    assert all(value <= 100 for one in shares for value in _column(one, 1) if value is not None)


def test_the_roofline_is_drawn_only_when_measured() -> None:
    scan = gpu_scan()
    assert roofline.roofline_plot(scan) is not None
    assert roofline.roofline_plot(msgspec.structs.replace(scan, metrics={})) is None
    assert roofline.roofline_plot(cpu_scan()) is None


def test_a_leaking_warmup_rises_at_the_left_of_its_column() -> None:
    (marks, *_) = _series(trials.trials_plot(cpu_scan()))
    column = [point for point in _points(marks) if point[0] < 1]
    assert column[0][0] == 0.0
    assert column[0][1] > 2.5
    assert max(point[1] for point in column[2:]) < 1.3
    slowest = max(column, key=lambda point: point[1])
    assert slowest[3:] == [0, pytest.approx(cpu_scan().points[0].trials_ms[0])]


def test_thinning_keeps_the_first_trials_and_the_outliers() -> None:
    times = [(i, 1.0 + (i % 7) * 1e-4) for i in range(5000)]
    times[1234] = (1234, 9.0)
    kept = trials.thinned_trials(times, 1.0)
    assert len(kept) <= trials.MOST_TRIALS
    assert kept[:20] == times[:20]
    assert (1234, 9.0) in kept
    assert kept == sorted(kept)


def test_telemetry_is_drawn_in_readable_units_and_silent_metrics_are_left_out() -> None:
    plots = telemetry.telemetry_plots(cpu_scan())
    assert [plot.title for plot in plots] == [
        "cores used",
        "memory of the processes",
        "CPU pressure",
    ]
    assert [json.loads(plot.json)["yAxis"]["name"] for plot in plots] == ["cores", "GiB", "%"]
    flat = tuple(
        msgspec.structs.replace(row, values=(0.0,) * len(row.values))
        for row in cpu_scan().telemetry
    )
    assert telemetry.telemetry_plots(msgspec.structs.replace(cpu_scan(), telemetry=flat)) == ()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_plot_is_valid_and_described(name: str) -> None:
    summary = SAMPLES[name]()
    plots = [
        curves.throughput_plot(summary),
        curves.latency_plot(summary),
        curves.overhead_plot(summary),
        roofline.roofline_plot(summary),
        trials.trials_plot(summary),
        *saturation.saturation_plots(summary),
        *partition.partition_plots(summary),
        *telemetry.telemetry_plots(summary),
    ]
    for plot in plots:
        if plot is not None:
            assert _series(plot)
            assert plot.description.endswith(".")


def test_an_empty_run_draws_nothing() -> None:
    assert curves.throughput_plot(empty()) is None
    assert trials.trials_plot(empty()) is None


def test_log_ticks_lie_within_the_ends() -> None:
    assert log_ticks(1.0, 110.0) == [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    assert log_ticks(1.9, 5.4) == [2.0, 3.0, 4.0, 5.0]
    assert log_ticks(1.6, 2.3) == [1.75, 2.0, 2.25]
    assert log_ticks(1.0, 1e7) == [10.0**power for power in range(8)]


def test_many_points_share_the_trials_that_are_drawn() -> None:
    few = trials.thinned_trials([(i, 1.0 + i % 5) for i in range(1000)], 1.0, 40)
    assert len(few) <= 40
    assert few[:2] == [(0, 1.0), (1, 2.0)]


def test_thinned_samples_keep_every_peak() -> None:
    values = [float(at % 50) for at in range(5000)]
    values[1234] = 900.0
    values[4321] = -5.0
    kept = telemetry.thinned_samples(values, 200)
    assert len(kept) <= 200
    assert {1234, 4321} <= set(kept)
    assert kept == sorted(kept)
    assert telemetry.thinned_samples(values[:200], 200) == list(range(200))


def test_what_is_not_finite_is_no_number_of_an_option() -> None:
    drawn = Curve("a", "#000", (0.0, math.inf), (math.nan, -0.0), width=1)
    (series,) = json.loads(chart_json([drawn], Scale("x"), Scale("y")))["series"]
    assert series["data"] == [[0.0, None], [None, -0.0]]


def test_names_without_a_shape_are_escaped() -> None:
    drawn = Curve("a\u202eb", "#000", ("c\u200b",), (1.0,), tip="{note}", notes=("\u2066d",))
    text = chart_json([drawn], Scale("x", category=True), Scale("y"))
    assert text.isascii()
    assert "\\\\u202e" in text
