"""Tables as CSV text: hotspots, and the results of a scan; units stand in the column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from profharness.analysis.records import HotspotRow, Hotspots, PointSummary, SampledRow, Summary
from profharness.stats.throughput import sem_ms

HOTSPOT_COLUMNS = (
    "name",
    "category",
    "calls",
    "total_ns",
    "share",
    "mean_ns",
    "median_ns",
    "min_ns",
    "max_ns",
    "std_ns",
    "kernel_ns",
    "workgroups",
    "workgroup_size",
    "op",
    "fill",
    "occupancy",
    "flops_per_s",
    "bytes_per_s",
)
RESULT_COLUMNS = (
    "model",
    "backend",
    "via",
    "device",
    "batch_size",
    "concurrency",
    "processes",
    "throughput",
    "throughput_sem",
    "latency_ms",
    "latency_sem_ms",
)
_LEVELS = ("batch_size", "concurrency", "processes")


def hotspots_csv(table: Hotspots) -> str:
    """One row per group in the table's order; times in ns, `share` between 0 and 1, a size as
    `256x1x1`.

    Telemetry of the rows comes last, its unit in brackets after the metric's name.
    """
    sampled = {
        name: figure.unit
        for row in table.rows[:1]
        if isinstance(row, SampledRow)
        for name, figure in row.samples.items()
    }

    def row(entry: HotspotRow) -> list[object]:
        size = (
            None
            if entry.workgroup_size is None
            else "x".join(str(part) for part in entry.workgroup_size)
        )
        samples = (
            [entry.samples[name].value for name in sampled] if isinstance(entry, SampledRow) else []
        )
        return [
            *(
                size if name == "workgroup_size" else getattr(entry, name)
                for name in HOTSPOT_COLUMNS
            ),
            *samples,
        ]

    return _text(
        (*HOTSPOT_COLUMNS, *(f"{name} ({unit})" for name, unit in sampled.items())),
        (row(entry) for entry in table.rows),
    )


def results_csv(summary: Summary, model: str, via: str, devices: Mapping[str, str]) -> str:
    """One row per measured point, in the columns in which scans are published; `saturation` and
    `plot` read them.

    Throughput in items/s, latency in ms, each with the standard error of its mean; `devices` by
    point. Levels that no point has are left out.
    """
    points = [point for point in summary.points if point.throughput is not None]
    columns = [
        name
        for name in RESULT_COLUMNS
        if name not in _LEVELS or any(getattr(point, name) is not None for point in points)
    ]
    return _text(
        columns,
        (
            [_result(point, name, (model, via, devices.get(point.point, ""))) for name in columns]
            for point in points
        ),
    )


def _result(point: PointSummary, name: str, told: tuple[str, str, str]) -> object:
    own = {
        "model": told[0],
        "via": told[1],
        "device": told[2],
        "latency_sem_ms": sem_ms(point.trials_ms),
    }
    return own[name] if name in own else getattr(point, name)


def _text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()
