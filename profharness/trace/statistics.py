"""What a tool worked out by itself: totals, for files that hold no single records (rocprofv3 and
rocprof `--stats`), and metrics of kernels (rocprof-compute).
"""

from __future__ import annotations

from collections.abc import Sequence
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


def ends_in_total(names: Sequence[str], totals_ns: Sequence[int]) -> bool:
    """Whether the last row is the sum of the others, as tools of some vendors add it: a kernel may
    be called `total` too.
    """
    named = len(names) > 1 and names[-1].strip().lower() == "total"
    return named and totals_ns[-1] == sum(totals_ns[:-1])


@dataclass(frozen=True)
class ToolMetric:
    """One metric of a tool's own analysis, in its own unit: of one kernel, or of all of them where
    `kernel` is empty. `low` and `high` are over the kernel's launches, where the tool tells them.
    """

    name: str
    unit: str
    mean: float
    kernel: str = ""
    low: float | None = None
    high: float | None = None
    source: int = 0
