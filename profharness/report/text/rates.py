"""Throughput with its uncertainty: one meaning of ± for every table, tile and sentence, a 95 %
interval.

The interval is that of the metric `throughput`, which holds the drift between repeats of a point; a
point without that metric has the interval of its standard error alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import PointSummary
from profharness.report.text.figures import finite, interval_text

MEANING = "± (or a range): 95 % interval of the mean, with the drift of repeated points"
WITHIN = 0.95  # of the best throughput: what a recommended level must reach


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
