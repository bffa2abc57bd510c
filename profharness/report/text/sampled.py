"""How a sampled metric is titled, scaled and printed."""

from __future__ import annotations

import re

from profharness.analysis.records import TelemetryRow
from profharness.report.text import names
from profharness.report.text.figures import quantity_text, singular
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


def telemetry_scale(unit: str) -> tuple[float, str]:
    """The factor and unit in which people read a metric: bytes as GiB, shares as per cent."""
    return {"B": (2.0**-30, "GiB"), "share": (100.0, "%")}.get(unit, (1.0, unit))


def sample_value_text(metric: str, value: float) -> str:
    """`97 %`, `0.36` of a share as `36.0 %`, `324 W`, `62.4 GiB`, `12.3 MB/s`."""
    unit = unit_of(metric)
    if unit in ("B", "B/s"):
        return quantity_text(value, unit)
    if unit == "share":
        return format_share(value)
    shown = format_number(value, 1 if unit == "cores" else 0)
    return f"{shown} {singular(unit) if shown == '1' else unit}".rstrip()
