"""Plans of N processes by M cores: which is best, by how much, and where it is not proven."""

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.curves.plans import compare_plans
from profharness.analysis.records import Figure, PointSummary
from profharness.analysis.run.series import run_series


def plan(processes: int, cores: int, rate: float, half: float | None = 1.0) -> PointSummary:
    ends = {} if half is None else {"low": rate - half, "high": rate + half}
    return PointSummary(
        point=f"torch-b16-n{processes}-c{cores}",
        backend="torch",
        batch_size=16,
        processes=processes,
        cores_per_process=cores,
        throughput=rate,
        metrics={"throughput": Figure(value=rate, unit="jets/s", **ends)},
    )


def test_the_best_comes_first_and_the_others_as_shares_of_it() -> None:
    plans = compare_plans([plan(1, 8, 50), plan(2, 4, 80), plan(4, 2, 100), plan(8, 1, 90)])
    assert plans is not None
    assert plans.best == "torch-b16-n4-c2"
    assert [(one.processes, one.cores_per_process) for one in plans.plans] == [
        (4, 2),
        (8, 1),
        (2, 4),
        (1, 8),
    ]
    assert [one.of_best.value for one in plans.plans] == [1.0, 0.9, 0.8, 0.5]
    assert plans.overlaps_best == ()
    for one in plans.plans[1:]:
        assert one.of_best.low < one.of_best.value < one.of_best.high < 1


def test_overlapping_intervals_prove_nothing() -> None:
    plans = compare_plans([plan(1, 2, 98, 3), plan(2, 1, 100, 3), plan(1, 1, 50, 3)])
    assert plans is not None
    assert plans.overlaps_best == ("torch-b16-n1-c2",)


def test_without_an_interval_nothing_is_proven() -> None:
    plans = compare_plans([plan(1, 2, 10, None), plan(2, 1, 100, None)])
    assert plans is not None
    assert plans.overlaps_best == ("torch-b16-n1-c2",)
    assert plans.plans[1].of_best.high is None


def test_one_number_of_cores_or_one_rate_is_no_comparison() -> None:
    assert compare_plans([plan(1, 1, 10), plan(2, 1, 20)]) is None
    failed = PointSummary(point="p", processes=2, cores_per_process=2, state="failed")
    assert compare_plans([plan(1, 1, 10), failed]) is None
    assert compare_plans([PointSummary(point="b1", throughput=1.0)]) is None


def test_the_interval_of_a_share_covers_the_truth() -> None:
    """Two rates of known truth with normal errors: 95 % of the intervals hold their quotient."""
    rng = np.random.default_rng(11)
    truth, held, tries = 80 / 100, 0, 2000
    for a, b in zip(rng.normal(80, 3, tries), rng.normal(100, 2, tries), strict=True):
        plans = compare_plans([plan(1, 2, a, 1.96 * 3), plan(2, 1, b, 1.96 * 2)])
        assert plans is not None
        share = plans.plans[1].of_best
        held += share.low <= truth <= share.high
    assert held / tries == pytest.approx(0.95, abs=0.02)


def test_each_number_of_cores_is_a_curve_of_its_own() -> None:
    points = (plan(1, 2, 60), plan(2, 2, 110), plan(1, 1, 30), plan(2, 1, 60), plan(4, 1, 118))
    curves = run_series(points, (), "run")
    assert [(dict(one.key), one.levels) for one in curves] == [
        ({"backend": "torch", "cores_per_process": "2"}, (1.0, 2.0)),
        ({"backend": "torch", "cores_per_process": "1"}, (1.0, 2.0, 4.0)),
    ]
    diagonal = run_series((plan(1, 2, 60), plan(2, 1, 55)), (), "run")
    assert [one.levels for one in diagonal] == [(1.0,), (2.0,)]
