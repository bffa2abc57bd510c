import numpy as np
import pytest

from profharness.analysis.curves.batch import BATCH
from profharness.analysis.curves.fit import Measured, fit_curve, refit_copies
from profharness.analysis.curves.knee import (
    devices_for,
    devices_of,
    jobs_per_device,
    knee_of_asymptotes,
    knee_of_law,
    knee_of_points,
    still_rising,
    told_apart,
)
from profharness.analysis.curves.records import Knee
from profharness.analysis.curves.saturation import series
from profharness.analysis.curves.usl import USL
from profharness.report.text.saturation import saturation_text
from profharness.trace.scan_table import ScanTable
from tests.analysis.curves.curves_simulation import CLIENTS, inside, noisy, usl_truth


def test_margin():
    assert jobs_per_device(Knee(n=115)) == 105
    assert jobs_per_device(Knee(n=115), 0.0) == 115
    assert jobs_per_device(Knee(n=0.2)) == 1
    assert jobs_per_device(Knee(n=None)) is None
    # 1.9 less 9 % is nearest to 2, which is above the knee
    assert jobs_per_device(Knee(n=1.9)) == 1
    assert jobs_per_device(Knee(n=2.9)) == 2
    for tenths in range(10, 400):
        assert 1 <= jobs_per_device(Knee(n=tenths / 10)) <= tenths / 10


def test_levels_whose_intervals_all_overlap_are_not_told_apart():
    rate = np.array([100.0, 130.0, 150.0])
    assert not told_apart(rate, 0.5 * rate, 1.5 * rate)
    assert told_apart(rate, 0.9 * rate, 1.1 * rate)  # 110 and 135
    assert told_apart(rate, np.full(3, np.nan), np.full(3, np.nan))  # nothing is known of them
    # a server with one instance gives the same at every level, and that is known well
    same = np.array([200.0, 199.0, 201.0])
    assert told_apart(same, 0.99 * same, 1.01 * same)
    assert not told_apart(same, 0.8 * same, 1.2 * same)


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


@pytest.mark.slow
def test_knee_of_a_sharp_corner_covers():
    """Throughput flat once the device is full: 115 clients."""
    level = np.array([8.0, 16, 32, 64, 96, 128, 160, 192, 256])
    hits = 0
    for seed in range(20):
        fit = fit_curve(BATCH, noisy(level, 3.0 * np.minimum(level, 115), 0.03, seed))
        hits += inside(knee_of_asymptotes(fit, refit_copies(fit, str(seed))), 115)
    assert hits >= 16


@pytest.mark.statistics
def test_the_knee_covers_nine_times_in_ten():
    """200 seeds at 5 % noise, of the law and of a sharp corner."""
    lam, sigma, kappa = 10.0, 0.02, 0.0002
    truth = usl_truth(np.sqrt((1 - sigma) / kappa), lam, sigma, kappa) / lam
    corner = np.array([8.0, 16, 32, 64, 96, 128, 160, 192, 256])
    hits = np.zeros(2)
    for seed in range(1000, 1200):
        law = fit_curve(USL, noisy(CLIENTS, usl_truth(CLIENTS, lam, sigma, kappa), 0.05, seed))
        sharp = fit_curve(BATCH, noisy(corner, 3.0 * np.minimum(corner, 115), 0.05, seed))
        hits += [
            inside(knee_of_law(law, refit_copies(law, str(seed))), truth),
            inside(knee_of_asymptotes(sharp, refit_copies(sharp, str(seed))), 115),
        ]
    assert (hits / 200).min() >= 0.9


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


def test_a_knee_is_never_below_the_first_level() -> None:
    """A noisy series without a slope: the corner of the fitted curve lies far below one client, the
    knee does not.
    """
    table = ScanTable(
        source="x",
        axis="concurrency",
        key_columns=(),
        keys=((),) * 4,
        level=np.array([1.0, 2.0, 4.0, 8.0]),
        throughput=np.array([83.48, 75.49, 104.49, 129.99]),
        throughput_sem=np.array([4.5, 4.6, 7.2, 8.4]),
        latency_ms=np.full(4, np.nan),
        latency_sem_ms=np.full(4, np.nan),
    )
    (found,) = series(table)
    assert found.knee.n == pytest.approx(129.99 / 83.48)


def clients_of(level: list[float], throughput: list[float], sem: list[float]) -> ScanTable:
    unknown = np.full(len(level), np.nan)
    return ScanTable(
        source="x",
        axis="concurrency",
        key_columns=(),
        keys=((),) * len(level),
        level=np.array(level),
        throughput=np.array(throughput),
        throughput_sem=np.array(sem),
        latency_ms=unknown,
        latency_sem_ms=unknown,
    )


def test_one_odd_level_widens_the_interval_of_the_knee() -> None:
    """Two instances of 5 ms: one client's level was disturbed and is a third too low, so that the
    knee seems to lie at 3. Each level states an error of 1 %.
    """
    rates = [134.0, 398.0, 399.0, 401.0, 400.0, 399.0]
    (found,) = series(clients_of([1, 2, 3, 4, 8, 16], rates, [0.01 * rate for rate in rates]))
    assert found.knee.low <= 2.0 <= found.knee.high
    (clean,) = series(
        clients_of([1, 2, 3, 4, 8, 16], [200.0, *rates[1:]], [0.01 * rate for rate in rates])
    )
    assert (clean.knee.high - clean.knee.low) / clean.knee.n < 0.2
    assert clean.knee.low <= 2.0 <= clean.knee.high


def test_no_plan_is_given_where_the_levels_are_not_told_apart() -> None:
    rates = [90.0, 150.0, 130.0, 140.0]
    (found,) = series(clients_of([1, 2, 4, 8], rates, [0.3 * rate for rate in rates]))
    assert found.knee.n is not None
    assert found.jobs_per_device is None
    assert devices_of(found, 100).value is None
    text = saturation_text((found,), 100)
    assert "no number of jobs, since the intervals of all levels overlap" in text
    assert "per device (" not in text
    assert "devices" not in text
    (sure,) = series(clients_of([1, 2, 4, 8], rates, [0.02 * rate for rate in rates]))
    assert (sure.no_plan, sure.jobs_per_device) == ("", 1)


def test_a_fall_that_is_not_proven_does_not_put_the_peak_beyond_the_scan() -> None:
    """The law peaks at 12 of 16 clients, where it hardly falls: no fall is proven, and none is
    excluded.
    """
    level = np.array([1.0, 2, 4, 8, 16])
    law = usl_truth(level, 50.0, 0.1, 0.9 / 12**2)
    (found,) = series(clients_of(level.tolist(), law.tolist(), (0.03 * law).tolist()))
    assert found.usl is not None
    assert (found.usl.n_peak.value, found.usl.n_peak.high) == (None, None)
    assert found.usl.n_peak.low < 12


@pytest.mark.parametrize("last", [149.9691, 150.0])
def test_a_plateau_is_no_fall_because_its_last_level_is_a_hair_lower(last: float) -> None:
    """Three instances of 20 ms as measured, with few levels: the law peaks inside the scan and
    would put the knee 8 % too high.
    """
    (found,) = series(
        clients_of(
            [1, 2, 3, 4, 8, 16],
            [49.0, 98.0, 145.0, 149.0, 149.9697, last],
            [0.4, 1.0, 0.8, 4.4, 1.4, 1.4],
        )
    )
    assert found.usl is None
    assert found.knee.n == pytest.approx(3, rel=0.05)


def test_one_disturbed_level_does_not_choose_the_curve() -> None:
    """A stall at 2 clients, which its wide interval tells: what the law misses elsewhere counts,
    although the corner misses this one level.
    """
    (found,) = series(
        clients_of(
            [1, 2, 3, 4, 8, 16],
            [48.99, 85.99, 144.97, 148.79, 149.96, 149.98],
            [0.53, 5.92, 1.0, 2.02, 2.03, 2.03],
        )
    )
    assert found.usl is None
    assert found.knee.n == pytest.approx(3.06, rel=0.03)


def test_a_real_fall_is_still_one() -> None:
    level = [1.0, 2, 4, 8, 16, 32]
    law = usl_truth(np.array(level), 50.0, 0.03, 0.004)
    (found,) = series(clients_of(level, law.tolist(), (0.01 * law).tolist()))
    assert found.usl is not None
    assert found.usl.n_peak.value == pytest.approx(np.sqrt(0.97 / 0.004), rel=0.05)
