"""The results of a scan as values for programs: the published columns of `results.csv`, and the
points of `run --json` and of frames.
"""

from __future__ import annotations

from collections.abc import Mapping

from profharness.analysis.point_errors import latency_sem_ms, throughput_ends, throughput_sem
from profharness.analysis.records import Estimate, Figure, PointSummary, Summary
from profharness.report.table import Cell, Column, Table

RESULT_COLUMNS = (
    "model",
    "backend",
    "via",
    "device",
    "batch_size",
    "concurrency",
    "processes",
    "cores_per_process",
    "throughput",
    "throughput_sem",
    "latency_ms",
    "latency_sem_ms",
    "throughput_low",
    "throughput_high",
    "unit",
)
POINT_COLUMNS = (
    "point",
    "backend",
    "batch_size",
    "concurrency",
    "processes",
    "cores_per_process",
    "mode",
    "rate",
    "requests",
    "failed",
    "trials",
    "warmup_trials",
    "throughput",
    "throughput_sem",
    "latency_ms",
    "consistency",
    "overhead",
    "providers",
    "parameters",
    "executions",
    "wall_s",
    "values",
    "kept",
    "state",
    "error",
)
POINT_SETTINGS = POINT_COLUMNS[: POINT_COLUMNS.index("throughput")]
POINT_FIGURES = (
    "throughput",
    "latency_mean",
    "latency_p50",
    "latency_p90",
    "latency_p95",
    "latency_p99",
)
_BY_NAME = ("overhead", "parameters", "values")
"""What a point has several of: in frames each has a column of its own, `overhead_torch`."""
_PLAIN = tuple(
    key
    for key in POINT_COLUMNS
    if key not in (*POINT_SETTINGS, *POINT_FIGURES, *_BY_NAME, "state", "error")
)
_LEVELS = ("batch_size", "concurrency", "processes", "cores_per_process")
_OF_TRIALS = ("trials", "warmup_trials")
_OF_FAILURES = ("state", "error")
_ENDS = ("", "_low", "_high")


def published_results(summary: Summary, model: str, via: str, devices: Mapping[str, str]) -> Table:
    """One row per measured point, in the columns in which scans are published; `saturation` and
    `plot` read them.

    Throughput in the `unit` of its row with the ends of the 95 % interval that every other form
    shows, latency in ms, each with the standard error that goes with its interval; `devices` names
    each point's device. Levels that no point has are left out.
    """
    points = [point for point in summary.points if point.throughput is not None]
    keys = [
        name
        for name in RESULT_COLUMNS
        if name not in _LEVELS or any(getattr(point, name) is not None for point in points)
    ]
    rows = []
    for point in points:
        low, high = throughput_ends(point) or (None, None)
        figure = point.metrics.get("throughput")
        given: dict[str, object] = {
            "model": model,
            "via": via,
            "device": devices.get(point.point, ""),
            "throughput_low": low,
            "throughput_high": high,
            "throughput_sem": throughput_sem(point),
            "latency_sem_ms": latency_sem_ms(point),
            "unit": "items/s" if figure is None else figure.unit,
        }
        rows.append(
            tuple(Cell(value=given[key] if key in given else getattr(point, key)) for key in keys)
        )
    return Table("results", tuple(Column(key=key) for key in keys), tuple(rows))


def point_results(summary: Summary) -> Table:
    """One row per point over all passes, for JSON; what does not apply to a point has no value.

    A point that was measured without trouble has neither state nor error, one of a server neither
    trials nor warm-up.
    """
    rows = tuple(
        tuple(Cell(value=_point_value(point, key)) for key in POINT_COLUMNS)
        for point in summary.points
    )
    return Table("points", tuple(Column(key=key) for key in POINT_COLUMNS), rows)


def point_values(summary: Summary) -> Table:
    """One row per point over all passes, for frames: its settings and state, then each of
    `POINT_FIGURES` and of the layers' overheads (as shares) with the ends of its 95 % interval,
    and last what else `run --json` says of a point, under the same names.
    """
    points = summary.points
    layers, parameters, named = (
        dict.fromkeys(name for point in points for name in getattr(point, key)) for key in _BY_NAME
    )
    columns = [Column(key=key) for key in (*POINT_SETTINGS, *_OF_FAILURES)]
    for name in POINT_FIGURES:
        unit = next((point.metrics[name].unit for point in points if name in point.metrics), "")
        columns += [Column(key=name + end, unit=unit) for end in _ENDS]
    columns += [Column(key=f"overhead_{layer}{end}") for layer in layers for end in _ENDS]
    columns += [Column(key=key, unit="ms" if key == "latency_ms" else "") for key in _PLAIN]
    columns += [Column(key=f"parameters_{name}") for name in parameters]
    columns += [Column(key=f"values_{name}") for name in named]
    rows = []
    for point in points:
        values = [_point_value(point, key) for key in POINT_SETTINGS]
        values += [point.state, point.error or None]
        for name in POINT_FIGURES:
            values += _ends(point.metrics.get(name))
        for layer in layers:
            values += _ends(point.overhead.get(layer))
        values += [_plain_value(point, key) for key in _PLAIN]
        values += [point.parameters.get(name) for name in parameters]
        values += [point.values.get(name) for name in named]
        rows.append(tuple(Cell(value=value) for value in values))
    return Table("points", tuple(columns), tuple(rows))


def _plain_value(point: PointSummary, key: str) -> object:
    """The value of `run --json`, a list as one text."""
    value = _point_value(point, key)
    return ", ".join(value) if isinstance(value, tuple) else value


def _ends(figure: Figure | Estimate | None) -> tuple[object, object, object]:
    return (None, None, None) if figure is None else (figure.value, figure.low, figure.high)


def _point_value(point: PointSummary, key: str) -> object:
    value: object = getattr(point, key)
    if key in _OF_FAILURES:
        return None if point.state == "ok" else value
    if key in ("overhead", "providers", "parameters", "values"):
        return value or None
    if key == "kept" or (point.parameters and key in _OF_TRIALS):
        return value if point.executions and key == "kept" else None
    return None if value == "" or (point.mode and key in _OF_TRIALS) else value
