"""The tree of time of one run, or of trace files, for viewers of stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

from profharness.analysis.kernels.hotspots import tally
from profharness.analysis.pictures.flame import Tree, TreeKind, tree_of
from profharness.errors import UsageError
from profharness.trace.wanted import Wanted
from profharness.understand.hotspots import passes_in_order
from profharness.understand.load import load, load_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from profharness.analysis.kernels.tally import Grouping
    from profharness.trace.model import Problem, Trace

_RICHEST: tuple[TreeKind, ...] = ("stack", "module", "op")
_FLAT: tuple[Grouping, ...] = ("kernel", "category")


@dataclass(frozen=True)
class Stacks:
    """A tree, by what it is, and what the readers lost or repaired."""

    tree: Tree
    by: Grouping
    problems: tuple[Problem, ...]


def stacks_of(paths: Sequence[Path], by: Grouping | None, pass_name: str | None = None) -> Stacks:
    """The tree of one pass of a run, or of all records of the files. Without `by` it is of the
    richest kind that was recorded: Python's functions, modules, operators, kernels.

    Raises UsageError for rows that do not nest and for a pass that is not there, InputError for
    files that cannot be read.
    """
    if by is not None and by not in (*get_args(TreeKind), *_FLAT):
        raise UsageError(
            f"rows by {by} do not stand inside of each other",
            "name --by stack, module, op, range, kernel or category",
        )
    kinds: tuple[Grouping, ...] = (by,) if by is not None else (*_RICHEST, "kernel")
    for traces in _together(paths, by, pass_name):
        problems = tuple(problem for trace in traces for problem in trace.problems)
        for kind in kinds:
            tree = _joined([_tree(trace, kind) for trace in traces])
            if tree.names:
                return Stacks(tree, kind, problems)
    return Stacks(tree, kind, problems)


def _together(
    paths: Sequence[Path], by: Grouping | None, pass_name: str | None
) -> Iterator[tuple[Trace, ...]]:
    """What makes one tree: the records of one pass of a run, of which the first that holds such
    rows counts; or each group of files on its own, since their clocks need not agree.
    """
    wanted = Wanted.ALL if by in ("op", "range", *_FLAT) else Wanted.STACKS
    if any(path.is_dir() for path in paths):
        loaded = load(paths, wanted=wanted)
        for _, records in passes_in_order(loaded, pass_name):
            yield (records,)
        return
    from profharness import readers

    if pass_name is not None:
        raise UsageError(
            f"--pass {pass_name}: no such pass", "trace files have no passes: leave --pass out"
        )
    yield tuple(
        load_files(group, wanted=wanted, check=False).trace for group in readers.group_files(paths)
    )


def _tree(trace: Trace, kind: Grouping) -> Tree:
    if kind not in _FLAT:
        return tree_of(trace, cast("TreeKind", kind))
    table = tally(trace, kind).table()
    tree = Tree(of_device=True)
    for row in table.rows:
        if row.total_ns:
            tree.own_ns[tree.frame(-1, row.name, "kernel")] += row.total_ns
    return tree


def _joined(trees: Sequence[Tree]) -> Tree:
    """All trees as one: device time where any has it, since the two cannot be added."""
    of_device = any(tree.of_device and tree.names for tree in trees)
    kept = [tree for tree in trees if tree.of_device == of_device]
    if len(kept) == 1:
        return kept[0]
    whole = Tree(of_device=of_device)
    for tree in kept:
        whole.add(tree)
    return whole
