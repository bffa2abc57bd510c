"""Seeded synthetic series for the tests of curves, steps and knees."""

from __future__ import annotations

import numpy as np

from profharness.analysis.curves.fit import Measured

BATCHES = 2.0 ** np.arange(2, 12)
CLIENTS = 2.0 ** np.arange(0, 9)


def batch_truth(level, t_max, h, p):
    return t_max * level / (level**p + h**p) ** (1 / p)


def usl_truth(level, lam, sigma, kappa):
    return lam * level / (1 + sigma * (level - 1) + kappa * level * (level - 1))


def noisy(level, truth, noise, seed, *, errors=True):
    """The series with relative noise; `errors` states them as standard errors."""
    factor = np.exp(noise * np.random.default_rng([seed, len(level)]).standard_normal(len(level)))
    return Measured(
        np.asarray(level, float), truth * factor, np.full(len(level), noise if errors else 0.0)
    )


def inside(estimate, truth):
    """Whether the interval holds the truth; an open end holds everything on its side."""
    return (estimate.low is None or estimate.low <= truth) and (
        estimate.high is None or truth <= estimate.high
    )
