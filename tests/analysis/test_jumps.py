import numpy as np
import pytest

from profharness.analysis.curve_fit import Measured, fit_curve
from profharness.analysis.curves import BATCH
from profharness.analysis.jumps import find_step, impossible_rise, stands_out
from profharness.analysis.usl import USL
from tests.analysis.curves_simulation import BATCHES, CLIENTS, batch_truth, noisy, usl_truth

LINEAR = np.arange(1.0, 13.0)
SMOOTH = [
    (BATCHES, batch_truth(BATCHES, 25_000, 100, 1.0), BATCH),
    (BATCHES, batch_truth(BATCHES, 25_000, 60, 3.0), BATCH),
    (BATCHES, batch_truth(BATCHES, 20_000, 60, 0.6), BATCH),
    (CLIENTS, usl_truth(CLIENTS, 10, 0.02, 0.0002), USL),
    (LINEAR, usl_truth(LINEAR, 10, 0.05, 0.004), BATCH),
]


def found(level, truth, family, noise, seed, *, errors=True):
    return find_step(fit_curve(family, noisy(level, truth, noise, seed, errors=errors)), str(seed))


@pytest.mark.parametrize("case", range(len(SMOOTH)))
def test_smooth_curves_rarely_have_a_step(case):
    assert sum(found(*SMOOTH[case], 0.05, seed) is not None for seed in range(24)) <= 4  # of 24, at a true rate below 5 %


@pytest.mark.slow
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("case", range(len(SMOOTH)))
def test_smooth_curves_have_no_step_more_than_one_time_in_twenty(case, errors):
    seeds = range(1000, 1150)
    raised = sum(found(*SMOOTH[case], 0.05, seed, errors=errors) is not None for seed in seeds)
    assert raised <= 0.05 * len(seeds) + 2 * np.sqrt(0.05 * 0.95 * len(seeds))


@pytest.mark.parametrize(("ratio", "position"), [(1.3, 3), (1.3, 5), (1.3, 7), (0.7, 5), (2.0, 5)])
def test_a_step_of_thirty_per_cent_is_found(ratio, position):
    truth = batch_truth(BATCHES, 25_000, 100, 1.0) * np.where(np.arange(10) >= position, ratio, 1.0)
    steps = [found(BATCHES, truth, BATCH, 0.02, seed) for seed in range(8)]
    right = [step for step in steps if step is not None and step.at == BATCHES[position]]
    assert len(right) >= 6
    assert np.median([step.ratio for step in right]) == pytest.approx(ratio, rel=0.12)


def test_a_step_between_clients_is_found():
    truth = usl_truth(CLIENTS, 10, 0.02, 0.0002) * np.where(np.arange(9) >= 5, 1.5, 1.0)
    steps = [found(CLIENTS, truth, USL, 0.02, seed) for seed in range(8)]
    assert sum(step is not None and step.at == CLIENTS[5] for step in steps) >= 6


def test_small_and_short_series_are_left_alone():
    truth = batch_truth(BATCHES, 25_000, 100, 1.0) * np.where(np.arange(10) >= 5, 1.1, 1.0)
    assert found(BATCHES, truth, BATCH, 0.0005, 1) is None
    assert find_step(fit_curve(BATCH, noisy(BATCHES[:6], truth[:6] * [1, 1, 1, 2, 2, 2], 0.01, 1)), "x") is None


def test_the_same_seed_gives_the_same_step():
    truth = batch_truth(BATCHES, 25_000, 100, 1.0) * np.where(np.arange(10) >= 5, 1.4, 1.0)
    assert found(BATCHES, truth, BATCH, 0.03, 5) == found(BATCHES, truth, BATCH, 0.03, 5)


def test_a_bend_does_not_stand_out():
    bend = Measured(BATCHES, batch_truth(BATCHES, 1e4, 60, 8.0), np.zeros(10))
    assert not any(stands_out(bend, at, 0.3) for at in range(2, 9))


def test_impossible_rise():
    level = np.array([1.0, 4.0, 16.0])
    measured = Measured(level, np.array([10.0, 60.0, 90.0]), np.full(3, 0.01))
    step = impossible_rise(measured)
    assert step.at == 4.0
    assert step.ratio == pytest.approx(1.5)
    assert impossible_rise(Measured(level, np.array([10.0, 41.0, 90.0]), np.full(3, 0.01))) is None
    assert impossible_rise(Measured(level, np.array([10.0, 60.0, 90.0]), np.zeros(3))) is None
    assert impossible_rise(Measured(level, np.array([10.0, 60.0, 90.0]), np.full(3, 0.2))) is None
