"""How often a jump between two levels is found, and how often one is seen that is not there:
`python benchmarks/step_detection.py`.

Throughput over batch size from 4 to 2048 with the standard error given for every level, a jump of
the ratio given at a level drawn at random (two levels at least on either side), on curves of
several bends. Counted as found is a jump at its level or the next one to either side. Options
narrow the table down; `--save FILE` keeps it as JSON.

`placed` is the power of the test that knows where the jump is but not the curve: the jump over its
own standard error beside the curve's three parameters, against the same rate of false alarms.
`ideal` is that of the same test where the level has to be searched too, as it is in a scan: the
largest of the places' statistics against its own distribution.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.curves.batch import BatchModel
from profharness.analysis.curves.fit import Measured
from profharness.analysis.curves.jumps import find_step

CURVES = ((25_000, 100, 1.0), (25_000, 60, 3.0), (20_000, 60, 0.6), (20_000, 200, 1.8))
LEVEL = 0.04
DRAWS = 2000


def levels(count: int) -> Any:
    return 2.0 ** np.linspace(2, 11, count)


def series(
    count: int, noise: float, ratio: float, seed: int
) -> tuple[Measured, int, tuple[float, float]]:
    """A noisy series, the position of its jump, and the power of the tests that know its place, and
    that do not.
    """
    rng = np.random.default_rng([seed, count])
    t_max, h, p = CURVES[int(rng.integers(len(CURVES)))]
    level, at = levels(count), int(rng.integers(2, count - 1))
    truth = (
        t_max * level / (level**p + h**p) ** (1 / p) * np.where(np.arange(count) >= at, ratio, 1.0)
    )
    rates = truth * np.exp(noise * rng.standard_normal(count))
    slopes = BatchModel(level)(np.log(np.array([[t_max, h, p]], float)))[1][0]
    basis = np.linalg.qr(slopes)[0]
    jumps = np.array([np.arange(count) >= place for place in range(2, count - 1)], float)
    left = jumps - jumps @ basis @ basis.T
    size = np.sqrt((left**2).sum(axis=1))
    chance = rng.standard_normal((DRAWS, count)) @ (left / size[:, None]).T
    seen = chance + np.log(ratio) / noise * (left @ left[at - 2]) / size
    placed = 1 - NormalDist().cdf(
        NormalDist().inv_cdf(1 - LEVEL / 2) - abs(np.log(ratio)) / noise * float(size[at - 2])
    )
    searched = np.mean(
        np.abs(seen).max(axis=1) > np.quantile(np.abs(chance).max(axis=1), 1 - LEVEL)
    )
    return Measured(level, rates, np.full(count, noise)), at, (placed, float(searched))


def cell(count: int, noise: float, ratio: float, seeds: int) -> dict[str, float]:
    found = right = 0
    powers = []
    for seed in range(seeds):
        measured, at, power = series(count, noise, ratio, seed)
        step = find_step(measured, str(seed))
        found += step is not None
        right += step is not None and abs(int(np.searchsorted(measured.level, step.at)) - at) <= 1
        powers.append(power)
    asked = {
        "levels": count,
        "error": noise,
        "ratio": ratio,
        "seeds": seeds,
        "reported": found / seeds,
    }
    return (
        asked
        if ratio == 1
        else {
            **asked,
            "found": right / seeds,
            **dict(
                zip(("placed", "ideal"), np.mean(powers, axis=0).round(4).tolist(), strict=True)
            ),
        }
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--levels", type=int, nargs="+", default=[10, 19])
    options.add_argument("--errors", type=float, nargs="+", default=[0.05, 0.025, 0.016, 0.005])
    options.add_argument("--ratios", type=float, nargs="+", default=[1.0, 1.3, 0.7, 1.5])
    options.add_argument("--seeds", type=int, default=200)
    options.add_argument("--save", type=Path)
    asked = options.parse_args()
    rows = []
    print("levels  error   ratio   reported   found   ideal  placed")
    for count in asked.levels:
        for noise in asked.errors:
            for ratio in asked.ratios:
                row = cell(count, noise, ratio, asked.seeds)
                rows.append(row)
                shown = (
                    "   -  "
                    if ratio == 1
                    else "  ".join(f"{row[name]:6.2f}" for name in ("found", "ideal", "placed"))
                )
                print(
                    f"{count:6d}  {100 * noise:4.1f} %  {ratio:5.2f}  {row['reported']:8.2f}  "
                    f"{shown}",
                    flush=True,
                )
    if asked.save:
        known = json.loads(asked.save.read_text()) if asked.save.exists() else []
        asked.save.write_text(json.dumps([*known, *rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
