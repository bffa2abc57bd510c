"""Nests of operators against a plain walk over each thread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.operators.nests import nests
from profharness.trace.columns.table import NULL
from profharness.trace.model import Ops

Shape = list["Shape"]
TREES: st.SearchStrategy[Shape] = st.recursive(
    st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=12
)


def laid_out(trees: list[Shape]) -> tuple[Ops, list[int]]:
    """Operators that nest as the trees do, one tree after the other, and the row that holds each;
    their rows stand in the order in which they end.
    """
    spans: list[tuple[int, int, list[int]]] = []
    clock = 0

    def lay(tree: Shape) -> int:
        nonlocal clock
        start = clock
        clock += 1
        inner = [lay(part) for part in tree]
        clock += 1
        spans.append((start, clock - start, inner))
        clock += 1
        return len(spans) - 1

    for tree in trees:
        lay(tree)
    parent = [NULL] * len(spans)
    for row, (_, _, inner) in enumerate(spans):
        for part in inner:
            parent[part] = row
    ops = Ops.build(
        len(spans),
        start_ns=np.array([start for start, _, _ in spans], np.int64),
        dur_ns=np.array([length for _, length, _ in spans], np.int64),
        source=0,
    )
    return ops, parent


def holders(parent: list[int], row: int) -> list[int]:
    """The row itself, then those that hold it, from the inside to the outside."""
    chain = [row]
    while parent[chain[-1]] != NULL:
        chain.append(parent[chain[-1]])
    return chain


@given(st.lists(TREES, min_size=1, max_size=4), st.data())
def test_nests_are_those_of_a_plain_walk(trees: list[Shape], data: st.DataObject) -> None:
    ops, parent = laid_out(trees)
    tree = nests(ops)
    assert tree.parent.tolist() == parent
    bits = st.lists(st.booleans(), min_size=len(parent), max_size=len(parent))
    marked, whole = data.draw(bits), data.draw(bits)
    nearest = [
        next((row for row in holders(parent, start) if marked[row]), NULL)
        for start in range(len(parent))
    ]
    assert tree.nearest(np.array(marked)).tolist() == nearest
    values = np.arange(1, len(parent) + 1)
    inside = [
        sum(int(values[row]) for row in range(len(parent)) if start in holders(parent, row))
        for start in range(len(parent))
    ]
    assert tree.with_inner(values).tolist() == inside
    standing = tree.standing(np.array(marked), np.array(whole))
    assert standing.tolist() == stand(parent, marked, whole)


def stand(parent: list[int], known: list[bool], whole: list[bool]) -> list[bool]:
    """Which rows stand for their nest, by the words of the rule."""
    rows = range(len(parent))

    def inside(outer: int) -> list[int]:
        return [row for row in rows if row != outer and outer in holders(parent, row)]

    covering = [row for row in rows if known[row] and whole[row]]
    free = [row for row in rows if not any(row in inside(outer) for outer in covering)]
    return [
        known[row]
        and row in free
        and (whole[row] or not any(known[inner] for inner in inside(row)))
        for row in rows
    ]


@pytest.mark.parametrize(
    ("known", "whole", "expected"),
    [
        ("all", "", "inner"),  # the innermost of a nest
        ("outer middle", "", "middle"),
        ("all", "middle", "middle"),  # a fused level for what runs inside of it
        ("all", "outer middle", "outer"),
        ("", "outer", ""),
    ],
)
def test_the_work_of_a_nest_stands_in_one_row(known: str, whole: str, expected: str) -> None:
    names = ("inner", "middle", "outer")
    ops, _ = laid_out([[[[]]]])
    assert len(ops) == len(names)
    known = "inner middle outer" if known == "all" else known
    standing = nests(ops).standing(
        np.array([name in known for name in names]), np.array([name in whole for name in names])
    )
    assert [
        name for name, stands in zip(names, standing, strict=True) if stands
    ] == expected.split()
