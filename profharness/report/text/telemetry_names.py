"""How a sampled metric is titled and scaled for readers."""

from __future__ import annotations

import re

from profharness.analysis.records import TelemetryRow
from profharness.report.text import names


def telemetry_title(row: TelemetryRow) -> str:
    """The metric's name without its unit suffix: `clock_mhz` reads `clock`, as the unit stands beside it."""
    suffix = re.sub(r"[^a-z]", "", row.unit.lower())
    return names.title_of(row.metric.removesuffix(f"_{suffix}") if suffix else row.metric)


def telemetry_scale(unit: str) -> tuple[float, str]:
    """The factor and unit in which people read a metric: bytes as GiB, shares as per cent."""
    return {"B": (2.0**-30, "GiB"), "share": (100.0, "%")}.get(unit, (1.0, unit))
