"""What was counted, kernel by kernel, as a typed record. Nothing is computed here."""

from __future__ import annotations

import msgspec


class CounterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One hardware counter over the dispatches of one kernel that have it, as the tool wrote it.

    `sum` is None for counters in per cent, of which a sum says nothing. `unit` is `count` where it
    is not known. Counters of different passes are of different executions.
    """

    kernel: str
    counter: str
    unit: str
    dispatches: int
    sum: float | None
    mean: float
    low: float
    high: float
    pass_name: str | None = msgspec.field(default=None, name="pass")
