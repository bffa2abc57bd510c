from __future__ import annotations

import math

import pytest

from profharness.analysis.records import Figure, PointSummary
from profharness.report.text.rates import throughput_ends, throughput_text, unproven

T = "\u2009"


def point(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    sem: float | None = None,
) -> PointSummary:
    metrics = (
        {}
        if low is None
        else {"throughput": Figure(value=value, unit="items/s", low=low, high=high)}
    )
    return PointSummary(point="p", throughput=value, throughput_sem=sem, metrics=metrics)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (point(24_281.0, 24_184.0, 24_378.0, sem=46.0), f"24{T}281 ± 97"),
        (point(146.0, 0.0, 318.0, sem=17.0), "146 (0 to 318)"),
        (point(146.0, 140.0, 190.0), "146 (140 to 190)"),
        (point(100.0, sem=0.5), "100.00 ± 0.98"),
        (point(100.0), "100.0"),
        (point(None), ""),
        (point(math.nan, 1.0, 2.0), ""),
        (point(100.0, math.nan, 101.0, sem=0.5), "100.00 ± 0.98"),
    ],
)
def test_throughput_carries_the_interval_of_the_metric_and_else_that_of_its_standard_error(
    shown: PointSummary, text: str
) -> None:
    assert throughput_text(shown) == text


def test_a_rate_is_never_below_zero() -> None:
    assert throughput_ends(point(1.0, sem=10.0)) == (0.0, pytest.approx(20.6, abs=0.01))


def test_levels_apart_are_proven_and_the_same_throughput_needs_no_proof() -> None:
    best = point(100.0, 99.0, 101.0)
    assert not unproven(best, (best, point(50.0, 45.0, 55.0), point(99.0, 98.0, 100.0)))


@pytest.mark.parametrize(
    "other", [point(90.0, 80.0, 100.0), point(99.0, 79.0, 119.0), point(140.0, 60.0, 220.0)]
)
def test_an_overlap_that_leaves_more_than_five_per_cent_open_is_no_proof(
    other: PointSummary,
) -> None:
    assert unproven(point(100.0, 98.0, 102.0), (other,))


def test_without_intervals_nothing_is_said() -> None:
    assert not unproven(point(100.0), (point(99.0, 50.0, 150.0),))
    assert not unproven(point(100.0, 90.0, 110.0), (point(99.0), point(None)))
