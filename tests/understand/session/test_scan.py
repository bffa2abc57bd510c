"""The CSV of a scan in Python: points and figures as in the table, and no records."""

from __future__ import annotations

from pathlib import Path

import pytest

import profharness
from profharness.stats.bootstrap import Z95

TABLE = """\
batch_size,throughput,throughput_sem,latency_ms
1,900,5,1.1
4,2357,12,1.7
16,8000,20,2
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scan.csv"
    path.write_text(TABLE)
    return path


def test_points_are_the_rows_with_their_intervals(table: Path) -> None:
    scan = profharness.read(table)
    assert isinstance(scan, profharness.Scan)
    points = scan.points.to_pandas()
    assert list(points["batch_size"]) == [1, 4, 16]
    assert list(points["throughput"]) == [900.0, 2357.0, 8000.0]
    assert list(points["throughput_high"]) == [900 + Z95 * 5, 2357 + Z95 * 12, 8000 + Z95 * 20]
    assert list(points["latency_mean"]) == [1.1, 1.7, 2.0]
    assert points.attrs["units"]["latency_mean"] == "ms"


def test_metrics_of_points_and_the_small_table_hold_the_same(table: Path) -> None:
    scan = profharness.read(table)
    metrics = scan.metrics(points=True)
    rates = metrics[metrics["name"] == "throughput"]
    assert list(rates["value"]) == [900.0, 2357.0, 8000.0]
    assert scan.metrics().empty
    assert "900" in scan._repr_html_()


@pytest.mark.parametrize("ask", ["hotspots", "trace", "device_use"])
def test_what_needs_records_says_that_there_are_none(table: Path, ask: str) -> None:
    scan = profharness.read(table)
    with pytest.raises(profharness.InputError, match="it holds no records"):
        getattr(scan, ask)()


def test_two_scans_are_compared_row_by_row(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(TABLE.replace("900,5", "1800,5"))
    changes = profharness.read(table).compare(profharness.read(other))
    rates = changes[changes["name"] == "throughput"]
    assert list(rates["change"]) == pytest.approx([1.0, 0.0, 0.0])
    assert list(rates["significant"]) == [True, False, False]
    assert list(rates["better"]) == ["higher"] * 3
