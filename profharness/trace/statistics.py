"""Totals that a tool printed by itself, for files that hold no single records (rocprofv3 and
rocprof `--stats`).
"""

from __future__ import annotations

from dataclasses import dataclass

KERNELS = "kernel"
COPIES = "copy"


@dataclass(frozen=True)
class StatRow:
    """One line of a statistics file. Times in ns, None where the tool does not print them.

    `domain` says what was counted: `kernel`, `copy`, or host calls by their library (`hip`, `hsa`,
    ...). `source` is a position in `Trace.sources`. Such rows stand beside records of the same run,
    never added to them.
    """

    name: str
    domain: str
    calls: int
    total_ns: int
    min_ns: int | None = None
    max_ns: int | None = None
    std_ns: float | None = None
    source: int = 0
