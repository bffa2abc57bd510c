"""Which setting of a grid a search measures next, and which it recommends. Pure: the same seed and
the same measurements give the same answer.

A search begins with a Latin hypercube. Then each level is the one that promises most over the best
one (`profharness.stats.surrogate`), less where it will hardly keep the limit. The last levels are
spent on those that may be the best: they are measured again, so that no lucky level wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.rundir.executions.axes import Axis
from profharness.scans.design import Setting, latin_hypercube
from profharness.stats.surrogate import Grid, Posterior, below, expected_gain, grid_of, posterior
from profharness.trace.model import F64, I64

_LEAST_START = 4
_AGAIN = 6
"""One of so many levels measures a leader again, and at least one does."""
_DOUBT = 1.64
"""Standard deviations, one-sided 95 %."""
_LEAST_SIGMA = 1e-3


@dataclass(frozen=True)
class Measured:
    """One level: the place of its setting among all, the logarithm of its throughput with its
    standard error (None where it failed), and of a figure under a limit the logarithm of its share
    of the limit (negative where the limit is kept) with its own.
    """

    place: int
    value: float | None
    sigma: float = 0.0
    over: float | None = None
    over_sigma: float = 0.0


@dataclass(frozen=True)
class SettingsSearch:
    """A search over some axes by so many levels."""

    axes: tuple[Axis, ...]
    levels: int
    seed: int = 0

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings, the last axis varying fastest."""
        return tuple(
            tuple(axis.values[at] for axis, at in zip(self.axes, row, strict=True))
            for row in grid_of([len(axis.values) for axis in self.axes], ()).levels.tolist()
        )

    @property
    def grid(self) -> Grid:
        """The settings as positions: of numbers by size, whatever order they were listed in."""
        grid = grid_of(
            [len(axis.values) for axis in self.axes], [axis.is_number for axis in self.axes]
        )
        ranked = np.column_stack(
            [_ranks(axis)[column] for axis, column in zip(self.axes, grid.levels.T, strict=True)]
        )
        return Grid(ranked, grid.counts, grid.ordered)

    @property
    def begins_with(self) -> tuple[int, ...]:
        """The places that are measured before anything is known."""
        size = min(max(_LEAST_START, len(self.axes) + 2), self.levels, len(self.grid))
        place = {setting: at for at, setting in enumerate(self.settings)}
        return tuple(place[one] for one in latin_hypercube(self.axes, size, self.seed))

    @property
    def again(self) -> int:
        """The levels at the end that measure leaders again."""
        return max(1, self.levels // _AGAIN)

    def following(
        self, measured: Sequence[Measured], earlier: Sequence[Measured] = ()
    ) -> int | None:
        """The place to measure next; None where all levels are spent. `measured` are all levels so
        far, in their order; `earlier` those of other runs, which stand for the start but are never
        recommended by themselves.
        """
        if len(measured) >= self.levels:
            return None
        first = [at for at in self.begins_with if at not in {one.place for one in measured}]
        begun = len(measured) + len({one.place for one in earlier})
        if begun < len(self.begins_with) and first:
            return first[0]
        grid = self.grid
        seen = np.unique(np.array([one.place for one in measured], np.int64))
        keeps = _keeps(grid, (*measured, *earlier))
        known = _known(grid, (*measured, *earlier))
        if known is None:
            return self._likeliest_to_work(keeps, seen)
        spent = self.levels - len(measured) <= self.again or len(seen) == len(grid)
        if spent and len(_worked(measured)):
            return _to_measure_again(known, keeps, measured)
        if len(seen) == len(grid):
            return None
        best = _best(known, keeps, _worked((*measured, *earlier)))
        promised = expected_gain(known, best) * keeps
        promised[seen] = -1.0  # leaders are measured again at the end
        return int(np.argmax(promised))

    def recommended(
        self, measured: Sequence[Measured], earlier: Sequence[Measured] = ()
    ) -> int | None:
        """The measured setting of which most is expected, of those that are likelier than not to
        keep the limit; None where there is none.
        """
        grid = self.grid
        keeps = _keeps(grid, (*measured, *earlier))
        known = _known(grid, (*measured, *earlier))
        kept = _worked(measured)
        kept = kept[keeps[kept] >= 0.5]
        if known is None or not len(kept):
            return None
        return int(kept[np.argmax(known.mean[kept])])

    def _likeliest_to_work(self, keeps: F64, seen: I64) -> int | None:
        """Where everything has failed so far; None where nothing else is left."""
        left = np.setdiff1d(np.arange(len(keeps)), seen)
        return int(left[np.argmax(keeps[left])]) if len(left) else None


def _ranks(axis: Axis) -> I64:
    """Of each listed value its place by size; of a category as listed."""
    if not axis.is_number:
        return np.arange(len(axis.values))
    ranks: I64 = np.argsort(np.argsort([float(value) for value in axis.values]))
    return ranks


def _worked(measured: Sequence[Measured]) -> I64:
    """The places of settings that never failed."""
    failed = {one.place for one in measured if one.value is None}
    return np.array(sorted({one.place for one in measured} - failed), np.int64)


def _known(grid: Grid, measured: Sequence[Measured]) -> Posterior | None:
    """None where nothing ended well."""
    told = [(one, one.value) for one in measured if one.value is not None]
    if not told:
        return None
    return posterior(
        grid,
        [one.place for one, _ in told],
        [value for _, value in told],
        [max(one.sigma, _LEAST_SIGMA) for one, _ in told],
    )


def _keeps(grid: Grid, measured: Sequence[Measured]) -> F64:
    """How likely each setting keeps the limit, or works at all; 1 where nothing is said of it."""
    told = [(one, one.over) for one in measured if one.over is not None]
    if not told:
        return np.ones(len(grid))
    found = posterior(
        grid,
        [one.place for one, _ in told],
        [over for _, over in told],
        [max(one.over_sigma, _LEAST_SIGMA) for one, _ in told],
    )
    return below(-found.mean / np.maximum(found.sd, 1e-9))


def _best(known: Posterior, keeps: F64, seen: I64) -> float:
    """What is expected of the best measured setting that keeps the limit; where none does, of the
    worst: anything is better.
    """
    kept = seen[keeps[seen] >= 0.5]
    if len(kept):
        return float(known.mean[kept].max())
    return float((known.mean[seen] if len(seen) else known.mean).min())


def _to_measure_again(known: Posterior, keeps: F64, measured: Sequence[Measured]) -> int:
    """The winner so far, where it was measured once; else of those that may be best the one that
    was measured least often.
    """
    times = Counter(one.place for one in measured)
    seen = _worked(measured)
    kept = seen[keeps[seen] >= 0.5]
    seen = kept if len(kept) else seen
    winner = int(seen[np.argmax(known.mean[seen])])
    if times[winner] == 1:
        return winner
    high = known.mean + _DOUBT * known.sd
    low = float((known.mean - _DOUBT * known.sd)[seen].max())
    leaders = [at for at in seen.tolist() if high[at] >= low]
    found: int = min(leaders, key=lambda at: (times[at], -float(high[at])))
    return found
