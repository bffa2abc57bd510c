r"""How often a search of a server's settings would have found the best of a measured grid: `python
benchmarks/search_served.py RUN [--replays N] [--levels N] [--keep]`.

RUN is a scan of servers over all combinations with repeats, such as

    profharness run particlenet --via triton --threads 1 --scan backend=torch,onnxruntime \\
      --scan instances=1,2 --scan batch=1,4 --scan concurrency=1,4,16 --repeats 3 -o RUN

The search is replayed on it: each level that it asks for has the rate of one of the levels that
were measured of that setting, chosen at random. Beside it stand as many settings at random. What is
recommended counts as found where it is not proven worse than the best of the grid (Tukey and
Kramer's least difference, over all repeats), and more strictly where it is within 5 % of its mean.

`--keep` keeps the figures in benchmarks/results/search-served-DATE.json.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from pathlib import Path

import description
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.axes.noise import unproven
from profharness.analysis.axes.points import RatedPoints, rated_points
from profharness.rundir.executions.axes import Axis
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from profharness.scans.settings_search import Measured, SettingsSearch
from profharness.stats.chosen import scatter_of, smoothed_rates

WITHIN = 0.95


def rates_of(manifest: Manifest, rated: RatedPoints) -> list[list[float]]:
    """The rate of each level of each point."""
    found: dict[str, list[float]] = {point.point: [] for point in rated.points}
    for record in manifest.points:
        if record.execution is not None and record.pass_name == "bare":
            found[record.id].append(record.execution.rate)
    return list(found.values())


def searched(
    axes: tuple[Axis, ...], rates: list[list[float]], levels: int, dice: np.random.Generator
) -> int:
    """The place of what a search recommends."""
    search = SettingsSearch(axes, levels, int(dice.integers(1 << 30)))
    drawn: list[tuple[int, float]] = []
    while True:
        own: dict[int, list[float]] = {}
        for place, rate in drawn:
            own.setdefault(place, []).append(rate)
        sigma = scatter_of(own.values())
        place = search.following([Measured(at, math.log(rate), sigma) for at, rate in drawn])
        if place is None:
            break
        drawn.append((place, float(dice.choice(rates[place]))))
    smooth = smoothed_rates(
        [search.settings[place] for place in own],
        [axis.values for axis in axes],
        [sum(map(math.log, values)) / len(values) for values in own.values()],
        [sigma / math.sqrt(len(values)) for values in own.values()],
    )
    times = Counter(place for place, _ in drawn)
    return max((rate, place) for place, rate in zip(own, smooth, strict=True) if times[place] > 1)[
        1
    ]


def at_random(rates: list[list[float]], levels: int, dice: np.random.Generator) -> int:
    """The fastest of as many settings at random."""
    places = dice.choice(len(rates), levels, replace=False).tolist()
    return max(places, key=lambda place: float(dice.choice(rates[place])))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--levels", type=int, help="of each search (default: half of the settings)")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    manifest = RunDir.open(options.run).read_manifest()
    rated = rated_points(manifest)
    if rated is None or len(rated.points) < 4:
        parser.error(f"{options.run} is no scan over axes with 4 points at least")
    axes = tuple(Axis(axis.name, tuple(str(value) for value in axis.values)) for axis in rated.axes)
    rates = rates_of(manifest, rated)
    if len(rates) != math.prod(len(axis.values) for axis in axes):
        parser.error(f"{options.run} lacks settings of its grid: they failed, or it is a design")
    levels = options.levels or len(rates) // 2
    means = rated.means.mean
    best = int(np.argmax(means))
    others = [at for at in range(len(rates)) if at != best]
    good = {best, *unproven(rated.means, best, others)}
    found = {"search": [0, 0], "random": [0, 0]}
    for replay in range(options.replays):
        dice = np.random.default_rng(replay)
        for way, place in (
            ("search", searched(axes, rates, levels, dice)),
            ("random", at_random(rates, levels, dice)),
        ):
            found[way][0] += place in good
            found[way][1] += bool(means[place] >= means[best] + math.log(WITHIN))
    noise = rated.means.sigma or 0.0
    print(
        f"{len(rates)} settings, {sum(map(len, rates))} levels that scatter by {noise:.1%}; best "
        f"{rated.points[best].point} at {rated.points[best].throughput:.4g} {rated.unit}, "
        f"{len(good) - 1} others not proven worse; {options.replays} replays by {levels} levels:"
    )
    shares = {
        way: {
            "not_proven_worse": counts[0] / options.replays,
            "within_5_percent": counts[1] / options.replays,
        }
        for way, counts in found.items()
    }
    for way, share in shares.items():
        print(
            f"{way:>7}: not proven worse than the best {share['not_proven_worse']:.1%}, within 5 % "
            f"of it {share['within_5_percent']:.1%}"
        )
    if options.keep:
        kept = {
            "settings": len(rates),
            "noise": round(noise, 4),
            "levels": levels,
            "replays": options.replays,
            "found": shares,
            "machine": description.machine(("profharness", "torch", "onnxruntime")),
        }
        print(description.keep("search-served", kept))
    search, chance = shares["search"], shares["random"]
    enough = search["not_proven_worse"] >= 0.9
    return 0 if enough and search["within_5_percent"] > chance["within_5_percent"] else 1


if __name__ == "__main__":
    sys.exit(main())
