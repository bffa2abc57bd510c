"""What the curve of a scan shows by itself: its highest rate, whether it ends, whether its fit
holds.
"""

from __future__ import annotations

from profharness.analysis.curves.records import Series


def best_rate(series: Series) -> float:
    """Its highest throughput, among the levels whose measurement is not known to be wrong where
    there are any.
    """
    good = [
        rate
        for rate, level in zip(series.throughput, series.levels, strict=True)
        if level not in series.flagged
    ]
    return max(good or series.throughput)


def still_rising(series: Series) -> bool:
    """Whether the curve has no end in this scan: its largest level is the best, and no smaller one
    as good within 5 %.
    """
    best = max(zip(series.throughput, series.levels, strict=True))[1]
    flat = series.recommended is not None and series.recommended.at < best
    return (
        best == max(series.levels)
        and not flat
        and any(finding.id == "peak-beyond-range" for finding in series.findings)
    )


def fit_holds(series: Series) -> bool:
    """Whether the fitted curve describes the series: one that does not is neither drawn nor told,
    and its parameters stand in the JSON alone.
    """
    return all(finding.id != "poor-fit" for finding in series.findings)
