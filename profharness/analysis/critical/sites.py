"""What each operator of a step takes, site by site, so that points of a scan compare.

A site is the n-th call of an operator in a step. Only operators count that every step of every
point calls equally often: where a library takes another way for another batch size, the time goes
to the operator around that all sizes have in common. Time in no such operator is a site, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.scope import Scope
from profharness.analysis.critical.segments import work_operators
from profharness.analysis.host.timeline import OPS, HostRows, timeline
from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Site = tuple[str, int]
OUTSIDE: Site = ("", 0)


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of operators of the main thread that began inside of a step: rows of the host, the
    step, the operator's name, and its number among the step's calls of this name.
    """

    row: I64
    step: I64
    name: I64
    number: I64


@dataclass(frozen=True, eq=False)
class SiteCosts:
    """Times of one point in ns. `host` and `device` have one row per site and one column per
    step; `steps` are whole steps. `site_of_row` and `site_of_work` give the site of each row of the
    host and of each piece of device work.
    """

    scope: Scope
    steps: F64
    host: F64
    device: F64
    site_of_row: I64
    site_of_work: I64


def costs_of(points: Sequence[Scope]) -> list[SiteCosts]:
    """The costs of several points, whose rows are the same sites in the same order."""
    calls = [_calls(scope) for scope in points]
    names = _common(points, calls)
    kept = [_kept(scope, found, names) for scope, found in zip(points, calls, strict=True)]
    sites = {OUTSIDE: 0}
    for scope, found in zip(points, kept, strict=True):
        texts = scope.trace.strings.decode(found.name)
        for site in zip(texts, found.number.tolist(), strict=True):
            sites.setdefault(site, len(sites))
    return [_costs(scope, found, sites) for scope, found in zip(points, kept, strict=True)]


def step_bounds(scope: Scope) -> tuple[I64, I64]:
    """Start and end of each step; of the whole window where none are marked."""
    if not scope.steps:
        return np.array([scope.start], np.int64), np.array([scope.host_end], np.int64)
    return (
        np.array([step.start_ns for step in scope.steps], np.int64),
        np.array([step.end_ns for step in scope.steps], np.int64),
    )


def _calls(scope: Scope) -> Calls:
    rows, (start, end) = scope.rows, step_bounds(scope)
    row = np.flatnonzero((rows.table == OPS) & (rows.thread == scope.main))
    step = _step_at(start, end, rows.start[row])
    row, step = row[step != NULL], step[step != NULL]
    name = rows.name[row].astype(np.int64)
    order = np.lexsort((row, rows.start[row], name, step))
    row, step, name = row[order], step[order], name[order]
    key = pack([step, name]) if len(row) else row
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(row) else row
    lengths = np.diff(np.concatenate((first, [len(row)])))
    number = np.arange(len(row)) - np.repeat(first, lengths)
    return Calls(row, step, name, number)


def _step_at(start: I64, end: I64, at: I64) -> I64:
    """The step that holds each instant; NULL for none."""
    step = np.searchsorted(start, at, "right") - 1
    inside = (step >= 0) & (at < end[np.maximum(step, 0)])
    return np.where(inside, step, NULL)


def _common(points: Sequence[Scope], calls: Sequence[Calls]) -> set[str]:
    """Names that each step of each point calls equally often."""
    counts: dict[str, set[int]] = {}
    seen: Counter[str] = Counter()
    for scope, found in zip(points, calls, strict=True):
        steps = len(step_bounds(scope)[0])
        for code in np.unique(found.name).tolist():
            name = scope.trace.strings[code]
            of_step = np.bincount(found.step[found.name == code], minlength=steps)
            counts.setdefault(name, set()).update(of_step.tolist())
            seen[name] += 1
    return {name for name, each in counts.items() if len(each) == 1 and seen[name] == len(points)}


def _kept(scope: Scope, calls: Calls, names: set[str]) -> Calls:
    codes = [code for code in np.unique(calls.name).tolist() if scope.trace.strings[code] in names]
    keep = np.isin(calls.name, codes)
    return Calls(calls.row[keep], calls.step[keep], calls.name[keep], calls.number[keep])


def _costs(scope: Scope, calls: Calls, sites: dict[Site, int]) -> SiteCosts:
    start, end = step_bounds(scope)
    texts = scope.trace.strings.decode(calls.name)
    site = np.array(
        [sites[key] for key in zip(texts, calls.number.tolist(), strict=True)], np.int64
    )
    stretches = _Stretches(scope, calls, site)
    host = np.zeros((len(sites), len(start)))
    for number, (low, high) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        np.add.at(host[:, number], *stretches.within(low, high))
        host[0, number] += (high - low) - host[:, number].sum()
    rows = scope.rows
    site_of_row = stretches.at(rows.start)
    site_of_row[rows.thread != scope.main] = 0
    site_of_row[calls.row] = site
    site_of_work, step_of_work = _of_work(scope, site_of_row, (start, end))
    device = np.zeros_like(host)
    inside = step_of_work != NULL
    lasting = (scope.records.end - scope.records.start)[scope.work]
    np.add.at(
        device, (site_of_work[inside], step_of_work[inside]), lasting[inside].astype(np.float64)
    )
    return SiteCosts(
        scope, (end - start).astype(np.float64), host, device, site_of_row, site_of_work
    )


class _Stretches:
    """The main thread's time by the innermost call of a site."""

    def __init__(self, scope: Scope, calls: Calls, site: I64) -> None:
        line = timeline(_only(scope.rows, calls.row), scope.main)
        of_row = np.zeros(len(scope.rows), np.int64)
        of_row[calls.row] = site
        self._start, self._end = line.start, line.end
        self._site = of_row[np.sort(calls.row)[line.inner]] if len(line) else line.inner

    def within(self, low: int, high: int) -> tuple[I64, F64]:
        """Sites and times of the stretches between two instants."""
        reach = slice(
            int(np.searchsorted(self._end, low, "right")),
            int(np.searchsorted(self._start, high, "left")),
        )
        lasting = np.minimum(self._end[reach], high) - np.maximum(self._start[reach], low)
        return self._site[reach], lasting.astype(np.float64)

    def at(self, when: I64) -> I64:
        """The site that is open at each instant."""
        if not len(self._start):
            return np.zeros(len(when), np.int64)
        place = np.maximum(np.searchsorted(self._start, when, "right") - 1, 0)
        open_ = (self._start[place] <= when) & (when < self._end[place])
        return np.where(open_, self._site[place], 0)


def _only(rows: HostRows, kept: I64) -> HostRows:
    """Some of the rows, in their order."""
    kept = np.sort(kept)
    return replace(
        rows,
        start=rows.start[kept],
        end=rows.end[kept],
        thread=rows.thread[kept],
        table=rows.table[kept],
        row=rows.row[kept],
        name=rows.name[kept],
        kind=rows.kind[kept],
    )


def _of_work(scope: Scope, site_of_row: I64, bounds: tuple[I64, I64]) -> tuple[I64, I64]:
    """The site that launched each piece of device work, and its step (NULL: outside of all)."""
    trace = scope.trace
    none = np.zeros(len(scope.work), np.int64)
    if not len(scope.work):
        return none, none
    op = work_operators(scope)
    of_op = np.zeros(max(len(trace.ops), 1), np.int64)
    host = np.flatnonzero(scope.rows.table == OPS)
    of_op[scope.rows.row[host]] = site_of_row[host]
    launched = scope.records.launched[scope.work]
    site = np.where(op == NULL, 0, of_op[np.maximum(op, 0)])
    return site, _step_at(*bounds, launched)
