"""Time as a tree: what the host was in (modules, Python's functions, ranges), the operators inside
of it, and what these launched.

Weights are device time where a device was recorded, else the host's own time. They are those of
the hotspot tables (docs/metrics.md#hotspots): what lies under a module sums to its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from profharness.analysis.kernels.hotspots import own_ns
from profharness.analysis.operators.around import Around, around
from profharness.analysis.operators.device_time import is_timed, lasting
from profharness.analysis.operators.nests import nests
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Copies, Kernels, Trace

TreeKind = Literal["op", "module", "range", "stack"]
FrameKind = Literal["op", "module", "range", "stack", "kernel", "copy", "outside", "others"]
ROOT = -1
_OUTSIDE = {
    "op": "outside of operators",
    "module": "outside of modules",
    "range": "outside of ranges",
    "stack": "outside of recorded functions",
}


@dataclass(eq=False)
class Tree:
    """Frames by number: name, kind, the frame that holds it (ROOT for none), and its own ns
    without those of the frames inside of it. `of_device` says whose time it is.

    Not frozen only because it grows while it is built.
    """

    of_device: bool
    names: list[str] = field(default_factory=list)
    kinds: list[FrameKind] = field(default_factory=list)
    holders: list[int] = field(default_factory=list)
    own_ns: list[int] = field(default_factory=list)
    _numbers: dict[tuple[int, str, FrameKind], int] = field(default_factory=dict)

    def frame(self, holder: int, name: str, kind: FrameKind) -> int:
        """The frame of this name inside of another, made where there is none; holders come before
        what they hold.
        """
        key = (holder, name, kind)
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            self.names.append(name)
            self.kinds.append(kind)
            self.holders.append(holder)
            self.own_ns.append(0)
        return self._numbers[key]

    @property
    def total_ns(self) -> int:
        """The time of all frames."""
        return sum(self.own_ns)

    def with_inner(self) -> list[int]:
        """Of each frame its own time and that of everything inside of it."""
        total = list(self.own_ns)
        for number in range(len(total) - 1, -1, -1):
            if self.holders[number] != ROOT:
                total[self.holders[number]] += total[number]
        return total

    def path(self, number: int) -> list[int]:
        """The frames from the outermost down to this one."""
        path = []
        while number != ROOT:
            path.append(number)
            number = self.holders[number]
        return path[::-1]

    def add(self, other: Tree) -> None:
        """Take up the frames of another tree: those of one path become one."""
        place: dict[int, int] = {ROOT: ROOT}
        columns = zip(other.names, other.kinds, other.holders, other.own_ns, strict=True)
        for number, (name, kind, holder, own) in enumerate(columns):
            place[number] = self.frame(place[holder], name, kind)
            self.own_ns[place[number]] += own


def tree_of(trace: Trace, kind: TreeKind) -> Tree:
    """The tree of a trace by modules, by Python's functions or by ranges with the operators inside
    of them, or by operators alone; empty where it recorded none of these.
    """
    tree = Tree(of_device=is_timed(trace))
    spans = _spans(trace, kind)
    if _recorded(trace, spans):
        _add(tree, trace, kind, spans)
    return tree


@dataclass(eq=False)
class Folding:
    """The tree that `tree_of` makes of one trace, which comes in groups of records that refer to
    each other: `of_device` says whether any of them holds device records with a time.

    Not frozen only because it grows with each group.
    """

    kind: TreeKind
    of_device: bool
    _recorded: bool = False
    _tree: Tree = field(init=False)

    def __post_init__(self) -> None:
        self._tree = Tree(of_device=self.of_device)

    def add(self, group: Trace) -> None:
        """Take up one group. What has nothing of this kind around it is outside."""
        spans = _spans(group, self.kind)
        self._recorded = self._recorded or _recorded(group, spans)
        _add(self._tree, group, self.kind, spans)

    @property
    def tree(self) -> Tree:
        """The tree of all groups so far."""
        return self._tree if self._recorded else Tree(of_device=self.of_device)


def _spans(trace: Trace, kind: TreeKind) -> Around | None:
    return None if kind == "op" else around(trace, kind)


def _recorded(trace: Trace, spans: Around | None) -> bool:
    """Whether the trace holds anything of the kind."""
    return len(trace.ops) > 0 if spans is None else bool(spans.names)


def _add(tree: Tree, trace: Trace, kind: TreeKind, spans: Around | None) -> None:
    build = _Builder(tree, trace, kind, spans)
    if tree.of_device:
        build.add_device()
    else:
        build.add_host()


@dataclass(eq=False)
class _Builder:
    """Puts the records of one trace into a tree. `paths` are the distinct ways of operators."""

    tree: Tree
    trace: Trace
    kind: TreeKind
    spans: Around | None
    base: list[int] = field(init=False)
    path_of: I64 = field(init=False)
    paths: list[tuple[int, str]] = field(init=False)
    _placed: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base = list(self._span_frames())
        self.path_of, self.paths = _paths(self.trace)

    def _span_frames(self) -> Iterator[int]:
        """The frame of each group of spans; holders have lower numbers."""
        if self.spans is None or self.kind == "op":
            return
        made: list[int] = []
        for name, holder in zip(self.spans.frames, self.spans.holder.tolist(), strict=True):
            outer = ROOT if holder == NULL else made[holder]
            made.append(self.tree.frame(outer, name, self.kind))
            yield made[-1]

    def add_device(self) -> None:
        """Kernels and copies under the operators that launched them."""
        trace = self.trace
        owners = None if self.spans is None else self.spans.owners
        kinds: tuple[tuple[Kernels | Copies, FrameKind, I64 | None], ...] = (
            (trace.kernels, "kernel", None if owners is None else owners.kernels),
            (trace.copies, "copy", None if owners is None else owners.copies),
        )
        for records, kind, owner in kinds:
            if not len(records):
                continue
            of = np.full(len(records), NULL, np.int64) if owner is None else owner
            path = np.append(self.path_of, NULL)[records.op]
            time = lasting(records)
            for (group, way, name), ns in _sums([of, path, records.name.astype(np.int64)], time):
                text = "unnamed" if name == NULL else trace.strings[name]
                leaf = self.tree.frame(self._place(group, way), text, kind)
                self.tree.own_ns[leaf] += ns

    def add_host(self) -> None:
        """Operators with their own time, and spans with what none of their operators took."""
        ops = self.trace.ops
        own = own_ns(ops) if len(ops) else np.empty(0, np.int64)
        if self.spans is None:
            for (way,), ns in _sums([self.path_of], own):
                self.tree.own_ns[self._place(NULL, way)] += ns
            return
        left = np.zeros(len(self.spans.names), np.int64)
        np.add.at(left, self.spans.group, self.spans.host_ns)
        inside = self.spans.owners.ops
        taken = np.zeros(len(left), np.int64)
        np.add.at(taken, inside[inside != NULL], own[inside != NULL])
        told = np.append(taken <= left, False)[inside]  # where an operator reaches beyond its span
        for (group, way), ns in _sums([inside[told], self.path_of[told]], own[told]):
            self.tree.own_ns[self._place(group, way)] += ns
            left[group] -= ns
        for group, ns in enumerate(left.tolist()):
            self.tree.own_ns[self.base[group]] += ns

    def _place(self, group: int, way: int) -> int:
        """The frame of a way of operators inside of a group of spans."""
        if way != NULL:
            if (group, way) not in self._placed:
                outer, name = self.paths[way]
                holder = self._place(group, outer) if outer != NULL else self._span(group)
                self._placed[group, way] = self.tree.frame(holder, name, "op")
            return self._placed[group, way]
        if group == NULL:
            return self.tree.frame(ROOT, _OUTSIDE[self.kind], "outside")
        return self.base[group]

    def _span(self, group: int) -> int:
        if group != NULL:
            return self.base[group]
        if self.kind == "op":
            return ROOT
        return self.tree.frame(ROOT, _OUTSIDE[self.kind], "outside")


def _paths(trace: Trace) -> tuple[I64, list[tuple[int, str]]]:
    """For each operator the number of its way through those that hold it; of each way the one that
    it goes on from (NULL for the outermost) and the operator's name.
    """
    ops = trace.ops
    way_of = np.full(len(ops), NULL, np.int64)
    ways: list[tuple[int, str]] = []
    if not len(ops):
        return way_of, ways
    tree = nests(ops)
    for rows in tree.levels:
        outer = np.append(way_of, NULL)[tree.parent[rows]]
        name = ops.name[rows].astype(np.int64)
        first, number = first_rows(pack([outer, name]))
        way_of[rows] = number + len(ways)
        texts = trace.strings.decode(ops.name[rows][first])
        ways += zip(outer[first].tolist(), texts, strict=True)
    return way_of, ways


def _sums(columns: list[I64], ns: I64) -> Iterable[tuple[tuple[int, ...], int]]:
    """Each combination that occurs, with the exact sum of its times."""
    if not len(ns):
        return []
    first, number = first_rows(pack(columns))
    total = np.zeros(len(first), np.int64)
    np.add.at(total, number, ns)
    keys = zip(*(column[first].tolist() for column in columns), strict=True)
    return zip(keys, total.tolist(), strict=True)
