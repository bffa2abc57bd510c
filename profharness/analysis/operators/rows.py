"""The work of every operator of a trace, counted once: which level of a nest it stands at, and
which operator a device record works for (docs/metrics.md#operator-work).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.categories import op_category
from profharness.analysis.operators import server_steps
from profharness.analysis.operators.beside import given_for
from profharness.analysis.operators.engine import Engine, own_engine
from profharness.analysis.operators.gradients import recomputed
from profharness.analysis.operators.nests import Nests, nests
from profharness.analysis.operators.records import NO_EXTENTS, NO_LENGTHS, Given, Work
from profharness.node.devices import Dtype
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import ran_nothing
from profharness.trace.model import F64, I64, Trace

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowWork:
    """Per row of `Trace.ops`: what it has to do at least, where the work stands in this row.

    `flops`, `flops_full` and `flops_most` (NaN elsewhere, and where not known), `low_bytes` the
    same, `dtype` a position in `dtypes` (NULL for none). `again` are the operators that run a
    forward pass again. `owner` is the operator that stands for the matrix work that this one is
    part of, itself included; `reason` (a position in `reasons`, NULL for none) says of matrix work
    that stands nowhere why it is not known. `misfits` count the calls that an entry of the table
    did not fit, by entry.
    """

    flops: F64
    flops_full: F64
    flops_most: F64
    low_bytes: F64
    dtype: I64
    dtypes: tuple[Dtype, ...]
    again: Mask
    owner: I64
    reason: I64
    reasons: tuple[str, ...]
    misfits: tuple[tuple[str, int], ...]

    @property
    def known(self) -> Mask:
        """Which rows hold matrix work that is known."""
        known: Mask = np.isfinite(self.flops)
        return known


@dataclass(frozen=True, eq=False)
class _Calls:
    """The distinct calls of a trace: their works, which are attention's, and which of them each
    row is.
    """

    works: list[Work]
    attention: list[bool]
    which: I64

    def column(self, values: list[float | None]) -> F64:
        return np.array([np.nan if value is None else value for value in values], np.float64)[
            self.which
        ]

    def mask(self, values: list[bool]) -> Mask:
        return np.array(values, np.bool_)[self.which]


def row_work(trace: Trace, engine: Engine | None = None) -> RowWork:
    """The work of the operators of a trace; a call counts in one row. Calls that were captured into
    a graph ran nothing and have none: their replays do.
    """
    ops = trace.ops
    calls = _calls(trace, engine or own_engine())
    tree = nests(ops)
    works = calls.works
    flops = calls.column([None if work.bound == "most" else work.flops for work in works])
    standing = _standing(tree, calls, np.isfinite(flops))
    moved = calls.column([work.low_bytes for work in works])
    covered = tree.inside(standing & calls.mask([_covers(work) for work in works]))
    is_matrix = calls.mask([work.matrix for work in works])
    streaming = tree.standing(
        ~is_matrix & np.isfinite(moved) & ~covered,
        calls.mask([work.nest == "wins" for work in works]),
    )
    dtypes = tuple(dict.fromkeys(work.dtype for work in works if work.dtype is not None))
    types = _codes([work.dtype for work in works], dtypes)[calls.which]
    owner = tree.nearest(standing)
    reasons = tuple(dict.fromkeys(work.reason for work in works if work.reason))
    reason = _codes([work.reason or None for work in works], reasons)[calls.which]
    ran = ~ran_nothing(trace)
    multiplied, counted = standing & ran, (standing | streaming) & ran
    return RowWork(
        flops=np.where(multiplied, flops, np.nan),
        flops_full=np.where(multiplied, calls.column([work.full for work in works]), np.nan),
        flops_most=np.where(
            multiplied, calls.column([work.flops_most or work.flops for work in works]), np.nan
        ),
        low_bytes=np.where(counted, moved, np.nan),
        dtype=np.where(standing, _inner_types(tree, calls, types, owner), NULL),
        dtypes=dtypes,
        again=recomputed(ops, trace.strings),
        owner=owner,
        reason=np.where((owner == NULL) & is_matrix, reason, NULL),
        reasons=reasons,
        misfits=_misfits(calls),
    )


def _covers(work: Work) -> bool:
    return work.nest in ("wins", "wins-attention")


def _standing(tree: Nests, calls: _Calls, known: Mask) -> Mask:
    """Which rows stand for the matrix work of their nest, by what the table says of them."""
    works = calls.works
    outer = calls.mask([work.nest == "outer" for work in works])
    of_attention = calls.mask([work.nest == "wins-attention" for work in works])
    attention = calls.mask(calls.attention)
    with_products = tree.with_inner((known & ~attention & ~outer).astype(np.int64)) > 0
    whole = calls.mask([work.nest == "wins" for work in works]) | (of_attention & ~with_products)
    return tree.standing(known & ~(of_attention & with_products), whole)


def _inner_types(tree: Nests, calls: _Calls, types: I64, owner: I64) -> I64:
    """The type of each row that stands for attention: that of the innermost operator of its nest
    that has one, since autocast changes types on the way in.
    """
    of_attention = calls.mask([work.nest == "wins-attention" for work in calls.works])
    inner = types.copy()
    for rows, holder in tree.outward():
        typed = rows[(inner[rows] != NULL) & of_attention[holder] & (owner[rows] != NULL)]
        inner[tree.parent[typed]] = inner[typed]
    return inner


def _calls(trace: Trace, engine: Engine) -> _Calls:
    ops, strings = trace.ops, trace.strings
    columns = (ops.name, ops.shapes, ops.dtype, ops.concrete, ops.strides)
    first, which = first_rows(pack(columns))

    def texts(row: int) -> tuple[str, ...]:
        codes = [int(column[row]) for column in columns]
        return tuple("" if code == NULL else strings[code] for code in codes)

    works = [engine.work(*texts(row)) for row in first.tolist()]
    attention = [op_category(strings[int(ops.name[row])]) == "attention" for row in first.tolist()]
    helped = which.copy()
    numbers: dict[Work, int] = {}
    for rows, given in _told(trace, tuple(works), which):
        work = engine.work(*texts(int(rows[0])), given=given)
        if work not in numbers:
            numbers[work] = len(works)
            works.append(work)
            attention.append(attention[which[rows[0]]])
        helped[rows] = numbers[work]
    return _Calls(works, attention, helped)


def _told(trace: Trace, works: Sequence[Work], which: I64) -> Iterator[tuple[I64, Given]]:
    """Rows of one call whose own texts do not say enough, and what other records say of them."""

    def lacking(reason: str) -> I64:
        numbers = [number for number, work in enumerate(works) if work.reason == reason]
        return np.flatnonzero(np.isin(which, numbers))

    for row, given in given_for(trace.ops, trace.strings, lacking(NO_EXTENTS)):
        yield np.array([row]), given
    yield from server_steps.told(trace, lacking(NO_LENGTHS), which)


def _codes(values: list[str | None] | list[Dtype | None], among: tuple[str, ...]) -> I64:
    place = {value: position for position, value in enumerate(among)}
    return np.array([NULL if value is None else place[value] for value in values], np.int64)


def _misfits(calls: _Calls) -> tuple[tuple[str, int], ...]:
    """Calls by the label of the entry that did not fit them."""
    counts = np.bincount(calls.which, minlength=len(calls.works))
    labels: Counter[str] = Counter()
    for work, count in zip(calls.works, counts.tolist(), strict=True):
        if work.misfit:
            labels[work.misfit] += count
    return tuple(labels.most_common())
