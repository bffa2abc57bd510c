"""The trees of two traces as lines: each part of the difference at the highest node that explains
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profharness.analysis.compare.operators.records import Branch, StepChange
from profharness.report.compared.words import ratio_text, signed_ns
from profharness.report.table import Cell, Column, Table

DEPTH = 3
_MOST = 5
_EXPLAINS = 0.9
"""Part of a node's difference from which a single node inside of it is named with it."""
_WORTH = 0.03
"""Part of the largest difference below which a node is not worth a line."""
_INDENT = "· "


@dataclass(frozen=True)
class Line:
    """A chain of nodes, each of which explains the one before: names from the outside in."""

    depth: int
    names: tuple[str, ...]
    branch: Branch


def tree_lines(tree: Branch, depth: int = DEPTH) -> Iterator[Line]:
    """The largest contributions first, up to so many levels of them."""
    largest = max((abs(one.difference_ns) for one in tree.inner), default=0.0)
    for one in _worth(tree, largest):
        yield from _lines(one, 0, depth, largest)


def _worth(branch: Branch, largest: float) -> list[Branch]:
    return [one for one in branch.inner if abs(one.difference_ns) >= _WORTH * largest > 0][:_MOST]


def _lines(branch: Branch, level: int, depth: int, largest: float) -> Iterator[Line]:
    names = [_name(branch)]
    while (inner := _explaining(branch)) is not None:
        branch = inner
        names.append(_name(branch))
    yield Line(level, tuple(names), branch)
    if level + 1 < depth:
        for one in _worth(branch, largest):
            yield from _lines(one, level + 1, depth, largest)


def _explaining(branch: Branch) -> Branch | None:
    """The one node inside that moved as its holder did, while nothing else moved much."""
    moved = abs(branch.difference_ns)
    if not branch.inner:
        return None
    first = branch.inner[0]
    rest = abs(branch.own_ns) + sum(abs(one.difference_ns) for one in branch.inner[1:])
    alike = first.difference_ns * branch.difference_ns > 0
    if alike and abs(first.difference_ns) >= _EXPLAINS * moved and rest <= (1 - _EXPLAINS) * moved:
        return first
    return None


def _name(branch: Branch) -> str:
    times = f" (x{branch.times})" if branch.times > 1 else ""
    only = {"only-a": " (only in A)", "only-b": " (only in B)"}.get(branch.side, "")
    return f"{branch.name}{times}{only}"


def tree_table(step: StepChange, tree: Branch, depth: int = DEPTH) -> Table:
    """A row for each line: the difference of one step and the chain of names, indented by level."""
    columns = (
        Column("B - A", "right", "difference of one step", key="difference_ns"),
        Column("B over A", "right", "how much longer it takes in B", key="ratio"),
        Column("where", key="where"),
    )
    rows = tuple(_row(step, line) for line in tree_lines(tree, depth))
    note = "each difference at the highest place that explains it"
    return Table("by place in the tree of operators", columns, rows, note=note)


def _row(step: StepChange, line: Line) -> tuple[Cell, ...]:
    branch = line.branch
    a_ns, b_ns = branch.a_ns / step.parts[0], branch.b_ns / step.parts[1]
    ratio = b_ns / a_ns if a_ns > 0 and b_ns > 0 else None
    return (
        Cell(signed_ns(branch.difference_ns), value=branch.difference_ns),
        Cell(ratio_text(ratio), value=ratio),
        Cell(f"{_INDENT * line.depth}{' > '.join(line.names)}", value=" > ".join(line.names)),
    )
