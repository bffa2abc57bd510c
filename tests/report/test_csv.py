from __future__ import annotations

import csv
import io

from profharness.report.csv import hotspots_csv, points_csv, trials_csv
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


def test_trials_stand_one_per_row() -> None:
    summary = cpu_scan()
    rows = _read(trials_csv(summary))
    assert len(rows) == sum(len(point.trials_ms) for point in summary.points)
    assert rows[1]["trial"] == "1"
    assert float(rows[1]["trial_ms"]) == summary.points[0].trials_ms[1]


def test_failed_points_have_empty_figures() -> None:
    rows = _read(points_csv(failing()))
    assert rows[2]["state"] == "failed"
    assert rows[2]["throughput"] == ""
    assert "None" not in points_csv(failing())
