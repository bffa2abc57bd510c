"""What-ifs: changes as they are written on a command line, and what each does to a graph.

A change touches lags and causes; all other lags stay as they were measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.critical.capture import at_best, launched_together
from profharness.analysis.critical.classes import COLLECTIVE, KERNEL, KEYS
from profharness.analysis.critical.graph import OWN, STREAM, Graph
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.records import PathRow
from profharness.analysis.critical.segments import (
    Cut,
    cut_host,
    tiled,
    work_classes,
    work_names,
)
from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.timeline import OPS
from profharness.analysis.time.records import SEEN_SHARE
from profharness.errors import UsageError
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.table import NULL
from profharness.units import format_share

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FORMS = (
    "kernel:REGEX=FACTOR, op:REGEX=FACTOR, graphs, no-sync, hide-communication, dataloader, "
    "or batch=N"
)
_ON_HOST = "host_operator"
_READS = re.compile(r"^aten::(item|_local_scalar_dense|is_nonzero)$")
_SIMPLE = ("graphs", "no-sync", "hide-communication", "dataloader")
_OF_HOST = ("graphs", "no-sync", "dataloader")


class Unforeseeable(Exception):  # noqa: N818  its text is shown beside forecasts
    """What a change would do cannot be known; the text says why, and what is needed."""


@dataclass(frozen=True)
class Change:
    """One what-if. `factor` multiplies times."""

    text: str
    kind: str
    pattern: re.Pattern[str] | None = None
    factor: float = 0.0
    batch: int | None = None

    def foreseeable(self, not_recorded_share: float = 0.0) -> Change:
        """The change itself. Raises Unforeseeable for another batch size, of which one trace tells
        nothing (forecasts of three sizes from one trace missed in all three cases), and for one
        that takes away time of the host while the device may run work that is not in the file.
        """
        if self.kind in _OF_HOST and not_recorded_share >= SEEN_SHARE:
            raise Unforeseeable(
                f"in {format_share(not_recorded_share)} of the window the device may have run "
                "work that was not recorded, and then the host did not hold it back: record all "
                "kernels of the window"
            )
        if self.batch is None:
            return self
        raise Unforeseeable(
            "one trace does not tell which part of an operator's time is per call and which per "
            "item: scan sizes on both sides of it (`profharness run SCAN --batch-sizes "
            f"{max(1, self.batch // 2)},{2 * self.batch}`)"
        )


@dataclass(frozen=True, eq=False)
class Changed:
    """Causes and lags after a change; `touched` counts the lags that it made shorter or longer."""

    cause: I64
    lag: I64
    touched: int


def parse(text: str) -> Change:
    """A change as a user writes it. Raises UsageError for anything else."""
    text = text.strip()
    if text in _SIMPLE:
        return Change(text, text)
    kind, _, rest = text.partition(":")
    if kind in ("kernel", "op") and rest:
        pattern, equals, factor = rest.rpartition("=")
        if equals and pattern:
            return Change(text, kind, _regex(text, pattern), _factor(text, factor))
    name, _, size = text.partition("=")
    if name == "batch" and size.isdecimal() and int(size):
        return Change(text, "batch", batch=int(size))
    raise UsageError(f"--what-if {text}: no such change", f"it is one of {FORMS}")


USUAL = tuple(parse(text) for text in _SIMPLE)
"""Changes that a report tries by itself."""


def largest_halved(rows: Sequence[PathRow]) -> Change | None:
    """The operator that holds most of a path, or whose work does, at half of its time; the kernel
    where no operator launched it. None without either.
    """
    for row in rows:
        of_operator = row.operator or (row.name if row.kind == _ON_HOST else "")
        if of_operator:
            return parse(f"op:^{re.escape(of_operator)}$=0.5")
        if row.kind == KEYS[KERNEL] and row.name:
            return parse(f"kernel:^{re.escape(row.name)}$=0.5")
    return None


def _regex(text: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"--what-if {text}: {pattern} is no regular expression ({error})",
            "characters like ( and * need a backslash to stand for themselves",
        ) from None


def _factor(text: str, factor: str) -> float:
    try:
        value = float(factor)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(
            f"--what-if {text}: {factor} is no factor",
            "0.5 stands for half of the time, 0 for none",
        )
    return value


def apply(graph: Graph, change: Change, came_last: Mapping[int, int] = {}) -> Changed:
    """The graph's causes and lags after a change. `came_last` says of ends of collectives when the
    last rank came to them: until then they are no communication, but a wait for that rank.
    """
    cause, lag = graph.cause.copy(), graph.lag.copy()
    works = graph.works
    if change.kind == "no-sync":
        _without_waits(graph, cause, lag)
    elif change.kind == "graphs":
        launched_together(graph, cause, lag)
    else:
        faster = _touched_work(graph, change)
        lag[OWN, works : 2 * works][faster] = _scaled(
            lag[OWN, works : 2 * works][faster], change.factor
        )
        _scale_host(graph, change, lag)
    if change.kind == "hide-communication":
        _without_host_waits(graph, lag)
        for node, came in came_last.items():
            begun = (
                came
                if node < 2 * graph.works
                else max(came, int(graph.points.waits_from[node - 2 * graph.works]))
            )
            lag[OWN, node] = max(begun - int(graph.time[graph.cause[OWN, node]]), 0)
    touched = int(((lag != graph.lag) | (cause != graph.cause)).any(axis=0).sum())
    return Changed(cause, lag, touched)


def best_case(graph: Graph, change: Change, changed: Changed) -> Changed | None:
    """Causes and lags that no way of making the change goes below; None where they are those of the
    change itself, or where nothing is touched.

    Without waits that is the device's work without gaps: a host that no longer waits also gets
    through its own code faster than the recording shows, by how much no trace tells. Where no
    device works nothing is waited for.
    """
    if change.kind not in ("graphs", "no-sync") or not changed.touched:
        return None
    if change.kind == "no-sync" and not graph.works:
        return None
    if change.kind == "no-sync":
        lag, works = changed.lag.copy(), graph.works
        lag[:, :works] = 0
        lag[:, 2 * works :] = 0
        return Changed(changed.cause, lag, changed.touched)
    cause, lag = graph.cause.copy(), graph.lag.copy()
    at_best(graph, cause, lag)
    return Changed(cause, np.minimum(lag, changed.lag), changed.touched)


def _scaled(times: I64, factor: float) -> I64:
    scaled: I64 = np.rint(times * factor).astype(np.int64)
    return scaled


def _touched_work(graph: Graph, change: Change) -> Mask:
    """Which pieces of device work take another time."""
    kinds = work_classes(graph.scope)
    if change.kind == "hide-communication":
        return np.isin(kinds, (COLLECTIVE,))
    if change.pattern is None:
        return np.zeros(len(kinds), np.bool_)
    name, operator = work_names(graph.scope)
    return _matching(graph, change, name if change.kind == "kernel" else operator)


def _matching(graph: Graph, change: Change, codes: I64) -> Mask:
    """Which codes of names the change's pattern is found in."""
    strings = graph.scope.trace.strings
    found = [
        code
        for code in np.unique(codes).tolist()
        if code != NULL and change.pattern is not None and change.pattern.search(strings[code])
    ]
    matches: Mask = np.isin(codes, found)
    return matches


def own_edges(graph: Graph) -> I64:
    """Host points that the host reached by itself in the whole time since the point before."""
    first = 2 * graph.works
    nodes = first + np.flatnonzero(graph.points.before != NULL)
    before = graph.cause[OWN, nodes]
    whole = graph.lag[OWN, nodes] == graph.time[nodes] - graph.time[before]
    own: I64 = nodes[whole & (graph.lag[OWN, nodes] > 0)]
    return own


def threads_of(graph: Graph, nodes: I64) -> I64:
    """The thread whose time leads to each host point."""
    point = nodes - 2 * graph.works
    threads: I64 = np.where(
        graph.points.role[point] == Role.ENTER, graph.scope.main, graph.points.thread[point]
    )
    return threads


def _scale_host(graph: Graph, change: Change, lag: I64) -> None:
    """Multiply the parts of the host's time that a change touches."""
    on_device = graph.works > 0
    if change.kind not in ("dataloader", "op") or (on_device and change.kind == "op"):
        return
    nodes = own_edges(graph)
    threads = threads_of(graph, nodes)
    for thread in np.unique(threads).tolist():
        mine = nodes[threads == thread]
        cut = cut_host(graph.scope, thread, graph.time[graph.cause[OWN, mine]], graph.time[mine])
        length = np.where(_touched_host(graph, change, thread, cut), cut.end - cut.start, 0)
        held = np.bincount(cut.owner, length, minlength=len(mine)).astype(np.int64)
        lag[OWN, mine] += _scaled(held, change.factor) - held


def _touched_host(graph: Graph, change: Change, thread: int, cut: Cut) -> Mask:
    """Which parts of a thread's time take another time."""
    if change.kind == "dataloader":
        return np.isin(cut.kind, (Kind.DATA_LOADER,))
    rows, inner = graph.scope.rows, tiled(graph.scope, thread).inner[cut.stretch]
    in_operator: Mask = (inner != NULL) & (rows.table[np.maximum(inner, 0)] == OPS)
    names = np.where(in_operator, rows.name[np.maximum(inner, 0)], NULL).astype(np.int64)
    return _matching(graph, change, names)


def _without_host_waits(graph: Graph, lag: I64) -> None:
    """The main thread waits for no collective on the CPU."""
    nodes = 2 * graph.works + np.flatnonzero(graph.points.waits_from != NULL)
    came = graph.time[graph.cause[OWN, nodes]]
    begun = np.maximum(graph.points.waits_from[nodes - 2 * graph.works], came)
    lag[OWN, nodes] -= np.maximum(graph.time[nodes] - begun, 0)


def _without_waits(graph: Graph, cause: I64, lag: I64) -> None:
    """No call waits for the device: each takes what such a call takes without a wait. Operators
    that only hand a value to the host are not called, nor is their copy made.
    """
    points, works = graph.points, graph.works
    returns = np.flatnonzero(points.role == Role.RETURN)
    shortest = lag[OWN, 2 * works + returns].min(initial=0)
    cause[STREAM, 2 * works + returns] = NULL
    lag[OWN, 2 * works + returns] = np.minimum(lag[OWN, 2 * works + returns], shortest)
    nodes = own_edges(graph)
    nodes = nodes[points.role[nodes - 2 * works] != Role.RETURN]
    threads = threads_of(graph, nodes)
    within = np.zeros(len(points.time), np.bool_)
    for thread in np.unique(points.thread).tolist():
        reading = _reading(graph, thread)
        mine = nodes[threads == thread]
        edges = Intervals(graph.time[graph.cause[OWN, mine]], graph.time[mine])
        lag[OWN, mine] -= intervals.inside_ns(edges, reading)
        at = points.time - (points.role == Role.RETURN)
        within |= (points.thread == thread) & intervals.contains(reading, at)
    lag[OWN, 2 * works + returns[within[returns]]] = 0
    launched_at = np.maximum(graph.cause[OWN, :works] - 2 * works, 0)
    copied = (graph.arrived.call != NULL) & within[launched_at]
    lag[OWN, works : 2 * works][copied] = 0


def _reading(graph: Graph, thread: int) -> Intervals:
    """Where a thread is in operators that only hand a value to the host."""
    rows, strings = graph.scope.rows, graph.scope.trace.strings
    mine = np.flatnonzero((rows.thread == thread) & (rows.table == OPS))
    names = [code for code in np.unique(rows.name[mine]).tolist() if _READS.search(strings[code])]
    mine = mine[np.isin(rows.name[mine], names)]
    return intervals.merge(Intervals(rows.start[mine], rows.end[mine]))
