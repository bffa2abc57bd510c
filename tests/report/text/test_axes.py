"""The sentences on a scan over axes: nothing is advised that is not proven."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from profharness.analysis.axes.curves import curves_of
from profharness.analysis.axes.noise import PointMeans
from profharness.analysis.axes.points import RatedPoints
from profharness.analysis.axes.records import AxesScan, AxisLevels, PointRate
from profharness.report.axes.words import answer, next_step, trust


def scan_of(rates: tuple[float, ...], overlaps: tuple[str, ...]) -> AxesScan:
    levels = tuple(range(1, len(rates) + 1))
    axes = (AxisLevels(name="batch", values=levels, is_number=True),)
    points = tuple(
        PointRate(
            point=f"b{level}",
            parameters={"batch": level},
            throughput=rate,
            low=0.9 * rate,
            high=1.1 * rate,
        )
        for level, rate in zip(levels, rates, strict=True)
    )
    best = max(points, key=lambda point: point.throughput)
    places = np.arange(len(rates)).reshape(-1, 1)
    means = PointMeans(np.log(rates), np.full(len(rates), 3), 0.05, 10)
    rated = RatedPoints(axes, points, places, means, "items/s", ())
    return AxesScan(
        axes=axes,
        unit="items/s",
        points=points,
        best=best.point,
        recommended=best.point,
        overlaps_best=overlaps,
        noise=0.05,
        curves=curves_of(rated, best, {}),
    )


@pytest.mark.parametrize(
    ("rates", "overlaps", "told"),
    [
        ((100.0, 150.0, 200.0), (), True),
        ((100.0, 150.0, 200.0), ("b2",), False),  # as good as the largest, for all that is known
        ((100.0, 150.0, 200.0), ("b1",), True),
        ((100.0, 200.0, 150.0), (), False),
    ],
)
def test_only_a_gain_that_is_proven_is_worth_scanning_beyond(
    rates: tuple[float, ...], overlaps: tuple[str, ...], told: bool
) -> None:
    assert ("batch still gains at 3, the largest" in next_step(scan_of(rates, overlaps))) is told


def test_where_no_setting_keeps_a_limit_the_nearest_is_named() -> None:
    scan = scan_of((100.0, 200.0), ())
    points = tuple(
        replace(point, kept=False, values={"p99_ms": latency, "accuracy": 0.5})
        for point, latency in zip(scan.points, (612.0, 900.0), strict=True)
    )
    none_kept = replace(scan, best=None, points=points, requires=("p99_ms <= 500",))
    assert next_step(none_kept).startswith(
        "The lowest latency p99 is 612.0 ms, at batch 1. Measure settings"
    )
    silent = replace(none_kept, points=tuple(replace(point, values={}) for point in points))
    assert next_step(silent).startswith("No point has a latency p99, which takes more requests")
    other = replace(none_kept, requires=("accuracy >= 0.7",))
    assert next_step(other).startswith("Look at what the executions said")


def test_a_limit_of_latency_is_told_with_its_unit() -> None:
    scan = replace(scan_of((100.0, 200.0), ()), requires=("p99_ms <= 500", "accuracy >= 0.7"))
    assert "at batch 2 among points with latency p99 <= 500 ms and accuracy >= 0.7." in answer(scan)
    none_kept = replace(scan, best=None)
    assert answer(none_kept) == "None of 2 points keeps latency p99 <= 500 ms and accuracy >= 0.7."


def test_what_effects_need_is_not_asked_of_a_scan_without_a_point() -> None:
    scan = replace(scan_of((100.0, 200.0), ()), effects_need="intervals need repeats: --repeats 3")
    assert trust(scan).endswith("; effects: intervals need repeats: --repeats 3")
    assert trust(replace(scan, points=())) == "0 executions of 0 points, which scatter by 5.0 %"
