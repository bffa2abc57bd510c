from __future__ import annotations

import json
from typing import Any

import msgspec

from profharness.analysis.pictures.records import Band, Pictures
from profharness.analysis.records import Summary
from profharness.report.pictures.power import MOST_BANDS, power_plots
from profharness.report.pictures.sections import without_power
from profharness.report.plots.base import Plot
from tests.report.samples import SAMPLES, gpu_scan

BANDS = (
    Band(pass_name="bare", start_s=0.0, end_s=60.0),
    Band(pass_name="bare", point="torch-b4", start_s=5.0, end_s=14.0),
    Band(pass_name="bare", point="torch-b8", start_s=15.0, end_s=24.5),
)


def capped() -> Summary:
    summary = gpu_scan()
    power = next(row for row in summary.telemetry if row.metric == "power_w")
    cap = msgspec.structs.replace(
        power, metric="power_limit", mean=700.0, values=(700.0,) * len(power.at_s)
    )
    return msgspec.structs.replace(summary, telemetry=(*summary.telemetry, cap))


def option_of(plot: Plot) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(plot.json)
    return read


def test_power_stands_under_its_cap_and_the_clock_beside_it() -> None:
    power, clock = power_plots(capped(), Pictures(bands=BANDS))
    assert (power.name, clock.name) == ("power", "clock")
    series = option_of(power)["series"]
    assert [one["name"] for one in series] == ["device node7/0", "power cap"]
    row = next(row for row in capped().telemetry if row.metric == "power_w")
    assert [value for _, value in series[0]["data"]] == list(row.values)
    assert {value for _, value in series[1]["data"]} == {700.0}
    assert "130 to 550 W, under a cap of 700 W" in power.description
    assert len(option_of(clock)["series"]) == 1


def test_points_are_bands_behind_it() -> None:
    (power, _) = power_plots(capped(), Pictures(bands=BANDS))
    areas = option_of(power)["series"][0]["markArea"]["data"]
    assert [(one[0]["name"], one[0]["xAxis"], one[1]["xAxis"]) for one in areas] == [
        ("torch-b4", 5.0, 14.0),
        ("torch-b8", 15.0, 24.5),
    ]


def test_too_many_points_leave_the_passes() -> None:
    many = tuple(
        Band(pass_name="bare", point=f"p{number}", start_s=number, end_s=number + 1)
        for number in range(MOST_BANDS + 1)
    )
    (power, _) = power_plots(capped(), Pictures(bands=(BANDS[0], *many)))
    areas = option_of(power)["series"][0]["markArea"]["data"]
    assert [one[0]["name"] for one in areas] == ["bare"]


def test_without_samples_there_is_none() -> None:
    assert power_plots(SAMPLES["empty"](), None) == ()


def test_what_is_drawn_here_is_not_drawn_twice() -> None:
    left = {row.metric for row in without_power(capped()).telemetry}
    assert left == {"gpu_percent", "temperature_c"}
