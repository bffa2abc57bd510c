from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from profharness.analysis.records import Figure, PointSummary, Summary, TraceCounts
from profharness.analysis.run.series import run_table
from profharness.readers.own.scan_csv import read_scan_csv
from profharness.report.csv import hotspots_csv, results_csv
from profharness.report.text.rates import throughput_text
from profharness.stats.bootstrap import Z95
from tests.report.samples import cpu_scan, failing, gpu_hotspots


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_hotspots_keep_full_names_and_exact_nanoseconds() -> None:
    table, rows = gpu_hotspots(), _read(hotspots_csv(gpu_hotspots()))
    assert [row["name"] for row in rows] == [entry.name for entry in table.rows]
    assert [int(row["total_ns"]) for row in rows] == [entry.total_ns for entry in table.rows]
    assert rows[0]["workgroup_size"] == "256x1x1"
    assert rows[0]["op"] == "aten::mm"
    assert rows[1]["op"] == ""


def test_results_stand_in_the_columns_of_published_scans() -> None:
    summary = cpu_scan()
    rows = _read(
        results_csv(
            summary, "particlenet", "direct", {point.point: "AMD MI210" for point in summary.points}
        )
    )
    assert list(rows[0]) == [
        "model",
        "backend",
        "via",
        "device",
        "batch_size",
        "throughput",
        "throughput_sem",
        "latency_ms",
        "latency_sem_ms",
        "throughput_low",
        "throughput_high",
        "unit",
    ]
    assert [float(row["throughput"]) for row in rows] == [
        point.throughput for point in summary.points
    ]
    assert {(row["model"], row["via"], row["device"], row["unit"]) for row in rows} == {
        ("particlenet", "direct", "AMD MI210", "jets/s")
    }


def test_results_have_the_interval_that_the_screen_shows() -> None:
    """Trials that agree to 0.1 %, where a repeated point was 2.7 % off: 1000 ± 27 everywhere."""
    shown = Figure(value=1000.0, unit="jets/s", low=973.0, high=1027.0)
    late = Figure(value=4.0, unit="ms", low=3.8, high=4.3)
    (point,) = (
        PointSummary(
            point="torch-c4",
            backend="torch",
            concurrency=4,
            mode="closed",
            throughput=1000.0,
            throughput_sem=1.08,
            latency_ms=4.0,
            metrics={"throughput": shown, "latency_mean": late},
        ),
    )
    assert throughput_text(point) == "1\u2009000 ± 27"
    (row,) = _read(
        results_csv(Summary(source="x", trace=TraceCounts(), points=(point,)), "m", "triton", {})
    )
    assert (float(row["throughput_low"]), float(row["throughput_high"])) == (973.0, 1027.0)
    assert float(row["throughput_sem"]) == pytest.approx(27 / Z95)
    # a served point has no trials, and its latency an error nevertheless
    assert float(row["latency_sem_ms"]) == pytest.approx(0.5 / 2 / Z95)


def test_a_plot_of_the_file_has_the_bars_and_the_unit_of_one_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(results_csv(cpu_scan(), "m", "direct", {}))
    of_file, of_run = read_scan_csv(path), run_table(cpu_scan().points, "run")
    assert of_run is not None
    assert of_file.unit == of_run.unit == "jets/s"
    for column in ("level", "throughput", "throughput_sem", "latency_ms", "latency_sem_ms"):
        assert getattr(of_file, column).tolist() == getattr(of_run, column).tolist()
        assert np.isfinite(getattr(of_file, column)).all()
    assert "unit" not in of_file.key_columns


def test_failed_points_have_no_row() -> None:
    text = results_csv(failing(), "m", "direct", {})
    assert (
        len(_read(text))
        == sum(point.throughput is not None for point in failing().points)
        < len(failing().points)
    )
    assert "None" not in text


def test_results_are_what_saturation_and_plot_read(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(results_csv(cpu_scan(), "m", "direct", {}))
    table = read_scan_csv(path)
    assert table.axis == "batch_size"
    assert table.throughput.tolist() == [point.throughput for point in cpu_scan().points]
