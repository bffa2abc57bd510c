"""Values of axes as columns of a linear model, and which columns a design can tell apart. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.axes.records import AxisLevels
from profharness.trace.model import F64, I64

_SPARE = 3
"""Degrees of freedom that an incomplete design keeps for what its effects do not explain."""
_WORST_CONDITION = 1e6
MOST_CELLS = 400
"""Pairs of values of two axes: of more, nobody reads an interaction."""


@dataclass(frozen=True, eq=False)
class Coded:
    """One axis: `rows` has the columns of each of its values (values x columns), which sum to 0."""

    axis: AxisLevels
    rows: F64

    @property
    def columns(self) -> int:
        return int(self.rows.shape[1])


@dataclass(frozen=True, eq=False)
class Design:
    """The columns that the effects of a design have. `main` and `pairs` say which columns belong to
    which axes; column 0 is the mean.
    """

    coded: tuple[Coded, ...]
    places: I64
    pairs: tuple[tuple[int, int], ...] = ()

    def matrix(self, pairs: Sequence[tuple[int, int]] | None = None) -> F64:
        """(points, columns), with these interactions, or all of the design's."""
        rows = [one.rows[self.places[:, at]] for at, one in enumerate(self.coded)]
        return _joined(rows, self.pairs if pairs is None else pairs, len(self.places))

    def slice_of(self, axes: tuple[int, ...]) -> slice:
        """Where the columns of one axis, or of two together, stand in the matrix."""
        start = 1
        for at, one in enumerate(self.coded):
            if axes == (at,):
                return slice(start, start + one.columns)
            start += one.columns
        for first, second in self.pairs:
            size = self.coded[first].columns * self.coded[second].columns
            if axes == (first, second):
                return slice(start, start + size)
            start += size
        raise KeyError(axes)


def _joined(rows: Sequence[F64], pairs: Sequence[tuple[int, int]], points: int) -> F64:
    products = [
        (rows[first][:, :, None] * rows[second][:, None, :]).reshape(points, -1)
        for first, second in pairs
    ]
    return np.hstack([np.ones((points, 1)), *rows, *products])


def design_of(
    axes: Sequence[AxisLevels], places: I64, *, repeated: bool
) -> tuple[Design | None, str]:
    """The effects that the measured points can tell apart; None and why where not even the main
    effects can be. `places` has the position of each point's value on each axis; axes of one value
    must be left out. `repeated`: the repeats tell the noise, so that a full grid needs no spare
    points.
    """
    complete = len(places) == np.prod([len(axis.values) for axis in axes])
    spare = 0 if complete and repeated else _SPARE
    full = Design(tuple(Coded(axis, _parts(len(axis.values))) for axis in axes), places)
    bent = Design(tuple(Coded(axis, _bend(axis)) for axis in axes), places)
    chosen = next((one for one in (full, bent) if _told_apart(one.matrix(), spare)), None)
    if chosen is None and complete:
        chosen = full if _told_apart(full.matrix(), 0) else None
    if chosen is None:
        return None, f"more points: {len(places)} do not tell {len(axes)} axes apart"
    pairs: list[tuple[int, int]] = []
    for pair in itertools.combinations(range(len(axes)), 2):
        cells = len(axes[pair[0]].values) * len(axes[pair[1]].values)
        if cells <= MOST_CELLS and _told_apart(chosen.matrix([*pairs, pair]), spare):
            pairs.append(pair)
    return Design(chosen.coded, places, tuple(pairs)), ""


def _told_apart(matrix: F64, spare: int) -> bool:
    points, columns = matrix.shape
    if points < columns + spare:
        return False
    return bool(np.linalg.cond(matrix) < _WORST_CONDITION)


def _parts(levels: int) -> F64:
    """A column per value but the last, whose part is minus the sum of the others."""
    return np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1))])


def _bend(axis: AxisLevels) -> F64:
    """A straight line and a bend over the positions of an axis of more than three numbers."""
    levels = len(axis.values)
    if not axis.is_number or levels <= 3:
        return _parts(levels)
    position = np.linspace(-1.0, 1.0, levels)
    bend = position**2
    return np.column_stack([position, bend - bend.mean()])
