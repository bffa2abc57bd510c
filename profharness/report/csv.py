"""Tables as CSV text: hotspots, trials and points, with units in the column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from profharness.analysis.records import Hotspots, Summary

HOTSPOT_COLUMNS = ("name", "category", "calls", "total_ns", "share", "mean_ns", "median_ns", "min_ns", "max_ns", "std_ns",
                   "kernel_ns", "workgroups", "workgroup_size", "op", "fill", "occupancy", "flops_per_s", "bytes_per_s")
POINT_COLUMNS = ("point", "backend", "batch_size", "concurrency", "processes", "state", "trials", "warmup_trials", "throughput",
                 "throughput_sem", "latency_ms", "consistency")


def hotspots_csv(table: Hotspots) -> str:
    """One row per group in the table's order; times in ns, `share` between 0 and 1, a size as `256x1x1`."""
    def row(index: int) -> list[object]:
        entry = table.rows[index]
        size = None if entry.workgroup_size is None else "x".join(str(part) for part in entry.workgroup_size)
        return [size if name == "workgroup_size" else getattr(entry, name) for name in HOTSPOT_COLUMNS]

    return _text(HOTSPOT_COLUMNS, (row(index) for index in range(len(table.rows))))


def trials_csv(summary: Summary) -> str:
    """One row per timed trial: point, its levels, the trial's number from 0, its time in ms."""
    columns = ("point", "backend", "batch_size", "concurrency", "processes", "trial", "trial_ms")
    return _text(columns, ([point.point, point.backend, point.batch_size, point.concurrency, point.processes, trial, value]
                           for point in summary.points for trial, value in enumerate(point.trials_ms)))


def points_csv(summary: Summary) -> str:
    """One row per point with the plain figures of `run --json`; throughput in items/s, latency in ms."""
    return _text(POINT_COLUMNS, ([getattr(point, name) for name in POINT_COLUMNS] for point in summary.points))


def _text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()
