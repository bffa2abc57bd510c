"""A CSV of scan results as a summary, so that every form of the report shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.analysis.curves.records import Series
from profharness.analysis.curves.saturation import series
from profharness.analysis.records import Figure, PointSummary, Summary, TraceCounts
from profharness.readers.border import reading
from profharness.readers.own.scan_csv import heads_scan, read_scan_csv
from profharness.stats.bootstrap import Z95
from profharness.trace.scan_table import ScanTable


@dataclass(frozen=True)
class Scan:
    """The curves of a CSV with the keys that its columns give them, and the same as a summary, in
    which a key in words is the name of a backend.
    """

    series: tuple[Series, ...]
    summary: Summary


def is_scan(paths: Sequence[Path]) -> bool:
    """Whether this is one file whose first line names the columns of a scan."""
    return len(paths) == 1 and paths[0].is_file() and heads_scan(paths[0])


def scan_series(path: Path) -> tuple[Series, ...]:
    """The fitted curves of a CSV, as `profharness saturation` prints them. Raises InputError."""
    return series(_table(path))


def read_scan(path: Path) -> Scan:
    """The rows of a CSV as points, with its fitted curves. Raises InputError."""
    table = _table(path)
    curves = series(table)
    summary = Summary(
        source=str(path),
        trace=TraceCounts(),
        points=_points(table),
        series=tuple(map(_named_by_backend, curves)),
    )
    return Scan(curves, summary)


def _table(path: Path) -> ScanTable:
    with reading(path):
        return read_scan_csv(path)


def _points(table: ScanTable) -> tuple[PointSummary, ...]:
    points = []
    for at, key in enumerate(table.keys):
        level = float(table.level[at])
        number = int(level) if level.is_integer() else level
        named = {table.axis: number}
        backend = _backend(key)
        points.append(
            PointSummary(
                point=f"{backend or 'row'}-{table.axis[0]}{number:g}",
                backend=backend,
                throughput=float(table.throughput[at]),
                throughput_sem=_known(table.throughput_sem[at]),
                latency_ms=_known(table.latency_ms[at]),
                metrics=_figures(table, at),
                **named,  # type: ignore[arg-type]  # a level that is no whole number stays one
            )
        )
    return tuple(points)


def _figures(table: ScanTable, at: int) -> dict[str, Figure]:
    """Throughput and mean latency of a row, with the intervals of their standard errors."""
    return {
        name: Figure(
            value=value,
            unit=unit,
            low=None if sem is None else max(value - Z95 * sem, 0.0),
            high=None if sem is None else value + Z95 * sem,
            source="the table",
        )
        for name, unit, value, sem in (
            (
                "throughput",
                table.unit,
                _known(table.throughput[at]),
                _known(table.throughput_sem[at]),
            ),
            ("latency_mean", "ms", _known(table.latency_ms[at]), _known(table.latency_sem_ms[at])),
        )
        if value is not None
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _backend(values: Sequence[str]) -> str:
    """What tells the series of a point from the others, as the name of its curve."""
    return ", ".join(value for value in values if value)


def _named_by_backend(curve: Series) -> Series:
    name = _backend(tuple(curve.key.values()))
    return msgspec.structs.replace(curve, key={"backend": name} if name else {})
