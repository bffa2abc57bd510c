"""One figure of several files that share no device, from the figure of each of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from profharness.analysis.records import Figure
from profharness.units import format_number


def figure_of_files(weighted: Sequence[tuple[Figure, int]], *, highest: bool) -> Figure:
    """Peaks and longest times: the `highest`. Shares: the mean over all windows. Rates, other times
    and ratios: the median. The ends are the lowest and highest file. `weighted` has the figure of
    each file, and its window in ns.
    """
    measured = [(figure, weight) for figure, weight in weighted if figure.is_known]
    first = weighted[0][0]
    if not measured:
        return first
    if any(figure.is_range for figure, _ in measured):
        return _range(measured, highest=highest)
    values = np.array([figure.value for figure, _ in measured], np.float64)
    weights = np.array([weight for _, weight in measured], np.float64)
    if highest:
        value, joined = float(values.max()), "the highest"
    elif measured[0][0].unit == "share" and weights.sum() > 0:
        value, joined = float(np.average(values, weights=weights)), "mean"
    else:
        value, joined = float(np.median(values)), "median"
    lows = [figure.value if figure.low is None else figure.low for figure, _ in measured]
    highs = [figure.value if figure.high is None else figure.high for figure, _ in measured]
    notes = list(dict.fromkeys(figure.note for figure, _ in measured if figure.note))
    way = f"{joined} of {format_number(len(measured))} files, ends are the lowest and the highest"
    coverages = [figure.coverage for figure, _ in measured if figure.coverage is not None]
    return msgspec.structs.replace(
        measured[0][0],
        value=value,
        low=min(low for low in lows if low is not None),
        high=max(high for high in highs if high is not None),
        source=measured[0][0].source,
        note="; ".join([way, *notes[:1]]),
        coverage=min(coverages) if coverages else None,
    )


def _range(measured: Sequence[tuple[Figure, int]], *, highest: bool) -> Figure:
    """Of figures some of which are ranges: each end as the value of all would be found; none where
    one of them has no such end.
    """
    ends = {
        name: [
            getattr(figure, name) if figure.value is None else figure.value
            for figure, _ in measured
        ]
        for name in ("low", "high")
    }
    joined = {
        name: None
        if any(end is None for end in found)
        else figure_of_files(
            [
                (Figure(value=end, unit=figure.unit), weight)
                for end, (figure, weight) in zip(found, measured, strict=True)
            ],
            highest=highest,
        )
        for name, found in ends.items()
    }
    low, high = joined["low"], joined["high"]
    notes = [figure.note for figure, _ in measured if figure.is_range and figure.note]
    return msgspec.structs.replace(
        measured[0][0],
        value=None,
        low=None if low is None else low.value,
        high=None if high is None else high.value,
        note="; ".join(dict.fromkeys([f"of {format_number(len(measured))} files", *notes[:1]])),
    )
