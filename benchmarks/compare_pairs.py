"""How often two runs are called different, and how often the interval of their ratio holds the true
one: `python benchmarks/compare_pairs.py`.

Pairs of scans over three points, 40 trials each with 1 % of scatter, the first and the last point
measured again at the end; the trials go through the product's own statistics, and the two runs
through its own comparison. B's true rate is A's times the ratio given. Nothing else changes, but a
measurement drifts: each by itself (`each`), all of a run by as much (`run`), or as a random walk
that comes to as much over the run (`walk`). Of a ratio of 1 `called` is false alarms; of others it
is what is found.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from description import keep

from profharness.analysis.compare.runs import compare
from profharness.analysis.records import Figure, PointSummary, Summary, TraceCounts
from profharness.stats.throughput import drift_between, largest_drift, summarise_trials, widened

POINTS, TRIALS, SCATTER = (1, 4, 16), 40, 0.01
ORDER = (*POINTS, POINTS[0], POINTS[-1])  # the last two are repeats
KINDS = ("each", "run", "walk")


def drifts(kind: str, size: float, rng: np.random.Generator) -> np.ndarray:
    """The logarithm of the speed of each measurement, in their order."""
    if kind == "run":
        return np.full(len(ORDER), rng.normal(0, size))
    if kind == "walk":
        return np.cumsum(rng.normal(0, size / np.sqrt(len(ORDER)), len(ORDER)))
    return rng.normal(0, size, len(ORDER))


def run(ratio: float, kind: str, size: float, seed: int) -> Summary:
    """One run whose true rates are `ratio` times 1,000 items per second and point."""
    rng = np.random.default_rng(seed)
    stats = [
        summarise_trials(
            np.rint(1e6 * items * np.exp(-speed + SCATTER * rng.standard_normal(TRIALS)) / ratio),
            items,
            f"{at}",
        )
        for at, (items, speed) in enumerate(zip(ORDER, drifts(kind, size, rng), strict=True))
    ]
    first, again = stats[: len(POINTS)], stats[len(POINTS) :]
    drift = largest_drift(
        [drift_between(one, two) for one, two in zip((first[0], first[-1]), again, strict=True)]
    )
    points = []
    for items, one in zip(POINTS, first, strict=True):
        low, high = widened(one, drift)
        rate = Figure(value=one.throughput, unit="items/s", low=low, high=high)
        point = PointSummary(
            point=f"b{items}", metrics={"throughput": rate}, drift=abs(drift.relative)
        )
        points.append(point)
    return Summary(source="", trace=TraceCounts(), points=tuple(points))


def cell(kind: str, size: float, ratio: float, pairs: int) -> dict[str, float | str]:
    """Over so many pairs: in how many a throughput is called different, at how many points, and how
    many of their intervals hold the ratio.
    """
    called = found = covered = points = 0
    for pair in range(pairs):
        a, b = (run(one, kind, size, 2 * pair + at) for at, one in enumerate((1.0, ratio)))
        changes = [delta for point in compare(a, b).points for delta in point.deltas]
        called += any(delta.significant for delta in changes)
        found += sum(delta.significant is True for delta in changes)
        covered += sum((delta.low or 0) <= ratio - 1 <= (delta.high or 0) for delta in changes)
        points += len(changes)
    return {
        "drift": kind,
        "drift_share": size,
        "ratio": ratio,
        "pairs": pairs,
        "called": called / pairs,
        "points_called": found / points,
        "covered": covered / points,
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--drifts", type=float, nargs="+", default=[0.0, 0.01, 0.02])
    options.add_argument("--ratios", type=float, nargs="+", default=[1.0, 0.95, 0.9, 0.8])
    options.add_argument("--pairs", type=int, default=400)
    options.add_argument("--save", action="store_true")
    asked = options.parse_args()
    rows = []
    print("drift        ratio  pairs called  points called  interval holds the ratio")
    for size in asked.drifts:
        for kind in KINDS if size else KINDS[:1]:
            for ratio in asked.ratios:
                row = cell(kind, size, ratio, asked.pairs)
                rows.append(row)
                print(
                    f"{kind if size else 'none':5s}{100 * size:4.1f} %  {ratio:6.2f}  "
                    f"{row['called']:12.3f}  {row['points_called']:13.3f}  {row['covered']:24.3f}",
                    flush=True,
                )
    if asked.save:
        keep("compare-pairs", {"rows": rows})


if __name__ == "__main__":
    main()
