from __future__ import annotations

import csv
import io
from pathlib import Path

from profharness.readers.own.scan_csv import read_scan_csv
from profharness.report.csv import hotspots_csv, results_csv
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
    ]
    assert [float(row["throughput"]) for row in rows] == [
        point.throughput for point in summary.points
    ]
    assert {(row["model"], row["via"], row["device"]) for row in rows} == {
        ("particlenet", "direct", "AMD MI210")
    }


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
