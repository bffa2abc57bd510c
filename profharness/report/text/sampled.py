"""How a sampled metric is titled, scaled and printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from profharness.analysis.records import TelemetryRow
from profharness.report.text import names
from profharness.report.text.figures import finite, quantity_text, singular
from profharness.trace.sample_metrics import unit_of
from profharness.units import format_number, format_share


def telemetry_title(row: TelemetryRow) -> str:
    """The metric's name without its unit suffix: `clock_mhz` reads `clock`, as the unit stands
    beside it.
    """
    return metric_title(row.metric, row.unit)


def metric_title(metric: str, unit: str) -> str:
    """The same of a metric by its name and unit."""
    suffix = re.sub(r"[^a-z]", "", unit.lower())
    return names.title_of(metric.removesuffix(f"_{suffix}") if suffix else metric)


_STEPS: dict[str, tuple[tuple[float, str], ...]] = {
    "B": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")),
}
_WORTH = {"B": 0.1, "B/s": 1.0}
"""Of the larger unit: a largest value that has as much of it is read in it."""


def telemetry_scale(unit: str, largest: float) -> tuple[float, str]:
    """The factor and unit in which people read a metric whose largest value is this: bytes as GiB,
    shares as per cent.
    """
    for size, name in _STEPS.get(unit, ()):
        if largest >= _WORTH[unit] * size:
            return 1 / size, name
    return {"share": (100.0, "%")}.get(unit, (1.0, unit))


def telemetry_scales(rows: Iterable[TelemetryRow]) -> dict[str, tuple[float, str]]:
    """The same of each metric: one for all of its devices."""
    largest: dict[str, tuple[str, float]] = {}
    for row in rows:
        known = [abs(value) for value in (row.mean, row.low, row.high) if finite(value) is not None]
        _, before = largest.get(row.metric, (row.unit, 0.0))
        largest[row.metric] = (row.unit, max((before, *known)))
    return {metric: telemetry_scale(*found) for metric, found in largest.items()}


def told_apart(devices: Sequence[str]) -> list[str]:
    """The names of devices, those of the same name numbered: of several hosts, or sources."""
    return [
        name if devices.index(name) == at else f"{name} ({devices[: at + 1].count(name)})"
        for at, name in enumerate(devices)
    ]


def sample_value_text(metric: str, value: float) -> str:
    """`97 %`, `0.36` of a share as `36.0 %`, `324 W`, `62.4 GiB`, `12.3 MB/s`."""
    unit = unit_of(metric)
    if unit in ("B", "B/s"):
        return quantity_text(value, unit)
    if unit == "share":
        return format_share(value)
    shown = format_number(value, 1 if unit == "cores" else 0)
    return f"{shown} {singular(unit) if shown == '1' else unit}".rstrip()
