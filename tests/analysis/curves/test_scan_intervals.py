"""What intervals of a scan over clients hold, on servers whose laws are known
(benchmarks/scan_intervals.py).
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import scan_intervals

from profharness.analysis.curves.saturation import series
from profharness.stats.estimate import Estimate

DISTURBED = scan_intervals.NOISES[-1]


@pytest.mark.slow
def test_the_knee_and_the_peak_are_held_where_levels_are_disturbed():
    rows = [
        scan_intervals.cell(server, DISTURBED, range(6))
        for server in (scan_intervals.corner(2), scan_intervals.law(0.1, 0.002))
    ]
    assert sum(row["knee"] for row in rows) / len(rows) >= 0.8
    peaks = scan_intervals.totals(rows)["n_peak"]
    assert peaks["closed_held"] + peaks["open_held"] >= 0.8 * (peaks["closed"] + peaks["open"])


def test_intervals_of_the_peak_are_counted_by_their_kind():
    counts = scan_intervals.Peaks()
    for low, high, peak in ((1, 3, 2), (1, 3, 4), (1, None, 2), (3, None, 2), (1, None, None)):
        counts.add(Estimate(value=None, low=low, high=high), peak)
    counts.add(Estimate(value=None, low=1, high=3), None)
    assert asdict(counts) == {
        "closed": 2,
        "closed_held": 1,
        "open": 2,
        "open_held": 1,
        "none": 2,
        "none_open": 1,
    }


def test_a_jump_that_noise_may_have_made_narrows_no_peak():
    """Seed 102 has a false jump, without which the law peaks half as high again."""
    server = scan_intervals.law(0.1, 0.002)
    (found,) = series(scan_intervals.scanned(server, scan_intervals.NOISES[2], 102))
    assert found.step is not None
    peak = found.usl.n_peak
    assert scan_intervals.holds(peak.low, peak.high, server.peak)


@pytest.mark.statistics
def test_the_knee_and_the_peak_are_held_nineteen_times_in_twenty():
    rows = [
        scan_intervals.cell(server, noise, range(40))
        for server in scan_intervals.SERVERS
        for noise in scan_intervals.NOISES
    ]
    totals = scan_intervals.totals(rows)
    assert totals["knee"] >= 0.93
    peaks = totals["n_peak"]
    assert peaks["closed_held"] >= 0.9 * peaks["closed"]
    assert peaks["open_held"] >= 0.95 * peaks["open"]
    assert peaks["none_open"] >= 0.95 * peaks["none"]
