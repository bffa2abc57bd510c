"""How often the intervals of a scan over clients hold the truth: `python
benchmarks/scan_intervals.py`.

Servers of known laws are searched by the product's own rules (`scans.search`): each level has the
law's throughput with noise, a standard error that knows only a part of it, and now and then one
level that another program slowed down; the level of the knee is measured once more, and its drift
widens the errors as it does in a run. What `series` then says is held against the truth: the knee
(the highest throughput inside the scan over the throughput of one client) and the concurrency of
the law's peak. Counted is an interval that holds it, an open end holds everything on its side.
`jobs` counts plans above the true knee. `--save FILE` keeps the table as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.curves.saturation import series
from profharness.scans.search import Rules, Seen, knee_of, next_level
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


def cell(server: Server, noise: tuple[float, float, float, float], seeds: int) -> dict[str, Any]:
    """Shares of the seeds, and the median width of the knee's interval over the knee."""
    knees = peaks = told = above = plans = 0
    widths = []
    for seed in range(seeds):
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
            told += 1
            ends = found.usl.n_peak
            peaks += holds(ends.low, ends.high, server.peak or math.inf)
    return {
        "server": server.name,
        "noise": noise[0],
        "stated": noise[1],
        "disturbed": noise[2],
        "seeds": seeds,
        "knee": knees / seeds,
        "knee_width": float(np.median(widths)) if widths else None,
        "n_peak_given": told / seeds,
        "n_peak": peaks / told if told else None,
        "plans": plans / seeds,
        "plans_above_knee": above / plans if plans else None,
    }


def totals(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Shares over all scans that gave the figure."""
    return {
        name: sum(row[name] * row[weight] for row in rows if row[name] is not None)
        / sum(row[weight] for row in rows)
        for name, weight in (
            ("knee", "seeds"),
            ("n_peak", "n_peak_given"),
            ("plans_above_knee", "plans"),
        )
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=40)
    options.add_argument("--save", type=Path)
    asked = options.parse_args()
    rows = []
    print("server                  noise stated  odd |  knee width | n_peak given |  plans  above")
    for server in SERVERS:
        for noise in NOISES:
            row = cell(server, noise, asked.seeds)
            rows.append(row)

            def shown(name: str, row: dict[str, Any] = row) -> str:
                return "   - " if row[name] is None else f"{row[name]:5.2f}"

            print(
                f"{server.name:22s} {100 * noise[0]:5.0f}% {100 * noise[1]:5.0f}% "
                f"{100 * noise[2]:3.0f}% | {shown('knee')} {shown('knee_width')} |  "
                f"{shown('n_peak')} {shown('n_peak_given')} |  {shown('plans')}  "
                f"{shown('plans_above_knee')}",
                flush=True,
            )
    shares = totals(rows)
    print({name: round(share, 3) for name, share in shares.items()})
    if asked.save:
        kept = {"schema": 1, "benchmark": "scan-intervals", "rows": rows, "totals": shares}
        asked.save.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
