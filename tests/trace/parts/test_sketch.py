"""Parts of one trace, joined again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profharness.trace.columns.table import NULL
from profharness.trace.merge import merge
from profharness.trace.model import Allocations, Copies, Counters, Kernels, Ops, Trace
from profharness.trace.parts.sketch import concat_parts
from tests.analysis.scene import Scene

OWNED = ("kernels", "copies", "allocations")


def part(first: int) -> Trace:
    """Two operators with the starts `first` and one more. Of each kind of work a row has none, and
    the next the second operator; the second kernel has a counter.
    """
    return replace(
        Scene().build(),
        ops=Ops.build(start_ns=[first, first + 1]),
        kernels=Kernels.build(op=[NULL, 1]),
        copies=Copies.build(op=[NULL, 1]),
        allocations=Allocations.build(op=[NULL, 1]),
        counters=Counters.build(kernel=[1]),
    )


@pytest.mark.parametrize("name", OWNED)
def test_rows_of_joined_parts_keep_their_operators(name: str) -> None:
    joined = concat_parts([part(10), part(20), part(30)])
    op = getattr(joined, name).op
    assert [NULL if at == NULL else int(joined.ops.start_ns[at]) for at in op.tolist()] == [
        *(NULL, 11),
        *(NULL, 21),
        *(NULL, 31),
    ]


def test_counters_of_joined_parts_keep_their_kernels() -> None:
    assert concat_parts([part(10), part(20)]).counters.kernel.tolist() == [1, 3]


def test_parts_join_as_traces_merge() -> None:
    parts = [part(10), part(20)]
    joined, merged = concat_parts(parts), merge(parts)
    for name in OWNED:
        assert getattr(joined, name).op.tolist() == getattr(merged, name).op.tolist()
