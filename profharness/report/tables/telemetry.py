"""Tables of telemetry: over a run for the page; over a sampled time and while it is sampled for
`profharness telemetry`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text import names
from profharness.report.text.figures import brief_text, finite, singular
from profharness.report.text.sampled import (
    sample_value_text,
    telemetry_scales,
    telemetry_title,
)
from profharness.trace.model import Trace
from profharness.units import format_number


def telemetry_table(summary: Summary) -> Table | None:
    """Mean and extremes of every telemetry metric."""
    several = len({row.device or row.host for row in summary.telemetry}) > 1
    scales = telemetry_scales(summary.telemetry)
    rows = tuple(
        (
            Cell(telemetry_title(row), provenance=names.meaning_of(row.metric)),
            *([Cell(row.device or row.host)] if several else []),
            *(
                Cell(_plain(value, row, *scales[row.metric]))
                for value in (row.mean, row.low, row.high)
            ),
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


def _plain(value: float, row: TelemetryRow, factor: float, unit: str) -> str:
    """Four significant digits of the row's largest value: the same decimals in all three cells, and
    no 0.00001895.
    """
    shown, largest = (
        finite(value),
        max(abs(number) for number in (row.mean, row.low, row.high) if finite(number) is not None),
    )
    decimals = 3 - math.floor(math.log10(largest * factor)) if largest else 0
    if shown is None:
        return ""
    text = brief_text(round(shown * factor, decimals))
    return f"{text} {singular(unit) if text == '1' else unit}".strip()


def sampled_table(rows: Sequence[TelemetryRow]) -> Table:
    """Mean and extremes of each sampled series; the device is part of the title where several were
    sampled.
    """
    several = len({row.device for row in rows if row.device}) > 1
    columns = (
        Column("metric"),
        Column("mean", "right", width=12),
        Column("lowest", "right", width=12),
        Column("highest", "right", width=12),
    )
    return Table(
        "Telemetry",
        columns,
        tuple(
            row_of(
                names.title_of(row.metric) + (f" {row.device}" if several and row.device else ""),
                *(sample_value_text(row.metric, value) for value in (row.mean, row.low, row.high)),
            )
            for row in rows
        ),
    )


def latest_table(trace: Trace, values: Mapping[tuple[str, str], float], seconds: float) -> Table:
    """The latest values by metric and device: one column per device, the host (device "") last;
    rows in the given order.
    """
    devices = [device.index for device in trace.devices]
    columns = (
        Column("metric"),
        *(Column(f"{device.index}: {device.name}", "right") for device in trace.devices),
        Column("host", "right"),
        Column(""),
    )
    rows = []
    for metric in dict.fromkeys(name for name, _ in values):
        texts = [
            sample_value_text(metric, values[metric, device]) if (metric, device) in values else ""
            for device in (*devices, "")
        ]
        rows.append(row_of(names.title_of(metric), *texts, names.meaning_of(metric)))
    return Table(f"{trace.sources[0].host}, mean of the last {seconds:g} s", columns, tuple(rows))
