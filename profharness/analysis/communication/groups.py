"""Ranks in groups that no figure tells apart (docs/metrics.md#groups-of-ranks). Pure.

Of each figure the values of all ranks, in order, fall apart where two neighbours differ by more
than a tenth of the median (and by more than what is worth telling). Ranks that are on the same side
of every such gap are a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.communication.records import (
    RankCell,
    RankCells,
    RankDifference,
    RankGroup,
    RankKind,
)
from profharness.analysis.communication.waits import NOTICEABLE_NS
from profharness.trace.model import F64

_APART = 0.10  # of the median of all ranks
_LEAST_SHARE = 0.02  # of the window
_Column = tuple[RankKind, str, bool]


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of ranks as a matrix (ranks, columns), NaN where a rank has none; `worth` is the
    difference in each column that counts.
    """

    columns: tuple[_Column, ...]
    values: F64
    usual: F64
    worth: F64

    @classmethod
    def of(cls, ranks: Sequence[RankCells]) -> Figures:
        """Of at least one rank with a figure."""
        keys = dict.fromkeys(
            (cell.of, cell.name, cell.is_share) for one in ranks for cell in one.cells
        )
        columns = tuple(keys)
        place = {column: at for at, column in enumerate(columns)}
        values = np.full((len(ranks), len(columns)), np.nan)
        for row, one in enumerate(ranks):
            for cell in one.cells:
                values[row, place[cell.of, cell.name, cell.is_share]] = cell.value
        usual = np.nanmedian(values, axis=0)
        least = np.array([_LEAST_SHARE if share else NOTICEABLE_NS for _, _, share in columns])
        return cls(columns, values, usual, np.maximum(_APART * np.abs(usual), least))


def rank_groups(ranks: Sequence[RankCells]) -> tuple[RankGroup, ...]:
    """The groups, the one that differs most from the largest first, and that one last; none of
    fewer than three ranks.
    """
    if len(ranks) < 3 or not any(one.cells for one in ranks):
        return ()
    figures = Figures.of(ranks)
    levels = np.stack(
        [
            _levels(column, worth)
            for column, worth in zip(figures.values.T, figures.worth, strict=True)
        ],
        axis=1,
    )
    members: dict[tuple[int, ...], list[int]] = {}
    for row, level in enumerate(levels.tolist()):
        members.setdefault(tuple(level), []).append(row)
    largest = max(members.values(), key=len)
    usual = medians(figures, largest)
    off = {
        level: np.abs(medians(figures, rows) - usual) / figures.worth
        for level, rows in members.items()
    }
    most = {
        level: -1.0 if members[level] is largest else float(np.nanmax(apart, initial=0.0))
        for level, apart in off.items()
    }
    return tuple(
        _group(ranks, figures, members[level], usual)
        for level in sorted(members, key=lambda level: -most[level])
    )


def _group(
    ranks: Sequence[RankCells], figures: Figures, rows: Sequence[int], usual: F64
) -> RankGroup:
    """One group, against the medians of the largest one."""
    own = medians(figures, rows)
    off = np.nan_to_num(np.abs(own - usual) / figures.worth)
    told = [at for at in np.argsort(-off, kind="stable").tolist() if off[at] >= 1]
    columns = figures.columns
    return RankGroup(
        ranks=tuple(ranks[row].rank for row in rows),
        cells=tuple(
            RankCell(of=of, name=name, value=float(value), is_share=share)
            for (of, name, share), value in zip(columns, own, strict=True)
            if np.isfinite(value)
        ),
        differs=tuple(
            RankDifference(
                of=columns[at][0],
                name=columns[at][1],
                value=float(own[at]),
                usual=float(usual[at]),
                is_share=columns[at][2],
            )
            for at in told
        ),
    )


def medians(figures: Figures, rows: Sequence[int]) -> F64:
    """Of each column over some ranks; NaN where none has the figure."""
    chosen = figures.values[list(rows)]
    known = np.isfinite(chosen).any(axis=0)
    medians = np.full(chosen.shape[1], np.nan)
    medians[known] = np.nanmedian(chosen[:, known], axis=0)
    return medians


def _levels(values: F64, worth: float) -> F64:
    """The number of gaps below each value; -1 where there is none."""
    level = np.full(len(values), -1.0)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    level[order] = np.concatenate([[0.0], np.cumsum(np.diff(values[order]) > worth)])
    return level
