"""What was seen of each client, and how it compares with perf_analyzer: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.stats.bootstrap import student95

SAME, CHEAP = 0.05, 1.5
OURS, PERF_ANALYZER = "ours", "perf_analyzer"


@dataclass(frozen=True)
class Seen:
    """One level: items/s as reported, CPU time per request in µs, whether N = X R held (None: not
    checked).
    """

    throughput: float
    cpu_us: float
    little: bool | None


Round = Mapping[str, Seen | None]
"""The levels of one round by client; None where a client gave no level."""


@dataclass(frozen=True)
class Ratio:
    """Median over rounds of a client's figure / perf_analyzer's, and the mean's 95 % interval;
    None for its ends with fewer than two rounds.
    """

    median: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.median:.3f}"
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Ratios within a round, since a machine that others use too changes between rounds; Student's
    interval of the mean of their logarithms.
    """
    logs = np.log(np.array(ours) / np.array(theirs))
    median = float(np.exp(np.median(logs)))
    if len(logs) < 2:
        return Ratio(median, None, None)
    half = float(student95(len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs)))
    return Ratio(median, float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half)))


def slope_us(samples: Sequence[tuple[float, int, int]], lead_s: float) -> float:
    """CPU time per request in µs, of (time in s, CPU time in ns, requests) in order of time:
    between the end of the lead and the last time at which requests still grew.
    """
    alive = [sample for sample in samples if sample[1] > 0]
    first = next((sample for sample in alive if sample[0] - alive[0][0] >= lead_s), alive[0])
    most = max(sample[2] for sample in alive)
    last = next(sample for sample in alive if sample[2] == most)
    return (last[1] - first[1]) / 1e3 / max(1, last[2] - first[2])


@dataclass(frozen=True)
class Place:
    """Where clients are compared."""

    model: str
    protocol: str
    concurrency: int


@dataclass(frozen=True)
class Compared:
    """One client at one place; figures are medians over the rounds in which both gave a level."""

    model: str
    protocol: str
    concurrency: int
    client: str
    rounds: int
    items_per_s: float
    perf_analyzer_items_per_s: float
    cpu_us: float
    perf_analyzer_cpu_us: float
    throughput: Ratio
    cpu: Ratio
    little: bool

    @property
    def verdict(self) -> str:
        """met, missed, or unclear where the interval of the throughput ratio reaches into the goal
        and its median does not.
        """
        low, high = self.throughput.low, self.throughput.high
        if (
            self.cpu.median > CHEAP
            or not self.little
            or (low is not None and low > 1 + SAME)
            or (high is not None and high < 1 - SAME)
        ):
            return "missed"
        return "met" if abs(self.throughput.median - 1) <= SAME else "unclear"


def compared(place: Place, client: str, rounds: Sequence[Round]) -> Compared | None:
    """A client beside perf_analyzer; None where no round has both."""
    pairs = [
        (mine, theirs)
        for one in rounds
        if (mine := one.get(client)) is not None and (theirs := one.get(PERF_ANALYZER)) is not None
    ]
    if not pairs:
        return None
    rates = [mine.throughput for mine, _ in pairs], [theirs.throughput for _, theirs in pairs]
    cpu = [mine.cpu_us for mine, _ in pairs], [theirs.cpu_us for _, theirs in pairs]
    return Compared(
        place.model,
        place.protocol,
        place.concurrency,
        client,
        len(pairs),
        float(np.median(rates[0])),
        float(np.median(rates[1])),
        float(np.median(cpu[0])),
        float(np.median(cpu[1])),
        ratio(*rates),
        ratio(*cpu),
        all(mine.little for mine, _ in pairs),
    )
