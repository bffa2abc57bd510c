"""What instrumentation costs: one minus the throughput under a layer over the bare throughput, at
the same points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from profharness.analysis.records import Estimate
from profharness.stats.bootstrap import bootstrap_means, generator, percentile_interval
from profharness.stats.throughput import NO_DRIFT, Drift
from profharness.trace.model import F64

_S = 1e9


def rates(durations_ns: npt.ArrayLike, items: npt.ArrayLike) -> F64:
    """Items per second of each trial."""
    return np.asarray(np.asarray(items, np.float64) / np.asarray(durations_ns, np.float64) * _S)


def layer_overhead(
    bare: Sequence[F64], layer: Sequence[F64], drift: Drift = NO_DRIFT, seed: str = ""
) -> Estimate:
    """1 - T_layer / T_bare over points given in the same order as rates per trial (items/s).

    Points count equally (geometric mean of their ratios). The 95 % interval comes from block
    bootstraps of both passes and is widened by the drift of the repeated bare points; no layer
    takes more than all of the throughput, so it ends at 1. An end is None when a pass has a single
    trial somewhere. Raises ValueError without points or for unequal lengths.
    """
    if not bare or len(bare) != len(layer):
        raise ValueError("overhead needs the same points in both passes")
    value = 1 - math.exp(
        float(np.mean([math.log(b.mean() / a.mean()) for a, b in zip(bare, layer, strict=True)]))
    )
    if min(r.size for r in (*bare, *layer)) < 2:
        return Estimate(value=value)
    logs = [
        _log_means(b, f"{seed}/layer/{i}") - _log_means(a, f"{seed}/bare/{i}")
        for i, (a, b) in enumerate(zip(bare, layer, strict=True))
    ]
    low, high = percentile_interval(1 - np.exp(np.mean(logs, axis=0)))
    margin = abs(drift.relative) * (1 - value)
    return Estimate(
        value=value, low=min(low - margin, value), high=min(max(high + margin, value), 1.0)
    )


def _log_means(values: F64, seed: str) -> F64:
    means = bootstrap_means(values[None, :], generator("overhead", seed))[0]
    # The stretch for few blocks may carry a wild sample below zero, where no rate can be.
    return np.asarray(np.log(np.maximum(means, values.min() / 2)))
