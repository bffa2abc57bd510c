"""Throughput with its uncertainty: one meaning of ± for every table, tile and sentence, a 95 %
interval.

The interval is that of the metric `throughput`, which holds the drift between repeats of a point; a
point without that metric has the interval of its standard error alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from profharness.analysis.records import PointSummary
from profharness.report.text import names
from profharness.report.text.figures import finite, interval_text

MEANING = "± (or a range): 95 % interval of the mean, with the drift of repeated points"
WITHIN = 0.95  # of the best throughput: what a recommended level must reach
_Z95 = 1.959964  # of the normal distribution


def throughput_ends(point: PointSummary) -> tuple[float, float] | None:
    """The ends of a point's throughput in items/s; None where its uncertainty is not known."""
    value, sem = finite(point.throughput), finite(point.throughput_sem)
    if value is None:
        return None
    figure = point.metrics.get(names.THROUGHPUT)
    low, high = (None, None) if figure is None else (finite(figure.low), finite(figure.high))
    if low is not None and high is not None and low <= value <= high:
        return low, high
    return (max(value - _Z95 * sem, 0.0), value + _Z95 * sem) if sem else None


def widened(point: PointSummary) -> PointSummary:
    """The point with a standard error that holds the drift of repeated points too, as its interval
    does; that of its trials alone is smaller.
    """
    ends = throughput_ends(point)
    if ends is None:
        return point
    return msgspec.structs.replace(
        point,
        throughput_sem=max((ends[1] - ends[0]) / (2 * _Z95), finite(point.throughput_sem) or 0.0),
    )


def throughput_text(point: PointSummary) -> str:
    """`24 281 ± 97`, or `146 (0 to 318)` where ± would mislead; empty for a point without
    throughput.
    """
    value = finite(point.throughput)
    return "" if value is None else interval_text(value, *(throughput_ends(point) or (None, None)))


def unproven(point: PointSummary, others: Sequence[PointSummary]) -> bool:
    """Whether the data leave open that one of the `others` is better or worse than `point` by more
    than 5 %.

    That is so where the intervals overlap and reach beyond what counts as the same throughput.
    """
    ends, value = throughput_ends(point), finite(point.throughput)
    if ends is None or value is None:
        return False
    for other in others:
        other_ends = None if other is point else throughput_ends(other)
        if (
            other_ends is not None
            and other_ends[0] <= ends[1]
            and other_ends[1] >= ends[0]
            and (other_ends[0] < WITHIN * value or other_ends[1] > value / WITHIN)
        ):
            return True
    return False
