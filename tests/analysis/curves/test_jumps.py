import numpy as np
import pytest

from profharness.analysis.curves.fit import Measured
from profharness.analysis.curves.jumps import find_step, impossible_rise, stands_out
from tests.analysis.curves.curves_simulation import BATCHES, CLIENTS, batch_truth, noisy, usl_truth

LINEAR = np.arange(1.0, 13.0)
SMOOTH = {
    "hyperbola": (BATCHES, batch_truth(BATCHES, 25_000, 100, 1.0)),
    "sharp bend": (BATCHES, batch_truth(BATCHES, 25_000, 60, 3.0)),
    "soft bend": (BATCHES, batch_truth(BATCHES, 20_000, 60, 0.6)),
    "not saturated": (BATCHES, 10 * BATCHES),
    "flat": (BATCHES, np.full(10, 25_000.0)),
    "USL with a fall": (CLIENTS, usl_truth(CLIENTS, 10, 0.1, 0.004)),
    "USL without": (CLIENTS, usl_truth(CLIENTS, 10, 0.05, 0.0)),
    "superlinear": (CLIENTS, usl_truth(CLIENTS, 10, -0.01, 0.001)),
    "linear spacing": (LINEAR, usl_truth(LINEAR, 10, 0.05, 0.004)),
    "16 levels": (np.arange(1.0, 17.0), batch_truth(np.arange(1.0, 17.0), 100, 5, 2.0)),
    "7 levels": (BATCHES[2:9], batch_truth(BATCHES[2:9], 25_000, 100, 1.5)),
}


def found(level, truth, noise, seed, *, errors=True):
    return find_step(noisy(level, truth, noise, seed, errors=errors), str(seed))


@pytest.mark.parametrize("case", SMOOTH)
def test_smooth_curves_rarely_have_a_step(case):
    assert (
        sum(found(*SMOOTH[case], 0.05, seed) is not None for seed in range(8)) <= 2
    )  # of 8, at a true rate below 5 %


@pytest.mark.statistics
@pytest.mark.parametrize("errors", [True, False], ids=["with errors", "without"])
@pytest.mark.parametrize("case", SMOOTH)
def test_smooth_curves_have_no_step_more_than_one_time_in_twenty(case, errors):
    seeds = range(1000, 1060)  # the benchmark step_detection.py counts 200
    raised = sum(found(*SMOOTH[case], 0.05, seed, errors=errors) is not None for seed in seeds)
    assert raised <= 0.05 * len(seeds) + 2 * np.sqrt(0.05 * 0.95 * len(seeds))


def test_few_trials_make_no_false_steps():
    """Errors from the scatter of three trials are themselves uncertain by a half."""
    level, truth = SMOOTH["hyperbola"]
    raised = 0
    for seed in range(16):
        trials = truth[:, None] * np.exp(
            0.05 * np.random.default_rng([seed, 3]).standard_normal((10, 3))
        )
        mean = trials.mean(axis=1)
        raised += (
            find_step(
                Measured(level, mean, trials.std(axis=1, ddof=1) / np.sqrt(3) / mean), str(seed)
            )
            is not None
        )
    assert raised <= 3


@pytest.mark.parametrize(
    ("ratio", "position"), [(1.3, 1), (1.3, 2), (1.3, 5), (1.3, 9), (0.7, 1), (0.7, 5), (2.0, 5)]
)
@pytest.mark.parametrize("case", ["hyperbola", "sharp bend", "not saturated"])
def test_a_step_of_thirty_per_cent_is_found_at_every_place(case, ratio, position):
    """100 trials of 5 % each: at the first level and the last too, and where the curve bends."""
    level, truth = SMOOTH[case]
    steps = [
        found(level, truth * np.where(np.arange(10) >= position, ratio, 1.0), 0.005, seed)
        for seed in range(2)
    ]
    assert [step.at for step in steps] == [level[position]] * 2
    assert [step.ratio for step in steps] == pytest.approx([ratio] * 2, rel=0.08)


@pytest.mark.parametrize("ratio", [1.3, 0.7])
def test_a_step_where_the_curve_bends_is_found(ratio):
    """Between 32 and 64 the curve turns from proportional to flat: the rise into the jump is less
    than the one before it.
    """
    level, truth = SMOOTH["sharp bend"]
    step = found(level, truth * np.where(level >= 64, ratio, 1.0), 0.005, 1)
    assert step.at == 64
    assert step.ratio == pytest.approx(ratio, rel=0.1)


@pytest.mark.parametrize(
    ("case", "seen"), [("hyperbola", True), ("flat", True), ("not saturated", False)]
)
def test_a_low_last_level_of_a_rise_is_the_beginning_of_a_plateau(case, seen):
    """On a curve that has its plateau it is a jump; on a proportional one a bend or a fall explains
    it as well.
    """
    level, truth = SMOOTH[case]
    assert (
        found(level, truth * np.where(np.arange(10) >= 9, 0.7, 1.0), 0.005, 1) is not None
    ) == seen


def test_a_step_on_a_corner_is_the_corner_of_another_curve():
    """A proportional rise up to 32 and flat from 64 on: a higher plateau has its corner later, and
    nothing tells it from a jump.
    """
    truth = np.minimum(10 * BATCHES, 450.0)
    assert found(BATCHES, truth * np.where(BATCHES >= 64, 1.3, 1.0), 0.005, 1) is None


CURVES = ((25_000, 100, 1.0), (25_000, 60, 3.0), (20_000, 60, 0.6), (20_000, 200, 1.8))


def share_found(noise, ratio, seeds=200, *, errors=True):
    """Share of series with a jump at a level drawn at random that is found there, or one level
    beside it.
    """
    hits = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 10])
        curve, at = CURVES[int(rng.integers(len(CURVES)))], int(rng.integers(2, 9))
        truth = batch_truth(BATCHES, *curve) * np.where(np.arange(10) >= at, ratio, 1.0)
        step = found(BATCHES, truth, noise, seed, errors=errors)
        hits += step is not None and abs(int(np.searchsorted(BATCHES, step.at)) - at) <= 1
    return hits / seeds


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("noise", "ratio", "least"),
    [
        (0.005, 1.3, 0.98),
        (0.005, 0.7, 0.98),  # 100 trials of 5 % noise each, as a scan takes
        (0.016, 1.3, 0.95),
        (0.016, 0.7, 0.97),  # 10 trials
        (0.05, 1.3, 0.55),
        (
            0.05,
            0.7,
            0.78,
        ),  # one trial: ten such levels do not hold much more (benchmarks/step_detection.py)
    ],
)
def test_how_often_a_step_is_found_by_the_error_of_the_levels(noise, ratio, least):
    assert share_found(noise, ratio, 60) >= least


def test_a_step_of_thirty_per_cent_is_found_at_the_error_of_a_scan():
    """5 % noise of a trial, 100 trials: the fast form of the test above."""
    assert share_found(0.005, 1.3, seeds=12) == 1


def test_one_standard_error_is_granted_to_what_stands_out():
    curve = np.array([1.0, 1.9, 3.4, 5.6, 8.2, 14.0, 15.5, 16.5, 17.0, 17.2])
    sure, unsure = (Measured(BATCHES, curve, np.full(10, error)) for error in (0.001, 0.2))
    assert not stands_out(sure, 5, 1.5)
    assert stands_out(unsure, 5, 1.5)


def test_a_step_between_clients_is_found():
    truth = usl_truth(CLIENTS, 10, 0.02, 0.0002) * np.where(np.arange(9) >= 5, 1.5, 1.0)
    steps = [found(CLIENTS, truth, 0.02, seed) for seed in range(8)]
    assert sum(step is not None and step.at == CLIENTS[5] for step in steps) >= 6


def test_small_and_short_series_are_left_alone():
    truth = batch_truth(BATCHES, 25_000, 100, 1.0) * np.where(np.arange(10) >= 5, 1.1, 1.0)
    assert found(BATCHES, truth, 0.0005, 1) is None
    assert find_step(noisy(BATCHES[:6], truth[:6] * [1, 1, 1, 2, 2, 2], 0.01, 1), "x") is None


def test_the_same_seed_gives_the_same_step():
    truth = batch_truth(BATCHES, 25_000, 100, 1.0) * np.where(np.arange(10) >= 5, 1.4, 1.0)
    assert found(BATCHES, truth, 0.03, 5) == found(BATCHES, truth, 0.03, 5)


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


@pytest.mark.parametrize("ratio", [1.5, 0.6])
def test_of_many_levels_a_chosen_few_are_searched_and_the_jump_is_placed_among_all(ratio):
    """The search over all of 500 levels took longer than anybody waits."""
    level = np.arange(1.0, 501.0)
    truth = batch_truth(level, 25_000, 100, 1.0)
    step = found(level, truth * np.where(level >= 138, ratio, 1.0), 0.005, 0)
    assert step.at == 138
    assert step.ratio == pytest.approx(ratio, rel=0.05)
    assert found(level, truth, 0.005, 0) is None
