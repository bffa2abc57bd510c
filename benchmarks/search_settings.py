"""How often a search of settings recommends one within 5 % of the best: `python
benchmarks/search_settings.py [--surfaces N] [--seed S] [--keep]`.

Made-up response surfaces (`tests/scans/surfaces.py`) of two to four axes and 16 to 400 settings are
searched at several noises of one level, by half of the settings or 20 levels. Beside the search
stand levels at random of equal cost, the whole grid measured once, which costs several times as
much, and, where it is installed, the tree-structured estimator of Optuna, of equal cost.

What the search says is judged as a report says it: the recommended setting, and the settings that
it calls worse than that one. A claim is false where the other one is at least as good in truth. On
flat surfaces, where no setting is better than another, every claim is false.

`--keep` keeps the table in benchmarks/results/search-settings-DATE.json.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import description
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.axes.noise import Executions, point_means, unproven
from profharness.scans.settings_search import Measured, SettingsSearch
from profharness.stats.chosen import scatter, smoothed_rates
from tests.scans.surfaces import Surface

try:
    import optuna
except ImportError:
    optuna = None

NOISES = (0.01, 0.03, 0.1)
WITHIN = 0.95
MOST, LEAST = 20, 8

Way = Callable[..., int]


@dataclass
class Claims:
    """How many settings were called worse than the recommended one, how often wrongly, and in how
    many of `runs` any of it was wrong.
    """

    runs: int = 0
    claims: int = 0
    false: int = 0
    wrong_runs: int = 0

    def take(self, claims: int, false: int) -> None:
        self.runs += 1
        self.claims += claims
        self.false += false
        self.wrong_runs += false > 0

    def summary(self) -> dict[str, float]:
        return {
            "claims": self.claims,
            "false_share": self.false / max(self.claims, 1),
            "runs_with_a_false_claim": self.wrong_runs / max(self.runs, 1),
        }


def searched(
    surface: Surface, levels: int, noise: float, dice: np.random.Generator, claims: Claims
) -> int:
    """What a report on our search recommends; its claims are counted."""
    search = SettingsSearch(surface.axes, levels, int(dice.integers(1 << 30)))
    measured: list[Measured] = []
    while (place := search.following(measured)) is not None:
        measured.append(surface.measured(place, noise, dice))
    places = sorted({one.place for one in measured})
    rows = np.array([places.index(one.place) for one in measured])
    values = np.array([one.value for one in measured])
    means = point_means(Executions(rows, np.zeros_like(rows), values), len(places))
    one = scatter((means.sigma or 0.0) ** 2 * means.freedom, means.freedom)
    rates = smoothed_rates(
        [search.settings[place] for place in places],
        [axis.values for axis in surface.axes],
        means.mean.tolist(),
        [one / math.sqrt(count) for count in means.count.tolist()],
    )
    best = max((at for at in range(len(places)) if means.count[at] > 1), key=rates.__getitem__)
    others = [at for at in range(len(places)) if at != best]
    worse = set(others) - set(unproven(means, best, others))
    true = surface.rates
    claims.take(len(worse), sum(true[places[at]] >= true[places[best]] for at in worse))
    return places[best]


def at_random(surface: Surface, levels: int, noise: float, dice: np.random.Generator) -> int:
    """The fastest of settings at random, each measured once."""
    count = len(surface.rates)
    places = dice.choice(count, min(levels, count), replace=False).tolist()
    return max(places, key=lambda at: surface.measured(at, noise, dice).value)


def by_grid(surface: Surface, levels: int, noise: float, dice: np.random.Generator) -> int:  # noqa: ARG001  a grid costs what it costs
    """The fastest of all settings, each measured once."""
    return at_random(surface, len(surface.rates), noise, dice)


def by_optuna(surface: Surface, levels: int, noise: float, dice: np.random.Generator) -> int:
    """The best mean of Optuna's estimator, which knows nothing of repeats."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(
        seed=int(dice.integers(1 << 30)), multivariate=True, n_startup_trials=6
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    counts = [len(axis.values) for axis in surface.axes]
    values: dict[int, list[float]] = {}
    for _ in range(levels):
        trial = study.ask()
        setting = [
            trial.suggest_int(axis.name, 0, count - 1)
            if axis.is_number
            else trial.suggest_categorical(axis.name, list(range(count)))
            for axis, count in zip(surface.axes, counts, strict=True)
        ]
        place = int(np.ravel_multi_index(setting, counts))
        value = surface.measured(place, noise, dice).value
        study.tell(trial, value)
        values.setdefault(place, []).append(value)
    return max(values, key=lambda at: statistics.mean(values[at]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--surfaces", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    claims = {noise: Claims() for noise in NOISES}
    ways: dict[str, Way] = {"search": searched, "random": at_random, "grid": by_grid}
    if optuna is not None:
        ways["optuna"] = by_optuna
    surfaces = [
        Surface(np.random.default_rng([options.seed, at])) for at in range(options.surfaces)
    ]
    costs = [max(LEAST, min(len(one.rates) // 2, MOST)) for one in surfaces]
    sizes = [len(one.rates) for one in surfaces]
    print(
        f"{len(surfaces)} surfaces of {statistics.median(sizes):g} settings (median), "
        f"{statistics.mean(costs):.1f} levels each; within 5 % of the best:"
    )
    print(f"{'noise':>6}" + "".join(f"{way:>10}" for way in ways))
    rows: dict[str, dict[str, float]] = {}
    begun = time.process_time()
    for noise in NOISES:
        row = {}
        for way, find in ways.items():
            good = 0
            for at, (surface, levels) in enumerate(zip(surfaces, costs, strict=True)):
                dice = np.random.default_rng([options.seed, at, 1])
                more = (claims[noise],) if find is searched else ()
                place = find(surface, levels, noise, dice, *more)
                good += surface.rates[place] >= WITHIN * surface.rates.max()
            row[way] = good / len(surfaces)
        rows[f"{noise:g}"] = row
        print(f"{noise:6.0%}" + "".join(f"{share:10.1%}" for share in row.values()), flush=True)
    flat = Claims()
    for at, (surface, levels) in enumerate(zip(surfaces, costs, strict=True)):
        surface.rates = np.ones_like(surface.rates)
        searched(surface, levels, NOISES[1], np.random.default_rng([options.seed, at, 2]), flat)
    told = {f"{noise:g}": one.summary() for noise, one in claims.items()}
    told["flat"] = flat.summary()
    for name, one in told.items():
        print(
            f"{name:>6}: {one['claims']:g} claims that a setting is worse, "
            f"{one['false_share']:.2%} of them false; {one['runs_with_a_false_claim']:.1%} of the "
            "searches made one"
        )
    results = {
        "surfaces": len(surfaces),
        "seed": options.seed,
        "levels": round(statistics.mean(costs), 2),
        "settings_median": statistics.median(sizes),
        "grid_levels": round(statistics.mean(sizes), 2),
        "cpu_s": round(time.process_time() - begun, 1),
        "machine": description.machine(("profharness", "numpy")),
        "within_5_percent": rows,
        "claims_of_difference": told,
    }
    if options.keep:
        print(description.keep("search-settings", results))
    above = all(row["search"] > row["random"] for row in rows.values())
    few = all(one["runs_with_a_false_claim"] < 0.05 for one in told.values())
    return 0 if above and few else 1


if __name__ == "__main__":
    sys.exit(main())
