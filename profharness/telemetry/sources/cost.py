"""How often a source may be read so that its reads stay within a share of one core."""

from __future__ import annotations

import time

from profharness.telemetry.sources import Source

BUDGET = 0.001
_TRIES = 3


def affordable_hz(source: Source, at_most: float, budget: float = BUDGET) -> float:
    """From the CPU time of the cheapest of a few reads; `at_most` where the reads fail (they are
    counted later).
    """
    row: list[int | float] = [0] * len(source.columns)
    costs = []
    for _ in range(_TRIES):
        before = time.thread_time_ns()
        try:
            source.read(row, 0)
        except Exception:  # noqa: BLE001  the sampler counts its failures
            return at_most
        costs.append(time.thread_time_ns() - before)
    return min(at_most, budget / max(min(costs) / 1e9, 1e-6))
