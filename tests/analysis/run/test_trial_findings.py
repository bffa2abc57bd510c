import numpy as np
import pytest

from profharness.analysis.run.trial_findings import drift_finding, trial_findings
from profharness.stats.throughput import Drift, summarise_trials

N = 100


def clean(seed, n=N, cv=0.02, median=1e6):
    return np.rint(median * np.exp(cv * np.random.default_rng(seed).standard_normal(n))).astype(
        np.int64
    )


def ids(durations):
    stats = summarise_trials(durations, 8)
    return [one.id for one in trial_findings(durations, stats, "p")]


@pytest.mark.parametrize("cv", [0.0, 0.002, 0.02, 0.1, 0.2])
@pytest.mark.parametrize("n", [10, 30, 100, 1000])
def test_clean_trials_raise_nothing(n, cv):
    raised = [seed for seed in range(60) if ids(clean(seed, n, cv))]
    assert len(raised) <= 1  # of 60; the checks ask for ten MADs and for three sigmas


def test_skewed_but_clean_trials_raise_nothing():
    """Operating-system jitter has a tail on one side."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        assert ids((1e6 * (1 + rng.gamma(2.0, 0.01, N))).astype(np.int64)) == []


@pytest.mark.parametrize(
    ("position", "expected"),
    [(0, "warmup-leak"), (2, "warmup-leak"), (50, "outlier-trial"), (99, "outlier-trial")],
)
def test_one_slow_trial(position, expected):
    durations = clean(1)
    durations[position] *= 20
    found = trial_findings(durations, summarise_trials(durations, 8), "p")
    assert [one.id for one in found] == [expected]
    assert found[0].point == "p"
    assert found[0].figures["longest_ns"] == durations[position]
    assert found[0].figures["moved_share"] == pytest.approx(0.19, abs=0.02)
    assert found[0].message.startswith(f"trial {position} of 100 ")
    assert " raises the mean time by" in found[0].message


def test_slow_decay_is_a_leak():
    durations = (clean(2) * (1 + 2 * np.exp(-np.arange(N) / 5))).astype(np.int64)
    assert ids(durations) == ["warmup-leak"]


def test_a_far_trial_that_moves_nothing_is_no_finding():
    durations = clean(3, 1000)
    durations[500] = int(durations[500] * 1.5)
    assert ids(durations) == []


@pytest.mark.parametrize("count", [1, 5, 20])
def test_launch_only_trials(count):
    durations = clean(4, median=84e6)
    durations[7 : 7 + count] = 3_700_000
    found = trial_findings(durations, summarise_trials(durations, 2048), "p")
    assert [one.id for one in found] == ["missing-sync"]
    assert found[0].figures["trials"] == count


def test_a_clock_boost_is_not_a_missing_sync():
    durations = clean(5, cv=0.002)
    durations[:5] = (durations[:5] * 0.85).astype(np.int64)
    assert "missing-sync" not in ids(durations)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_too_few(n):
    assert ids(clean(6, n, 0.001)) == ["too-few-trials"]


def test_of_few_trials_an_odd_one_is_a_warning():
    """One disturbed trial among five looks like a fault; among many it is one."""
    for n, severity in ((5, "warning"), (9, "warning"), (30, "error")):
        times = clean(7, n, 0.01)
        times[0] *= 20
        found = trial_findings(times, summarise_trials(times, 1))
        assert [one.severity for one in found if one.id == "warmup-leak"] == [severity]


def test_drift_finding_only_beyond_chance():
    assert drift_finding(Drift(0.2, significant=False)) == ()
    (found,) = drift_finding(Drift(-0.12, significant=True, point="torch-b4"))
    assert found.id == "drift"
    assert "-12.0 %" in found.message
