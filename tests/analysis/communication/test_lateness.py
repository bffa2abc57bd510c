"""A straggler is named where there is one and never where there is none: generated ranks whose
lateness scatters with a correlation from step to step, as that of ranks on shared cores does.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from profharness.analysis.communication.lateness import FEWEST, lateness, margins
from profharness.analysis.communication.matching import matched
from profharness.analysis.communication.skew import skew
from profharness.analysis.communication.straggler import straggler
from tests.analysis.communication.test_on_cpu import arrivals_of, talk

STEP_NS = 45_000_000
I64 = NDArray[np.int64]


def scatter(
    rng: np.random.Generator, shape: tuple[int, int], share: float, correlation: float
) -> NDArray[np.float64]:
    """Of (rank, step), ns: a stationary autoregressive series of each rank, with a deviation of
    `share` of a step.
    """
    rows = [rng.standard_normal(shape[0])]
    for _ in range(shape[1] + 40):
        fresh = np.sqrt(1 - correlation**2) * rng.standard_normal(shape[0])
        rows.append(correlation * rows[-1] + fresh)
    found: NDArray[np.float64] = np.stack(rows[-shape[1] :], axis=1) * share * STEP_NS
    return found


def named(
    seed: int, ranks: int, steps: int, *, share: float, correlation: float, late: float = 0.0
) -> list[str]:
    """The ranks that the finding names, of two collectives together in each step; rank 1 comes
    `late` by a share of the step.
    """
    rng = np.random.default_rng([seed, ranks, steps])
    lag = scatter(rng, (ranks, steps), share, correlation)
    lag[1] += late * STEP_NS
    own = rng.standard_normal((ranks, 2 * steps)) * share * STEP_NS / 5
    begins = np.arange(2 * steps) // 2 * STEP_NS + np.arange(2 * steps) % 2 * 200_000
    starts = begins + np.repeat(lag, 2, axis=1) + own
    arriving = arrivals_of(starts.astype(np.int64))
    found = straggler(talk(skew(arriving, *matched(arriving))))
    return [str(one.figures["rank"]) for one in found]


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.7])
def test_ranks_without_a_straggler_have_none(correlation: float) -> None:
    """At most one in 200, with scatter of a quarter of the step."""
    worlds = [(seed, ranks, steps) for seed in range(50) for ranks in (2, 4) for steps in (20, 50)]
    wrong = [one for one in worlds if named(*one, share=0.25, correlation=correlation)]
    assert len(wrong) <= len(worlds) // 200


@pytest.mark.parametrize("late", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_straggler_is_named(ranks: int, late: float) -> None:
    """Among ranks that scatter by a tenth of its lateness, nine of ten times at least, and
    never another one.
    """
    found = [
        named(seed, ranks, 20, share=late / 10, correlation=0.5, late=late) for seed in range(40)
    ]
    assert sum(one == ["rank 1"] for one in found) >= 36
    assert all(one in ([], ["rank 1"]) for one in found)


def test_lateness_that_costs_nothing_names_nobody() -> None:
    assert named(1, 2, 20, share=0.001, correlation=0.0, late=0.01) == []


def series(values: list[int]) -> tuple[list[I64], list[I64]]:
    return [np.arange(len(values))], [np.array(values)]


def test_a_mean_that_one_quarter_does_not_share_is_not_steady() -> None:
    found = lateness(*series([100] * 30 + [1] * 10))
    assert found is not None
    assert found.mean_ns == pytest.approx(75.25)
    assert not found.steady
    steady = lateness(*series([100, 101, 99, 100] * 10))
    assert steady is not None
    assert steady.steady
    assert 95 < steady.low_ns < steady.mean_ns == 100


def test_too_few_calls_say_nothing() -> None:
    assert lateness(*series([100] * (FEWEST - 1))) is None
    assert lateness(*series([100] * FEWEST)) is not None


def test_how_long_after_the_last_of_the_others_each_rank_comes() -> None:
    found = margins(np.array([[0, 5, 20], [7, 7, 3]]))
    assert found.tolist() == [[-20, -15, 15], [0, 0, -4]]
