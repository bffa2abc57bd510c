from __future__ import annotations

import json

import msgspec
import pytest

from profharness.analysis.records import (
    Figure,
    Partition,
    PointSummary,
    Summary,
    TelemetryRow,
    TraceCounts,
)
from profharness.report.pictures.reality import MEASURES, reality_plot, shares
from profharness.report.text import names
from tests.report.samples import SAMPLES, gpu_scan

FIGURES = {
    names.GPU_PERCENT: Figure(value=100.0, unit="%", source="amd telemetry"),
    names.FILL: Figure(value=0.38, unit="share", low=0.37, high=0.4),
    names.MFU: Figure(value=0.04, unit="share"),
    names.POWER_SATURATION: Figure(value=None, unit="share", needs="calibrate"),
}


def test_a_window_has_a_bar_of_each_figure_that_was_measured() -> None:
    summary = Summary(source="x", trace=TraceCounts(), metrics=FIGURES)
    plot = reality_plot(summary)
    assert plot is not None
    option = json.loads(plot.json)
    assert option["yAxis"]["data"] == ["GPU %", "fill", "MFU"]
    assert [bar["value"] for bar in option["series"][0]["data"]] == [100.0, 38.0, 4.0]
    assert option["series"][1]["data"] == [[1, 37.0, 40.0]]
    assert plot.description.endswith("GPU % 100 %, fill 38 %, MFU 4 %.")
    assert "from amd telemetry" in option["series"][0]["data"][0]["told"]


def test_each_point_has_a_row_and_each_figure_a_mark() -> None:
    summary = gpu_scan()
    plot = reality_plot(summary)
    assert plot is not None
    option = json.loads(plot.json)
    assert len(option["yAxis"]["data"]) == len(summary.points)
    marks = {
        series["name"]: [item["value"] for item in series["data"]]
        for series in option["series"]
        if series["type"] == "scatter"
    }
    for row, point in enumerate(summary.points):
        for label, share in shares(point.metrics).items():
            assert [share.value, row] in marks[label]
    fill = summary.points[0].metrics[names.FILL].value
    assert fill is not None
    assert marks["fill"][0] == [pytest.approx(100 * fill, abs=1e-3), 0]


def test_the_better_of_two_metrics_speaks_for_a_measure() -> None:
    found = shares({**FIGURES, names.FILL_BARE: Figure(value=0.31, unit="share")})
    assert found["fill"].value == 31.0
    assert list(found) == [one.label for one in MEASURES if one.label in found]


def test_one_figure_alone_says_nothing() -> None:
    only = {names.GPU_PERCENT: FIGURES[names.GPU_PERCENT]}
    assert reality_plot(Summary(source="x", trace=TraceCounts(), metrics=only)) is None
    assert reality_plot(SAMPLES["empty"]()) is None
    assert reality_plot(SAMPLES["cpu_scan"]()) is None


def test_points_without_figures_are_left_out() -> None:
    summary = gpu_scan()
    bare = PointSummary(point="torch-b1", backend="torch", batch_size=1)
    plot = reality_plot(msgspec.structs.replace(summary, points=(bare, *summary.points[:2])))
    assert plot is not None
    assert len(json.loads(plot.json)["yAxis"]["data"]) == 2


@pytest.mark.parametrize(
    ("captured", "window_s", "shown"), [(None, 1, None), (90.0, 1, 90.0), (None, 10, 3.0)]
)
def test_what_was_sampled_at_another_time_does_not_stand_beside_the_window(
    captured: float | None, window_s: int, shown: float | None
) -> None:
    """A run of 10 s, of which a second was captured: its mean says nothing of that second."""
    row = TelemetryRow(
        device="0", metric=names.GPU_PERCENT, unit="%", mean=3.0, low=0.0, high=90.0,
        samples=1_000, span_ns=10 * 10**9, captured=captured,
    )  # fmt: skip
    summary = Summary(
        source="x",
        trace=TraceCounts(),
        partition=Partition(
            window_ns=window_s * 10**9,
            compute_ns=0,
            exposed_communication_ns=0,
            exposed_copy_ns=0,
            idle_ns=window_s * 10**9,
        ),
        telemetry=(row,),
        metrics={
            names.GPU_PERCENT: Figure(value=3.0, unit="%", source="the whole run, telemetry"),
            names.FILL: Figure(value=0.6, unit="share", source="torch: 20 steps"),
            names.MFU: Figure(value=0.04, unit="share", source="torch: 20 steps"),
        },
    )
    plot = reality_plot(summary)
    assert plot is not None
    first = f"GPU % {shown:.3g} %, " if shown else ""
    assert plot.description.endswith(f": {first}fill 60 %, MFU 4 %.")


def test_a_figure_without_samples_of_its_own_goes_by_the_time_of_the_others() -> None:
    """Power saturation is computed from samples of power; the run was ten times the window."""
    row = TelemetryRow(
        device="0", metric="power", unit="W", mean=100.0, low=0.0, high=200.0, samples=1_000,
        span_ns=10 * 10**9, captured=180.0,
    )  # fmt: skip
    summary = Summary(
        source="x",
        trace=TraceCounts(),
        partition=Partition(
            window_ns=10**9,
            compute_ns=0,
            exposed_communication_ns=0,
            exposed_copy_ns=0,
            idle_ns=10**9,
        ),
        telemetry=(row,),
        metrics={
            names.POWER_SATURATION: Figure(value=0.3, unit="share", source="the whole run, x"),
            names.FILL: Figure(value=0.6, unit="share", source="torch: 20 steps"),
            names.MFU: Figure(value=0.04, unit="share", source="torch: 20 steps"),
        },
    )
    plot = reality_plot(summary)
    assert plot is not None
    assert plot.description.endswith(": fill 60 %, MFU 4 %.")
