"""Jumps of throughput between two levels: a kernel switch or a transport limit, not a property of
the curve.

The smooth curve is tried against the same curve times a factor from one level on, for every level,
by likelihood ratio with the levels' own standard errors. Smooth is what either family of curves
describes (`curves`, `usl`), and the sharp corner that both only approach: in proportion up to a
limit, as with so many instances of equal requests. The best gain over all levels is judged against
its own distribution on simulated smooth series, so that choosing the best place costs what it
should. Where the curve with the jump does not meet the levels within their errors, or these are not
known, its own misfit is the yardstick, and the jump must also stand out from both neighbouring
intervals: a bend that neither family has does not. What can be found:
`benchmarks/step_detection.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.curves.batch import BATCH
from profharness.analysis.curves.fit import Family, Measured
from profharness.analysis.curves.least_squares import least_squares
from profharness.analysis.curves.records import StepChange
from profharness.analysis.curves.usl import USL
from profharness.stats.bootstrap import generator
from profharness.trace.model import F64, I64

SIMULATIONS = 375
FEWEST_LEVELS = 7
# The search tries a jump at every level, each with fits over all levels and as many simulated
# series: its time grows with the cube of their number, and minutes pass from a few hundred on.
MOST_LEVELS = 64
# Smaller factors are what the difference between a real curve and a formula of three parameters can
# look like.
SMALLEST = 1.2
_FAMILIES: tuple[Family, ...] = (BATCH, USL)
_LEVEL = 0.035
_BLOCK = 75
_CLEAR = 2.3
_LARGEST = math.log(20.0)
_INNER = 2
# What a three-parameter curve may miss of a real, smooth series without that being a jump.
_MODEL_ERROR = 0.01
_LOCAL_SHARE = 0.3
# A single place exceeds this by chance in every twentieth series: choosing among several only makes
# it worse.
_NEVER = 3.84
# By chance the best of thirty jumps (fifteen places, two families) gains this much less than once
# in 300 series:
# 30 times the tail of chi-square with one degree of freedom.
_CERTAIN = 15.0
_START_JUMPS = (-0.4, 0.0, 0.3, 0.8)
_EVERY = 3
# A simulated series is only asked for its gain; the measured one's jump is printed.
_SETTLED, _ROUGHLY = 1e-7, 1e-4
_TINY = 1e-6
_SIGMAS = 3.0
_Z99 = 2.5758293035489004


@dataclass(frozen=True)
class _Search:
    """What is compared: the levels, the errors that weigh them, and the jumps: for every level 0
    before and 1 from it on.
    """

    measured: Measured
    sigma: F64

    def jumps_from(self, edge: int) -> F64:
        """(places, points): jumps with so many levels at least on either side."""
        points = len(self.sigma)
        return np.array(
            [np.arange(points) >= at for at in range(edge, points - edge + 1)], np.float64
        )

    @property
    def freedom(self) -> int:
        """The degrees of freedom that the curve with a jump leaves."""
        return len(self.sigma) - _FAMILIES[0].parameters - 1

    def smooth(
        self, family: Family, start: F64, logs: F64, settled_at: float = _SETTLED
    ) -> tuple[F64, F64]:
        """Parameters and weighted squares of the curve without a jump: (copies, parameters),
        (copies,).
        """
        fits = least_squares(
            family.model(self.measured.level),
            start,
            logs,
            1 / self.sigma**2,
            family.box(self.measured),
            settled_at,
        )
        return fits.theta, fits.squares

    def jumped(
        self, family: Family, start: F64, logs: F64, edge: int, settled_at: float = _SETTLED
    ) -> tuple[F64, F64]:
        """Weighted squares and jumps (copies, places) of the fits that start at these parameters,
        the last being the jump.
        """
        low, high = family.box(self.measured)
        steps = self.jumps_from(edge)
        copies, places = len(start), len(steps)
        model = family.model(self.measured.level, np.tile(steps, (copies, 1)))
        repeated = np.repeat(np.broadcast_to(logs, (copies, logs.shape[-1])), places, axis=0)
        fits = least_squares(
            model,
            np.repeat(start, places, axis=0),
            repeated,
            1 / self.sigma**2,
            (np.append(low, -_LARGEST), np.append(high, _LARGEST)),
            settled_at,
        )
        return fits.squares.reshape(copies, places), fits.theta[:, -1].reshape(copies, places)

    def corner(self, logs: F64) -> tuple[F64, F64]:
        """Throughput in proportion up to a limit: the levels' logs (copies, points) and weighted
        squares (copies,).
        """
        x, weight = np.log(self.measured.level), 1 / self.sigma**2
        rising = np.arange(len(x) + 1)[:, None] > np.arange(
            len(x)
        )  # (splits, points): so many levels below the limit
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = ((logs - x) * weight) @ rising.T / (rising @ weight)
            limit = (logs * weight) @ ~rising.T / (~rising @ weight)
        curves = np.fmin(slope[..., None] + x, limit[..., None])
        squares = ((logs[:, None] - curves) ** 2 * weight).sum(axis=-1)
        best, rows = squares.argmin(axis=1), np.arange(len(logs))
        return curves[rows, best], squares[rows, best]

    def compare(self, smooth: Sequence[tuple[F64, F64]], logs: F64) -> _Tried:
        """Every copy without and with a jump, which is looked for from the smooth curve on."""
        zero = np.zeros((len(logs), 1))
        jumped = [
            self.jumped(family, np.hstack([theta, zero]), logs, _INNER, _ROUGHLY)
            for family, (theta, _) in zip(_FAMILIES, smooth, strict=True)
        ]
        return _choose([*(squares for _, squares in smooth), self.corner(logs)[1]], jumped)


@dataclass(frozen=True)
class _Tried:
    """Per copy: the weighted squares of the best curve without and with a jump, that jump (log) and
    its place.
    """

    without: F64
    best: F64
    jump: F64
    place: I64

    def gain(self, freedom: int, *, known: bool) -> F64:
        """The likelihood ratio, or the gain per remaining mean square; 0 for a jump that is too
        small to be one.
        """
        gain = self.without - self.best
        scaled = gain if known else gain / np.maximum(self.best / freedom, 1e-300)
        return np.where(np.abs(self.jump) < math.log(SMALLEST), 0.0, scaled)


def find_step(measured: Measured, seed: str) -> StepChange | None:
    """The most significant jump, of a factor of at least 1.2, at the first level after it.

    Needs seven levels, since a curve and a jump have four parameters between them; with fewer see
    `impossible_rise`. Where no simulation is needed to see it (many starts find more than a
    simulation does from one, but nothing that large comes by chance), it may lie at the second
    level or the last; else two levels lie on either side. Of more than 64 levels, 64 are searched,
    and the jump is then placed between two of these where the throughput steps most.
    """
    if len(measured.level) < FEWEST_LEVELS:
        return None
    if len(measured.level) <= MOST_LEVELS:
        return _find_step(measured, seed)
    kept = np.unique(np.linspace(0, len(measured.level) - 1, MOST_LEVELS).round().astype(np.int64))
    change = _find_step(measured.at_positions(kept), seed)
    return None if change is None else _placed(measured, kept, change)


def _placed(measured: Measured, kept: I64, change: StepChange) -> StepChange:
    """The same jump at the level, of all that lie between the two searched ones, into which the
    throughput steps most in the jump's direction.
    """
    behind = int(np.searchsorted(measured.level[kept], change.at))
    first, last = int(kept[behind - 1]), int(kept[behind])
    rises = np.diff(np.log(measured.throughput[first : last + 1]))
    largest = int((rises if change.ratio > 1 else -rises).argmax())
    return StepChange(at=float(measured.level[first + 1 + largest]), ratio=change.ratio)


def _find_step(measured: Measured, seed: str) -> StepChange | None:
    logs = np.log(measured.throughput)[None, :]
    search = _Search(measured, _sigma(measured, logs))
    smooth = [_smoothest(search, family, logs) for family in _FAMILIES]
    squares = [*(sums for _, sums in smooth), search.corner(logs)[1]]
    everywhere: list[tuple[F64, F64]] = []
    if measured.errors_known and min(squares)[0] > _CERTAIN:
        everywhere = _thoroughly(search, smooth, logs, 1)
        sure = _choose(squares, everywhere)
        if (
            sure.best[0] < _most(search.freedom)
            and sure.gain(search.freedom, known=True)[0] > _CERTAIN
        ):
            return _change(measured, sure, 1)
    seen = search.compare(smooth, logs)
    if max(seen.gain(search.freedom, known=known)[0] for known in (True, False)) < _NEVER:
        return None
    inside = slice(_INNER - 1, 1 - _INNER)  # of all places those with enough levels on either side
    best = _choose(
        squares,
        [(sums[:, inside], jumps[:, inside]) for sums, jumps in everywhere]
        or _thoroughly(search, smooth, logs, _INNER),
    )
    change, by_errors = (
        _change(measured, best, _INNER),
        measured.errors_known and bool(best.best[0] < _most(search.freedom)),
    )
    if abs(best.jump[0]) < math.log(SMALLEST) or not (
        by_errors or stands_out(measured, _INNER + int(best.place[0]), float(best.jump[0]))
    ):
        return None
    return (
        change
        if _beyond_chance(
            search,
            smooth,
            (float(seen.gain(search.freedom, known=by_errors)[0]), by_errors),
            seed,
        )
        else None
    )


def _change(measured: Measured, tried: _Tried, edge: int) -> StepChange:
    return StepChange(
        at=float(measured.level[edge + int(tried.place[0])]), ratio=math.exp(float(tried.jump[0]))
    )


def _sigma(measured: Measured, logs: F64) -> F64:
    """Errors with what a formula may miss; where they are not known, what the better smooth curve
    leaves, for all alike.
    """
    if measured.errors_known:
        return np.hypot(measured.error, _MODEL_ERROR)
    even = _Search(measured, np.ones(len(measured.level)))
    squares = min(
        float(form_squares[0])
        for form_squares in (
            even.corner(logs)[1],
            *(_smoothest(even, family, logs)[1] for family in _FAMILIES),
        )
    )
    return np.full(len(measured.level), max(math.sqrt(squares / (even.freedom + 1)), _TINY))


def _most(freedom: int) -> float:
    """The 99.5 % quantile of chi-square (Wilson and Hilferty's approximation)."""
    return float(freedom * (1 - 2 / (9 * freedom) + _Z99 * math.sqrt(2 / (9 * freedom))) ** 3)


def _smoothest(search: _Search, family: Family, logs: F64) -> tuple[F64, F64]:
    """The measured series without a jump, from many starts: (1, parameters), (1,)."""
    theta, squares = search.smooth(family, family.starts(search.measured), logs)
    best = int(squares.argmin())
    return theta[best : best + 1], squares[best : best + 1]


def _thoroughly(
    search: _Search, smooth: Sequence[tuple[F64, F64]], logs: F64, edge: int
) -> list[tuple[F64, F64]]:
    return [
        _thorough(search, family, theta, logs, edge)
        for family, (theta, _) in zip(_FAMILIES, smooth, strict=True)
    ]


def _thorough(search: _Search, family: Family, theta: F64, logs: F64, edge: int) -> tuple[F64, F64]:
    """The measured series from many starts: the curve that a large jump leaves is far from the
    smooth one.
    """
    starts = np.vstack([theta, family.starts(search.measured)[::_EVERY]])
    jumps = np.repeat(_START_JUMPS, len(starts))[:, None]
    squares, jumps = search.jumped(
        family, np.hstack([np.tile(starts, (len(_START_JUMPS), 1)), jumps]), logs, edge
    )
    best, places = squares.argmin(axis=0), np.arange(squares.shape[1])
    return squares[best, places][None, :], jumps[best, places][None, :]


def _choose(smooth: Sequence[F64], jumped: Sequence[tuple[F64, F64]]) -> _Tried:
    """The best over families, without and with a jump: squares (copies,), squares and jumps
    (copies, candidates).
    """
    squares, jumps = (np.hstack(parts) for parts in zip(*jumped, strict=True))
    places = jumped[0][0].shape[1]
    chosen, rows = squares.argmin(axis=1), np.arange(len(squares))
    without = np.min(smooth, axis=0)
    return _Tried(
        without, np.minimum(squares[rows, chosen], without), jumps[rows, chosen], chosen % places
    )


def _beyond_chance(
    search: _Search, smooth: Sequence[tuple[F64, F64]], seen: tuple[float, bool], seed: str
) -> bool:
    """Whether series around the better smooth curve reach the statistic seen in fewer than 3.5 % of
    the cases; stops when that is clear.
    """
    statistic, known = seen
    if statistic < _NEVER:
        return False
    values = _best_smooth(search, smooth, np.log(search.measured.throughput)[None, :])
    rng, reached = generator("step", seed), 0
    for done in range(_BLOCK, SIMULATIONS + 1, _BLOCK):
        logs = values + rng.standard_normal((_BLOCK, len(values))) * search.sigma
        chance = [
            search.smooth(family, np.repeat(theta, _BLOCK, axis=0), logs, _ROUGHLY)
            for family, (theta, _) in zip(_FAMILIES, smooth, strict=True)
        ]
        reached += int(
            (search.compare(chance, logs).gain(search.freedom, known=known) >= statistic).sum()
        )
        if reached >= _LEVEL * SIMULATIONS:
            return False
        if reached < _LEVEL * done - _CLEAR * math.sqrt(_LEVEL * done):
            return True
    return True


def _best_smooth(search: _Search, smooth: Sequence[tuple[F64, F64]], logs: F64) -> F64:
    """The levels' logs by the smooth form that meets the measured ones best: (points,)."""
    corner, squares = search.corner(logs)
    best = int(np.argmin([form_squares[0] for _, form_squares in smooth]))
    sharp = squares[0] < smooth[best][1][0]
    curve: F64 = (
        corner[0] if sharp else _FAMILIES[best].model(search.measured.level)(smooth[best][0])[0][0]
    )
    return curve


def stands_out(measured: Measured, position: int, jump: float) -> bool:
    """Whether log T changes into `position` by more (or, downwards, less) than the slopes on both
    sides explain.

    One standard error of that difference is granted, where errors are known.
    """
    x, y = np.log(measured.level), np.log(measured.throughput)
    width = float(x[position] - x[position - 1])
    rise = float(y[position] - y[position - 1])
    variance = measured.error**2
    excesses = []
    for before in (position - 2, position):
        if 0 <= before < len(x) - 1:
            ratio = width / float(x[before + 1] - x[before])
            excess = rise - ratio * float(y[before + 1] - y[before])
            weights = np.zeros(len(x))
            weights[[position, position - 1]] += 1.0, -1.0
            weights[[before + 1, before]] += -ratio, ratio
            excesses.append(
                excess * math.copysign(1.0, jump) + math.sqrt(float(weights**2 @ variance))
            )
    return min(excesses) > _LOCAL_SHARE * abs(jump)


def impossible_rise(measured: Measured) -> StepChange | None:
    """Over batch sizes: throughput that grows by at least 20 % more than the batch, which no fixed
    kernel gives.

    A batch that holds another takes at least as long, so T(b) / b cannot rise; for scans too short
    to fit.
    """
    if len(measured.level) < 2 or not measured.errors_known:
        return None
    logs = np.log(measured.throughput / measured.level)
    rise = np.diff(logs)
    error = np.hypot(measured.error[1:], measured.error[:-1])
    best = int(rise.argmax())
    if rise[best] < max(math.log(SMALLEST), _SIGMAS * error[best]):
        return None
    return StepChange(at=float(measured.level[best + 1]), ratio=float(math.exp(rise[best])))
