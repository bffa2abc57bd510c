"""What was counted, kernel by kernel, as a typed record. Nothing is computed here."""

from __future__ import annotations

import msgspec

ALL_KERNELS = "all kernels"
"""Of metrics of a tool's own analysis that are of a whole workload."""


class CounterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One hardware counter over the dispatches of one kernel that have it, as the tool wrote it.

    `sum` is None for counters in per cent, of which a sum says nothing. `unit` is `count` where it
    is not known. Counters of different passes are of different executions. `dispatches` is 0 for a
    metric of a tool's own analysis, in its own unit; `low` and `high` are None where it tells none.
    """

    kernel: str
    counter: str
    unit: str
    dispatches: int
    sum: float | None
    mean: float
    low: float | None
    high: float | None
    pass_name: str | None = msgspec.field(default=None, name="pass")
