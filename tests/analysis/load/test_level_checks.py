import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from profharness.analysis.load.level_checks import Level, diagnose, level_findings


def published(times, items=8.0, at=8.0):
    """What a publication would print of these trials (standard deviation with ddof 0 over
    sqrt n).
    """
    rates = items / times
    root = math.sqrt(len(times))
    return Level(
        at,
        rates.mean() * times.mean() / items,
        rates.std() / root / rates.mean(),
        times.std() / root / times.mean(),
    )


@settings(max_examples=200, deadline=None)
@given(st.integers(10, 400), st.floats(0.0005, 0.4), st.integers(0, 2**32 - 1))
def test_even_scatter_is_clean(n, cv, seed):
    times = np.exp(cv * np.random.default_rng(seed).standard_normal(n))
    assert diagnose(published(times)) is None


@settings(max_examples=100, deadline=None)
@given(st.integers(20, 400), st.floats(0.001, 0.05), st.integers(0, 2**32 - 1), st.floats(30, 3000))
def test_one_compiling_trial_is_a_leak(n, cv, seed, slowdown):
    times = np.exp(cv * np.random.default_rng(seed).standard_normal(n))
    times[1] = slowdown
    found = diagnose(published(times))
    assert found.kind == "warmup-leak"
    assert found.slowdown == pytest.approx(slowdown, rel=0.35)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(20, 300), st.floats(0.001, 0.03), st.integers(0, 2**32 - 1), st.floats(0.005, 0.2)
)
def test_one_launch_only_trial_is_a_missing_sync(n, cv, seed, share):
    times = np.exp(cv * np.random.default_rng(seed).standard_normal(n))
    times[n // 2] = share
    assume(published(times).consistency > 1.03)
    assert diagnose(published(times)).kind == "missing-sync"


def test_a_slow_trial_that_is_no_compilation():
    times = np.ones(100) + 0.01 * np.random.default_rng(0).standard_normal(100)
    times[40] = 4.0
    found = diagnose(published(times))
    assert found.kind == "outlier-trial"
    assert found.slowdown == pytest.approx(4, rel=0.1)


def test_without_errors_only_the_blatant_counts():
    assert diagnose(Level(8, 20.0, None, None)).kind == "warmup-leak"
    assert diagnose(Level(8, 1.2, None, None)) is None
    assert diagnose(Level(8, 1.2, 0.1, None)) is None


def test_one_finding_per_kind_names_its_levels():
    leak, sync = Level(4, 20.0, 0.01, 0.94), Level(2048, 1.16, 0.143, 0.0095)
    found = level_findings([leak, Level(8, 19.0, 0.01, 0.94), Level(32, 1.0, 0.002, 0.002), sync])
    assert [(one.id, one.figures["levels"]) for one in found] == [
        ("missing-sync", "2048"),
        ("warmup-leak", "4, 8"),
    ]
    assert found[1].figures["consistency_max"] == 20.0
    assert level_findings([Level(4, 1.001, 0.01, 0.01)]) == ()


def test_errors_of_next_to_nothing_make_no_number_that_cannot_be() -> None:
    found = diagnose(Level(8, 1e60, 1e-59, 1e-30))
    assert found is not None
    assert math.isfinite(found.slowdown or 0)
