"""The uncertainty of a point, the same for every table, file, plot and fit: the 95 % interval of
its figures, which holds the drift of repeated points, and the standard error that goes with it.
"""

from __future__ import annotations

import math

from profharness.analysis.records import Figure, PointSummary
from profharness.stats.bootstrap import Z95


def throughput_ends(point: PointSummary) -> tuple[float, float] | None:
    """The ends of a point's throughput in items/s, those of its standard error where its figure has
    none; None where its uncertainty is not known.
    """
    value, sem = _finite(point.throughput), _finite(point.throughput_sem)
    if value is None:
        return None
    ends = figure_ends(point.metrics.get("throughput"))
    if ends is not None and ends[0] <= value <= ends[1]:
        return ends
    return (max(value - Z95 * sem, 0.0), value + Z95 * sem) if sem else None


def throughput_sem(point: PointSummary) -> float | None:
    """The standard error of a point's throughput that goes with its interval, in items/s."""
    return _largest(sem_of(throughput_ends(point)), point.throughput_sem)


def latency_sem_ms(point: PointSummary) -> float | None:
    """The standard error of a point's mean latency that goes with its interval.

    Without an interval, that of its trials; a loop's latency is its level over its throughput, so
    that its relative error is at least that of the throughput.
    """
    # pages of traces have no trials, and load nothing for them
    from profharness.stats.throughput import sem_ms

    if point.latency_ms is None:
        return None
    sem = sem_of(figure_ends(point.metrics.get("latency_mean")))
    if sem is not None:
        return _largest(sem, sem_ms(point.trials_ms))
    rate = throughput_sem(point)
    relative = rate / point.throughput if rate is not None and point.throughput else None
    of_loop = None if relative is None or point.rate is not None else point.latency_ms * relative
    return _largest(sem_ms(point.trials_ms), of_loop)


def figure_ends(figure: Figure | None) -> tuple[float, float] | None:
    """Both ends of a figure's interval; None where one is missing."""
    low, high = (None, None) if figure is None else (_finite(figure.low), _finite(figure.high))
    return None if low is None or high is None else (low, high)


def sem_of(ends: tuple[float, float] | None) -> float | None:
    """Half of a 95 % interval over the normal distribution's quantile."""
    return None if ends is None else (ends[1] - ends[0]) / (2 * Z95)


def _largest(*errors: float | None) -> float | None:
    known = [error for error in map(_finite, errors) if error is not None]
    return max(known, default=None)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
