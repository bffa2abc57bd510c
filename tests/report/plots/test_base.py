from __future__ import annotations

import json

import msgspec
import pytest

from profharness.report.plots import curves, partition, roofline, saturation, telemetry, trials
from profharness.report.plots.base import Plot, log_ticks
from tests.report.samples import SAMPLES, command, cpu_scan, empty, gpu_scan


def _figure(plot: Plot | None) -> dict[str, list[dict[str, object]]]:
    assert plot is not None
    return json.loads(plot.json, parse_constant=pytest.fail)


def test_throughput_has_intervals_fit_and_recommended_point() -> None:
    traces = _figure(curves.throughput_plot(gpu_scan()))["data"]
    assert [trace["name"] for trace in traces] == [
        "torch",
        "fit",
        "recommended",
        "onnxruntime",
        "fit",
        "recommended",
    ]
    assert traces[0]["error_y"]["visible"]
    assert len(traces[0]["x"]) == 10
    assert traces[2]["x"] == [256]
    fitted = dict(zip(traces[1]["x"], traces[1]["y"], strict=True))
    assert fitted[min(fitted)] == pytest.approx(traces[0]["y"][0], rel=1e-6)


def test_axes_carry_units_and_log_levels() -> None:
    layout = _figure(curves.throughput_plot(gpu_scan()))["layout"]
    assert layout["xaxis"]["type"] == "log"
    assert layout["yaxis"]["title"]["text"] == "throughput (jets/s)"
    assert (
        _figure(curves.latency_plot(gpu_scan()))["layout"]["yaxis"]["title"]["text"]
        == "latency (ms, log scale)"
    )


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
    drawn = _figure(curves.latency_plot(msgspec.structs.replace(scan, points=points)))["data"][0][
        "y"
    ]
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
    traces = _figure(
        curves.latency_plot(msgspec.structs.replace(scan, points=(*scan.points[:-1], few)))
    )["data"]
    means = [trace for trace in traces if trace["name"].endswith("mean")]
    assert [(trace["x"], trace["y"], trace["mode"]) for trace in means] == [
        ([few.batch_size], [70.0], "markers")
    ]


def test_partitions_sum_to_the_whole() -> None:
    for plot in (*partition.partition_plots(gpu_scan()), *partition.partition_plots(command())):
        traces = _figure(plot)["data"]
        horizontal = traces[0].get("orientation") == "h"
        shares = [trace["x" if horizontal else "y"] for trace in traces]
        for bar in zip(*shares, strict=True):
            assert sum(bar) == pytest.approx(100.0, abs=1e-6)


def test_cpu_runs_show_cores_and_gpu_runs_shares() -> None:
    assert [
        trace["name"] for trace in _figure(saturation.saturation_plots(cpu_scan())[0])["data"]
    ] == ["cores used", "cores allowed"]
    shares = _figure(saturation.saturation_plots(gpu_scan())[0])["data"]
    assert {"GPU %", "fill", "power"} <= {trace["name"] for trace in shares}
    assert all(value <= 100 for trace in shares for value in trace["y"] if value is not None)


def test_the_roofline_is_drawn_only_when_measured() -> None:
    scan = gpu_scan()
    assert roofline.roofline_plot(scan) is not None
    assert roofline.roofline_plot(msgspec.structs.replace(scan, metrics={})) is None
    assert roofline.roofline_plot(cpu_scan()) is None


def test_a_leaking_warmup_rises_at_the_left_of_its_column() -> None:
    first = _figure(trials.trials_plot(cpu_scan()))["data"][0]
    assert first["x"][0] == 0.0
    assert first["y"][0] > 2.5
    assert max(first["y"][2:]) < 1.3


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
        "cores used (cores)",
        "memory of the processes (GiB)",
        "CPU pressure (%)",
    ]
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
            assert _figure(plot)["data"]
            assert plot.description.endswith(".")


def test_an_empty_run_draws_nothing() -> None:
    assert curves.throughput_plot(empty()) is None
    assert trials.trials_plot(empty()) is None


def test_log_ticks_lie_within_the_data() -> None:
    assert log_ticks([1.4, 81.0])["tickvals"] == [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    assert log_ticks([1.0, 1e7])["tickvals"] == [10.0**power for power in range(8)]
    assert log_ticks([None, 0.0]) == {}
