"""Tables of telemetry: over a run for the page, and over a sampled time for `profharness telemetry`."""

from __future__ import annotations

import math

from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.table import Cell, Column, Table
from profharness.report.text import names
from profharness.report.text.figures import brief_text, finite
from profharness.report.text.telemetry_names import telemetry_scale, telemetry_title
from profharness.units import format_number


def telemetry_table(summary: Summary) -> Table | None:
    """Mean and extremes of every telemetry metric."""
    several = len({row.device for row in summary.telemetry}) > 1
    rows = tuple(
        (
            Cell(telemetry_title(row), provenance=names.meaning_of(row.metric)),
            *([Cell(row.device)] if several else []),
            *(Cell(_plain(value, row)) for value in (row.mean, row.low, row.high)),
            Cell(format_number(row.samples)),
        )
        for row in summary.telemetry
        if finite(row.mean) is not None
    )
    columns = (
        Column("metric"),
        *([Column("device")] if several else []),
        Column("mean", "right", "weighted by time"),
        Column("lowest", "right"),
        Column("highest", "right"),
        Column("samples", "right"),
    )
    return Table("Telemetry", columns, rows) if rows else None


def _plain(value: float, row: TelemetryRow) -> str:
    """Four significant digits of the row's largest value: the same decimals in all three cells, and no 0.00001895."""
    shown, largest = (
        finite(value),
        max(abs(one) for one in (row.mean, row.low, row.high) if finite(one) is not None),
    )
    factor, scaled = telemetry_scale(row.unit)
    decimals = 3 - math.floor(math.log10(largest * factor)) if largest else 0
    return (
        "" if shown is None else f"{brief_text(round(shown * factor, decimals))} {scaled}".strip()
    )
