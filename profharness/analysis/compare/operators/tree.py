"""The operators of one trace as a tree: what runs inside of what, under the modules and ranges
that hold it, the same place of every step and call as one node.

A place is named by the names of what holds it and, where one holds several of a name, by which of
them it is. Backward operators stand under the module of their forward operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.compare.operators.window import Windowed
from profharness.analysis.operators.around import FRAME, MODULE
from profharness.analysis.operators.gradients import forward_of, is_node
from profharness.analysis.operators.nests import nests
from profharness.analysis.time.steps import steps
from profharness.trace import nesting
from profharness.trace.columns.build import per_text
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Marks, Trace

Mask = npt.NDArray[np.bool_]

_ADDRESS = re.compile(r" object at 0x[0-9a-fA-F]+")
_DEEPEST = 64
"""Levels that are told apart; what is deeper counts in what holds it."""
_REPEATS = 256
"""Places of one name inside of one holder that are told apart; later ones count in the last."""
BACKWARD = "backward: "


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes with their names, the time of each inside of the window with everything in it and
    without, in ns, calls, and the nodes inside of it in the order of their first call. `roots` are
    the outermost ones.
    """

    names: list[str]
    own: list[int]
    inclusive: list[int]
    calls: list[int]
    inner: list[list[int]]
    roots: list[int]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Operators, and behind them the spans that hold them: what each is called, when it began, and
    what holds it (NULL for none). `holder` numbers what stands for it there: the step and thread.
    """

    name: I64
    texts: list[str]
    start: I64
    parent: I64
    holder: I64
    own: I64
    begun: Mask


def tree_of(trace: Trace, window: Windowed) -> Tree:
    """The tree of the operators that have time, or begin, inside of the window."""
    return _tree(_rows(trace, window))


def _rows(trace: Trace, window: Windowed) -> _Rows:
    ops, spans = trace.ops, _spans(trace)
    start = np.concatenate((ops.start_ns, spans.start_ns))
    dur = np.concatenate((ops.dur_ns, spans.dur_ns))
    thread = _threads(trace, spans)
    nested = nesting.nest(start, dur, thread)
    parent = nested.parent
    replayed = np.flatnonzero(ops.replay != NULL)
    if len(replayed):  # they took no time on the host, so that their order says what holds them
        parent = parent.copy()
        parent[replayed] = nests(ops).parent[replayed]
    backward = np.zeros(len(start), np.bool_)
    parent = _under_modules(trace, spans, parent, backward)
    name, texts = _named(trace, spans, backward)
    return _Rows(
        name=name,
        texts=texts,
        start=start,
        parent=parent,
        holder=pack([_step(trace, start), thread]),
        own=np.concatenate((window.ops, np.zeros(len(spans), np.int64))),
        begun=np.concatenate((window.begun, window.holds(spans.start_ns))),
    )


def _spans(trace: Trace) -> Marks:
    """Modules and ranges of the program; steps are no level, since all of them are one."""
    marks, strings = trace.marks, trace.strings
    is_module = per_text(strings, marks.name, lambda name: name.startswith(MODULE)) == 1
    is_frame = (marks.kind == strings.find(FRAME)) & (marks.kind != NULL)
    is_range = (marks.kind == strings.find("range")) & (marks.kind != NULL)
    return marks.take(((is_frame & is_module) | is_range) & (marks.dur_ns > 0))


def _threads(trace: Trace, spans: Marks) -> I64:
    together = [
        np.concatenate((getattr(trace.ops, name), getattr(spans, name)))
        for name in ("source", "pid", "tid")
    ]
    return coded(pack(together))[1]


def _step(trace: Trace, start: I64) -> I64:
    """The number of the last step that began before, over all processes."""
    begins = np.unique(np.array([step.start_ns for step in steps(trace)], np.int64))
    return np.searchsorted(begins, start, "right").astype(np.int64)


def _under_modules(trace: Trace, spans: Marks, parent: I64, backward: Mask) -> I64:
    """The parents, where a node of the backward pass has the module of its forward operator; such
    nodes are marked in `backward`. A module that began later than the node cannot hold it.
    """
    ops, strings = trace.ops, trace.strings
    of_module = per_text(strings, spans.name, lambda name: name.startswith(MODULE)) == 1
    node = is_node(ops)
    if not of_module.any() or not node.any():
        return parent
    count = len(ops)
    outer = np.append(nests(ops).nearest(node), NULL)
    held = nests(ops).parent
    rows = np.flatnonzero(node & ((held == NULL) | (outer[held] == NULL)))
    made = forward_of(ops)[rows]
    rows, made = rows[made != NULL], made[made != NULL]
    is_module = np.concatenate((np.zeros(count, np.bool_), of_module))
    module = _nearest(parent, is_module, made)
    start = np.concatenate((ops.start_ns, spans.start_ns))
    found = (module != NULL) & (start[module] < ops.start_ns[rows])
    moved = parent.copy()
    moved[rows[found]] = module[found]
    backward[rows[found]] = True
    return moved


def _nearest(parent: I64, marked: Mask, rows: I64) -> I64:
    """The innermost marked one around each row, itself included; NULL for none."""
    at = rows.copy()
    for _ in range(_DEEPEST):
        going = (at != NULL) & ~marked[at]
        if not going.any():
            break
        at[going] = parent[at[going]]
    return np.where((at != NULL) & marked[at], at, NULL)


def _named(trace: Trace, spans: Marks, backward: Mask) -> tuple[I64, list[str]]:
    texts: dict[str, int] = {}

    def place(name: str) -> int:
        return texts.setdefault(_ADDRESS.sub("", name.removeprefix(MODULE)), len(texts))

    own = [per_text(trace.strings, table.name, place) for table in (trace.ops, spans)]
    name = np.concatenate(own)
    codes, which = coded(name[backward])
    listed = list(texts)
    for code in codes.tolist():
        text = listed[code].removeprefix("autograd::engine::evaluate_function: ")
        texts.setdefault(f"{BACKWARD}{text}", len(texts))
    listed = list(texts)
    moved = [
        texts[f"{BACKWARD}{listed[code].removeprefix('autograd::engine::evaluate_function: ')}"]
        for code in codes.tolist()
    ]
    name[backward] = np.array(moved, np.int64)[which]
    return name, listed


def _tree(rows: _Rows) -> Tree:
    """Level by level: rows of one node of the level above, one name and one number are a node."""
    node = np.full(len(rows.start), NULL, np.int64)
    names: list[I64] = []
    parents: list[I64] = []
    count = 0
    for level in _levels(rows.parent):
        ordered = level[np.argsort(rows.start[level], kind="stable")]
        holder = rows.parent[ordered]
        above = np.where(holder == NULL, NULL, node[holder])
        where = np.where(holder == NULL, -1 - rows.holder[ordered], holder)
        number = np.minimum(_repeat(pack([where, rows.name[ordered]])), _REPEATS - 1)
        first, place = first_rows(pack([above, rows.name[ordered], number]))
        by_first = np.argsort(np.argsort(first))  # nodes in the order of their first calls
        node[ordered] = count + by_first[place]
        begins = np.sort(first)
        names.append(rows.name[ordered][begins])
        parents.append(above[begins])
        count += len(first)
    node = _with_deep(node, rows.parent)
    return _sized(rows, node, np.concatenate([*names, _NONE]), np.concatenate([*parents, _NONE]))


_NONE = np.zeros(0, np.int64)


def _levels(parent: I64) -> list[I64]:
    """The rows by how many hold them, the outermost first, up to the deepest that is told apart."""
    levels = [np.flatnonzero(parent == NULL)]
    seen = parent == NULL
    while len(levels) < _DEEPEST:
        inside = np.flatnonzero(~seen)
        inside = inside[seen[parent[inside]]]
        if not len(inside):
            break
        seen[inside] = True
        levels.append(inside)
    return levels


def _repeat(key: I64) -> I64:
    """Per row how many rows of the same key stand before it."""
    order = np.argsort(key, kind="stable")
    begins = np.concatenate(([True], np.diff(key[order]) != 0)) if len(key) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(key)), 0))
    found = np.empty(len(key), np.int64)
    found[order] = np.arange(len(key)) - first
    return found


def _with_deep(node: I64, parent: I64) -> I64:
    """The nodes, where rows that are too deep count in the node that holds them."""
    at = parent.copy()
    while len(deep := np.flatnonzero(node == NULL)):
        found = deep[node[at[deep]] != NULL]
        node[found] = node[at[found]]
        left = np.flatnonzero(node == NULL)
        at[left] = at[at[left]]
    return node


def _sized(rows: _Rows, node: I64, names: I64, parents: I64) -> Tree:
    own, calls = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    np.add.at(own, node, rows.own)
    np.add.at(calls, node, rows.begun.astype(np.int64))
    inclusive, inner = own.tolist(), [list[int]() for _ in range(len(names))]
    roots: list[int] = []
    for at, holder in reversed(list(enumerate(parents.tolist()))):
        if holder != NULL:
            inclusive[holder] += inclusive[at]
    for at, holder in enumerate(parents.tolist()):
        (roots if holder == NULL else inner[holder]).append(at)
    return Tree(
        names=[rows.texts[code] for code in names.tolist()],
        own=own.tolist(),
        inclusive=inclusive,
        calls=calls.tolist(),
        inner=inner,
        roots=roots,
    )
