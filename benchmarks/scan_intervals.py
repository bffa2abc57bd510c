"""How often the intervals of a scan over clients hold the truth: `python
benchmarks/scan_intervals.py`.

Servers of known laws are searched by the product's own rules (`scans.search`): each level has the
law's throughput with noise, a standard error that knows only a part of it, and now and then one
level that another program slowed down; the level of the knee is measured once more, and its drift
widens the errors as it does in a run. What `series` then says is held against the truth: the knee
(the highest throughput inside the scan over the throughput of one client) and the concurrency of
the law's peak. Of the knee an open end holds everything on its side. Intervals of the peak are told
apart: those with both ends that hold the peak, those with an open end (`open`, and how many of them
begin at or below the peak), and of servers whose throughput never falls those that have an upper
end although there is no peak. `plans` are numbers of jobs, `above` those above the true knee.
`--first` is the first seed; those below 200 were looked at while the method was made. `--save FILE`
keeps the table as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.curves.saturation import series
from profharness.scans.search import Rules, Seen, knee_of, next_level
from profharness.stats.estimate import Estimate
from profharness.trace.scan_table import ScanTable

Z95 = 1.959964


@dataclass(frozen=True)
class Server:
    """A law of throughput over clients, and where it peaks (None: it never falls)."""

    name: str
    rate: Callable[[float], float]
    peak: float | None = None


def corner(instances: float, sharpness: float = 30.0) -> Server:
    """Requests of 5 ms on so many instances: in proportion up to a limit, which a queue rounds."""
    return Server(
        f"{instances:g} instances, bend {sharpness:g}",
        lambda n: 200.0 * n / (1 + (n / instances) ** sharpness) ** (1 / sharpness),
    )


def law(sigma: float, kappa: float) -> Server:
    """The Universal Scalability Law."""
    return Server(
        f"USL {sigma:g}, {kappa:g}",
        lambda n: 200.0 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)),
        math.sqrt((1 - sigma) / kappa) if kappa else None,
    )


SERVERS = (
    corner(2),
    corner(3),
    corner(8),
    corner(2, 4),
    corner(6, 4),
    law(0.1, 0.0),
    law(0.1, 0.002),
    law(0.02, 0.004),
    law(0.3, 0.001),
)
# noise of a level, the standard error that it states, how often one level is off, by which factor
NOISES = (
    (0.01, 0.01, 0.0, 1.0),
    (0.04, 0.01, 0.0, 1.0),
    (0.10, 0.03, 0.0, 1.0),
    (0.03, 0.01, 0.15, 0.67),
)


def words(noise: tuple[float, float, float, float]) -> str:
    return f"{100 * noise[0]:.0f} %, {100 * noise[1]:.0f} %, {100 * noise[2]:.0f} %"


def scanned(server: Server, noise: tuple[float, float, float, float], seed: int) -> ScanTable:
    """The levels that a search measures, with errors that hold the drift of its repeated level."""
    scatter, stated, disturbed, factor = noise
    random = np.random.default_rng([seed, 7])

    def measured(level: int) -> float:
        odd = factor if random.random() < disturbed else 1.0
        return server.rate(level) * odd * math.exp(scatter * random.standard_normal())

    seen: list[Seen] = []
    rules = Rules(ladder=tuple(2**step for step in range(8)))
    while (level := next_level(seen, rules)) is not None:
        rate = measured(level)
        seen.append(Seen(level, rate, stated * rate))
    seen.sort(key=lambda one: one.level)
    knee = knee_of(seen)
    again = min(seen, key=lambda one: abs(one.level - knee))
    drift = abs(measured(again.level) / again.throughput - 1)
    rates = np.array([one.throughput for one in seen])
    unknown = np.full(len(seen), np.nan)
    return ScanTable(
        source="simulated",
        axis="concurrency",
        key_columns=(),
        keys=((),) * len(seen),
        level=np.array([float(one.level) for one in seen]),
        throughput=rates,
        throughput_sem=rates * (stated + drift / Z95),
        latency_ms=unknown,
        latency_sem_ms=unknown,
    )


def holds(low: float | None, high: float | None, truth: float) -> bool:
    return (low is None or low <= truth) and (high is None or truth <= high)


@dataclass
class Peaks:
    """Intervals of the peak by their kind, and how many of each are right."""

    closed: int = 0
    closed_held: int = 0
    open: int = 0
    open_held: int = 0
    none: int = 0
    none_open: int = 0

    def add(self, ends: Estimate, peak: float | None) -> None:
        """One more. Without a peak an open upper end is right."""
        if peak is None:
            self.none += 1
            self.none_open += ends.high is None
        elif ends.low is None or ends.high is None:
            self.open += 1
            self.open_held += holds(ends.low, ends.high, peak)
        else:
            self.closed += 1
            self.closed_held += holds(ends.low, ends.high, peak)


def cell(
    server: Server, noise: tuple[float, float, float, float], seeds: Sequence[int]
) -> dict[str, Any]:
    """Shares of the seeds, the median width of the knee's interval over the knee, and how many
    intervals of the peak there are of each kind.
    """
    knees = above = plans = 0
    widths, peaks = [], Peaks()
    for seed in seeds:
        table = scanned(server, noise, seed)
        (found,) = series(table)
        top = float(table.level.max())
        best = max(server.rate(n) for n in np.linspace(1, top, 2000).tolist())
        knee = best / server.rate(1.0)
        if found.knee is not None:
            knees += holds(found.knee.low, found.knee.high, knee)
            if found.knee.low is not None and found.knee.high is not None:
                widths.append((found.knee.high - found.knee.low) / knee)
        if found.jobs_per_device is not None:
            plans += 1
            above += found.jobs_per_device > max(knee, 1.0) * 1.005
        if found.usl is not None:
            peaks.add(found.usl.n_peak, server.peak)
    return {
        "server": server.name,
        "noise": noise[0],
        "stated": noise[1],
        "disturbed": noise[2],
        "seeds": len(seeds),
        "knee": knees / len(seeds),
        "knee_width": float(np.median(widths)) if widths else None,
        "n_peak": asdict(peaks),
        "plans": plans,
        "plans_above_knee": above,
    }


def totals(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same over several rows."""
    seeds = sum(row["seeds"] for row in rows)
    widths = [row["knee_width"] for row in rows if row["knee_width"] is not None]
    return {
        "seeds": seeds,
        "knee": sum(row["knee"] * row["seeds"] for row in rows) / seeds,
        "knee_width": float(np.median(widths)) if widths else None,
        "n_peak": {name: sum(row["n_peak"][name] for row in rows) for name in asdict(Peaks())},
        "plans": sum(row["plans"] for row in rows),
        "plans_above_knee": sum(row["plans_above_knee"] for row in rows),
    }


def line(name: str, row: dict[str, Any]) -> str:
    """A row of the table that is printed."""
    peaks = row["n_peak"]
    counts = " ".join(
        f"{peaks[held]:4d} of {peaks[kind]:4d}"
        for kind, held in (("closed", "closed_held"), ("open", "open_held"), ("none", "none_open"))
    )
    width = "   - " if row["knee_width"] is None else f"{row['knee_width']:5.2f}"
    plans = f"{row['plans_above_knee']:4d} of {row['plans']:4d}"
    return f"{name:42s} | {row['knee']:5.3f} {width} | {counts} | {plans}"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=40)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--save", type=Path)
    asked = options.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    rows = []
    print(
        f"{'server, noise, stated, odd':42s} |  knee width | peak held   , open      , "
        "none: open  | plans above"
    )
    for server in SERVERS:
        for noise in NOISES:
            rows.append(cell(server, noise, seeds))
            print(line(f"{server.name} {words(noise)}", rows[-1]), flush=True)
    sums = {words(noise): totals(rows[at :: len(NOISES)]) for at, noise in enumerate(NOISES)}
    sums["all"] = totals(rows)
    for name, row in sums.items():
        print(line(name, row))
    if asked.save:
        kept = {"schema": 2, "benchmark": "scan-intervals", "first_seed": asked.first}
        kept |= {"rows": rows, "totals": sums}
        asked.save.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
