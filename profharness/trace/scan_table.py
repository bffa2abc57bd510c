"""A scan as a table of levels: what a curve is fitted to, whether it comes from a CSV or from a
run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profharness.trace.model import F64

Axis = Literal["batch_size", "concurrency", "processes"]
RATE = "items/s"
AXES: tuple[Axis, ...] = ("batch_size", "concurrency", "processes")


@dataclass(frozen=True, eq=False)
class ScanTable:
    """Columns of equal length, one row per measured level, in any order.

    `level` is the batch size, concurrency or number of processes. Throughput in items/s, latency in
    ms; the standard errors are of the means. NaN where not recorded. `keys` holds, per row, one
    text for each of `key_columns`: rows with equal keys make one series. `unit` is that of the
    throughput of all rows.
    """

    source: str
    axis: Axis
    key_columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    level: F64
    throughput: F64
    throughput_sem: F64
    latency_ms: F64
    latency_sem_ms: F64
    unit: str = RATE

    def __len__(self) -> int:
        return len(self.level)

    def groups(self) -> dict[tuple[str, ...], list[int]]:
        """Rows of each series, in the order in which the series appear."""
        found: dict[tuple[str, ...], list[int]] = {}
        for row, key in enumerate(self.keys):
            found.setdefault(key, []).append(row)
        return found
