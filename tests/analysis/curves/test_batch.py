import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.curves.batch import (
    BATCH,
    BatchModel,
    batch_curve,
    model_crossing,
    monotone_crossing,
)
from profharness.analysis.curves.fit import Measured, fit_curve, local_noise, refit_copies
from profharness.analysis.curves.least_squares import extra_scatter, least_squares
from profharness.analysis.curves.usl import USL, UslModel, fall_observed, peaks, usl_law
from tests.analysis.curves.curves_simulation import (
    BATCHES,
    CLIENTS,
    batch_truth,
    inside,
    noisy,
    usl_truth,
)

SHAPES = [(100.0, 1.0), (60.0, 1.8), (300.0, 1.2), (80.0, 5.0)]


@settings(max_examples=40, deadline=None)
@given(st.floats(10, 1e6), st.floats(8, 1000), st.floats(0.6, 6))
def test_exact_series_give_back_their_parameters(t_max, h, p):
    fit = fit_curve(BATCH, Measured(BATCHES, batch_truth(BATCHES, t_max, h, p), np.zeros(10)))
    assert np.exp(fit.values) == pytest.approx(batch_truth(BATCHES, t_max, h, p), rel=1e-3)
    if h < 500:
        assert np.exp(fit.theta) == pytest.approx([t_max, h, p], rel=0.05)


@pytest.mark.parametrize("model", [BatchModel, UslModel])
def test_slopes_are_derivatives(model):
    step = np.tile((np.arange(10) >= 4).astype(float), (3, 1))
    theta = np.random.default_rng(0).uniform(0.01, 1.0, (3, 4))
    at = model(BATCHES, step)
    values, slopes = at(theta)
    for parameter in range(4):
        moved = theta.copy()
        moved[:, parameter] += 1e-6
        assert (at(moved)[0] - values) / 1e-6 == pytest.approx(
            slopes[:, :, parameter], rel=1e-3, abs=1e-4
        )


def test_fit_never_ends_worse_than_it_starts():
    rng = np.random.default_rng(1)
    logs = np.log(batch_truth(BATCHES, 1e4, 50, 1.5)) + rng.standard_normal((30, 10))
    measured = Measured(BATCHES, np.exp(logs[0]), np.zeros(10))
    start = np.tile(np.log([1e4, 50, 1.5]), (30, 1))
    fits = least_squares(BatchModel(BATCHES), start, logs, np.ones(10), BATCH.box(measured))
    assert np.all(fits.squares <= ((logs - BatchModel(BATCHES)(start)[0]) ** 2).sum(axis=1))


def coverage(seeds, h, p, *, errors):
    """Share of seeds in which each of t_max, b_half, p and b90 lies in its interval, at 5 %
    noise.
    """
    truth = batch_truth(BATCHES, 25_000, h, p)
    b90 = h * 0.9 / (1 - 0.9**p) ** (1 / p)
    hits = np.zeros(4)
    for seed in seeds:
        curve = batch_curve(
            fit_curve(BATCH, noisy(BATCHES, truth, 0.05, seed, errors=errors)), str(seed)
        )
        hits += [
            inside(curve.t_max, 25_000),
            inside(curve.b_half, h),
            inside(curve.p, p),
            inside(curve.b90, b90),
        ]
    return hits / len(seeds)


@pytest.mark.parametrize(("h", "p"), SHAPES)
def test_batch_intervals_cover(h, p):
    assert coverage(range(20), h, p, errors=True).min() >= 0.8  # 0.9 within the reach of 20 seeds


@pytest.mark.statistics
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize(("h", "p"), SHAPES)
def test_batch_intervals_cover_nine_in_ten(h, p, errors):
    assert coverage(range(1000, 1200), h, p, errors=errors).min() >= 0.9


def usl_coverage(seeds, truth, *, errors):
    lam, sigma, kappa = truth
    peak = math.sqrt((1 - sigma) / kappa) if kappa else math.inf
    hits = np.zeros(4)
    for seed in seeds:
        fit = fit_curve(USL, noisy(CLIENTS, usl_truth(CLIENTS, *truth), 0.05, seed, errors=errors))
        law = usl_law(fit, refit_copies(fit, str(seed)))
        hits += [
            inside(law.lambda_, lam),
            inside(law.sigma, sigma),
            inside(law.kappa, kappa),
            inside(law.n_peak, peak),
        ]
    return hits / len(seeds)


LAWS = [(10.0, 0.02, 0.0002), (10.0, 0.1, 0.004), (10.0, -0.01, 0.001), (10.0, 0.05, 0.0)]


@pytest.mark.slow
@pytest.mark.parametrize("truth", LAWS)
def test_usl_intervals_cover(truth):
    assert usl_coverage(range(20), truth, errors=True).min() >= 0.8


@pytest.mark.statistics
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("truth", LAWS)
def test_usl_intervals_cover_nine_in_ten(truth, errors):
    assert usl_coverage(range(1000, 1200), truth, errors=errors).min() >= 0.9


def test_no_fall_gives_no_peak():
    level = np.arange(1.0, 13.0)
    fit = fit_curve(USL, noisy(level, usl_truth(level, 10, 0.05, 0.0), 0.01, 3))
    law = usl_law(fit, refit_copies(fit, "x"))
    assert not fall_observed(fit)
    assert (law.n_peak.value, law.n_peak.low, law.n_peak.high) == (None, 12.0, None)


def test_peaks():
    thetas = np.array([[0, 0.1, 0.004], [0, 0.1, 0.0], [0, 2.0, 0.1]])
    assert peaks(thetas).tolist() == pytest.approx([15.0, math.inf, 1.0])


def test_unsaturated_series_is_open_above():
    fit = fit_curve(BATCH, noisy(BATCHES, batch_truth(BATCHES, 1e6, 50_000, 1.0), 0.02, 0))
    curve = batch_curve(fit, "x")
    assert curve.b90.value is None
    assert curve.b90.high is None
    assert curve.b90.low <= BATCHES[-1]
    assert curve.t_max.high is None or curve.t_max.high > 1e5


def test_fewer_levels_than_parameters():
    assert fit_curve(BATCH, Measured(BATCHES[:3], BATCHES[:3], np.zeros(3))) is None


def test_monotone_crossing():
    level = np.array([1.0, 2.0, 4.0, 8.0])
    logs = np.log([[10.0, 20.0, 15.0, 40.0], [10.0, 10.0, 10.0, 10.0]])
    assert monotone_crossing(level, logs, np.log([20.0, 20.0])).tolist() == [2.0, np.inf]
    assert monotone_crossing(level, logs[:1], np.log([28.284271247461902]))[0] == pytest.approx(
        4 * 2**0.5
    )
    assert monotone_crossing(level, logs[:1], np.log([5.0]))[0] == 1.0


@settings(deadline=None)
@given(st.floats(0.3, 25), st.floats(1, 1e4), st.floats(0.1, 0.99))
def test_model_crossing_is_on_the_curve(p, h, share):
    at = model_crossing(np.log([[1.0, h, p]]), share)
    assert batch_truth(at, 1.0, h, p)[0] == pytest.approx(share, rel=1e-6)


def test_extra_scatter():
    rng = np.random.default_rng(0)
    residual = rng.normal(0, 0.05, 4000)
    assert extra_scatter(residual, np.full(4000, 0.03), 4000) == pytest.approx(0.04, rel=0.05)
    assert extra_scatter(residual, np.full(4000, 0.2), 4000) == 0
    assert extra_scatter(np.zeros(5), np.zeros(5), 2) == 0
    assert extra_scatter(residual[:3], np.zeros(3), 0) == 0


def test_local_noise_sees_scatter_and_not_bends():
    smooth = batch_truth(BATCHES, 1e4, 60, 1.5)
    assert local_noise(Measured(BATCHES, smooth, np.zeros(10))) < 0.02
    level = np.arange(1.0, 200.0)
    assert local_noise(noisy(level, np.full(199, 10.0), 0.05, 1)) == pytest.approx(0.05, rel=0.25)
    assert local_noise(Measured(level[:3], level[:3], np.zeros(3))) == 0
