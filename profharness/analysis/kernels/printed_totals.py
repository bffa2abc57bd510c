"""Rows of the hotspot tables from the totals that a tool printed itself (`Trace.statistics`).

Calls and total times are the tool's own, to the ns; means follow from them, medians are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from profharness.analysis.kernels.categories import kernel_category, op_category
from profharness.analysis.records import HotspotRow
from profharness.trace.model import Trace
from profharness.trace.statistics import COPIES, KERNELS, StatRow


def kernel_rows(trace: Trace) -> list[HotspotRow]:
    """The device kernels that statistics name."""
    return _rows(
        (row for row in trace.statistics if row.domain == KERNELS),
        lambda row: kernel_category(row.name),
    )


def call_rows(trace: Trace) -> list[HotspotRow]:
    """Everything else that statistics name: host calls, copies, whole domains."""
    return _rows(
        (row for row in trace.statistics if row.domain != KERNELS),
        lambda row: "copy" if row.domain == COPIES else op_category(row.name),
    )


def category_rows(trace: Trace) -> list[HotspotRow]:
    """Kernels by what they do, with the copies under `copy`."""
    on_device = [row for row in trace.statistics if row.domain in (KERNELS, COPIES)]
    groups: dict[str, list[StatRow]] = {}
    for row in on_device:
        groups.setdefault("copy" if row.domain == COPIES else kernel_category(row.name), []).append(
            row
        )
    return _rows(
        [_joined(category, rows) for category, rows in groups.items()], lambda row: row.name
    )


def _joined(name: str, rows: list[StatRow]) -> StatRow:
    """One row for several; the extremes only where each row has them."""
    lowest = [row.min_ns for row in rows if row.min_ns is not None]
    highest = [row.max_ns for row in rows if row.max_ns is not None]
    return StatRow(
        name,
        KERNELS,
        sum(row.calls for row in rows),
        sum(row.total_ns for row in rows),
        min(lowest) if len(lowest) == len(rows) else None,
        max(highest) if len(highest) == len(rows) else None,
    )


def _rows(statistics: Iterable[StatRow], category: Callable[[StatRow], str]) -> list[HotspotRow]:
    listed = list(statistics)
    whole = sum(row.total_ns for row in listed)
    rows = [
        HotspotRow(
            name=row.name,
            category=category(row),
            calls=row.calls,
            total_ns=row.total_ns,
            share=row.total_ns / whole if whole else 0.0,
            mean_ns=row.total_ns / row.calls if row.calls else 0.0,
            median_ns=None,
            min_ns=row.min_ns,
            max_ns=row.max_ns,
            std_ns=row.std_ns,
        )
        for row in listed
    ]
    return sorted(rows, key=lambda row: (-(row.total_ns or 0), row.name))
