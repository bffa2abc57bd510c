import numpy as np
import pytest

from profharness.analysis.curve_fit import Measured, fit_curve, refit_copies
from profharness.analysis.curves import BATCH
from profharness.analysis.knee import (
    devices_for,
    jobs_per_device,
    knee_of_asymptotes,
    knee_of_law,
    knee_of_points,
    still_rising,
)
from profharness.analysis.records import Knee
from profharness.analysis.usl import USL
from tests.analysis.curves_simulation import CLIENTS, inside, noisy, usl_truth


def test_margin():
    assert jobs_per_device(Knee(n=115)) == 105
    assert jobs_per_device(Knee(n=115), 0.0) == 115
    assert jobs_per_device(Knee(n=0.2)) == 1
    assert jobs_per_device(Knee(n=None)) is None


def test_devices_round_up_and_swap_ends():
    estimate = devices_for(1000, Knee(n=115, low=100, high=None))
    assert (estimate.value, estimate.low, estimate.high) == (10, None, 11)


def test_knee_of_the_law_covers():
    lam, sigma, kappa = 10.0, 0.02, 0.0002
    peak = np.sqrt((1 - sigma) / kappa)
    truth = usl_truth(peak, lam, sigma, kappa) / lam
    hits = 0
    for seed in range(20):
        fit = fit_curve(USL, noisy(CLIENTS, usl_truth(CLIENTS, lam, sigma, kappa), 0.05, seed))
        hits += inside(knee_of_law(fit, refit_copies(fit, str(seed))), truth)
    assert hits >= 16


def test_knee_of_a_sharp_corner_covers():
    """Throughput flat once the device is full: 115 clients."""
    level = np.array([8.0, 16, 32, 64, 96, 128, 160, 192, 256])
    hits = 0
    for seed in range(20):
        fit = fit_curve(BATCH, noisy(level, 3.0 * np.minimum(level, 115), 0.03, seed))
        hits += inside(knee_of_asymptotes(fit, refit_copies(fit, str(seed))), 115)
    assert hits >= 16


def test_a_rising_series_has_no_knee():
    level = np.arange(1.0, 9.0)
    fit = fit_curve(USL, noisy(level, 10 * level, 0.01, 0))
    assert still_rising(fit)
    knee = knee_of_law(fit, refit_copies(fit, "x"))
    assert knee.n is knee.high is None
    assert knee.low > 6


def test_knee_of_bare_points():
    measured = Measured(np.array([2.0, 8.0]), np.array([20.0, 50.0]), np.array([0.01, 0.02]))
    knee = knee_of_points(measured)
    assert knee.n == pytest.approx(5.0)
    assert knee.low < 5 < knee.high
    assert knee_of_points(Measured(measured.level, measured.throughput, np.zeros(2))).low is None
