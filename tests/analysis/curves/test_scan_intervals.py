"""What intervals of a scan over clients hold, on servers whose laws are known
(benchmarks/scan_intervals.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import scan_intervals

DISTURBED = scan_intervals.NOISES[-1]


@pytest.mark.slow
def test_the_knee_and_the_peak_are_held_where_levels_are_disturbed():
    rows = [
        scan_intervals.cell(server, DISTURBED, 6)
        for server in (scan_intervals.corner(2), scan_intervals.law(0.1, 0.002))
    ]
    assert sum(row["knee"] for row in rows) / len(rows) >= 0.8
    assert all(row["n_peak"] is None or row["n_peak"] >= 0.8 for row in rows)


@pytest.mark.statistics
def test_the_knee_and_the_peak_are_held_nineteen_times_in_twenty():
    rows = [
        scan_intervals.cell(server, noise, 40)
        for server in scan_intervals.SERVERS
        for noise in scan_intervals.NOISES
    ]
    totals = scan_intervals.totals(rows)
    assert totals["knee"] >= 0.93
    assert totals["n_peak"] >= 0.95
