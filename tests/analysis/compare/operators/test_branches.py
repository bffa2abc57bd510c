"""Trees of operators side by side: alignment, and the highest place that explains a difference."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.compare.operators.branches import align
from profharness.analysis.compare.operators.changes import compare_work
from profharness.analysis.compare.operators.content import content_of
from profharness.report.compared.branches import tree_lines
from profharness.trace.model import Trace
from tests.analysis.scene import Scene

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


@given(WORDS, WORDS, st.booleans())
def test_every_position_is_matched_once_and_only_with_its_like(a, b, exact):
    pairs = align(a, b, exact=exact)
    assert sorted(i for i, _ in pairs if i is not None) == list(range(len(a)))
    assert sorted(j for _, j in pairs if j is not None) == list(range(len(b)))
    both = [(a[i], b[j]) for i, j in pairs if i is not None and j is not None]
    assert all(one == other for one, other in both)
    assert len(both) == (Counter(a) & Counter(b)).total()


@given(WORDS)
def test_equal_sequences_match_place_by_place(words):
    assert align(words, words) == [(at, at) for at in range(len(words))]


def test_an_inserted_operator_does_not_shift_those_behind_it():
    pairs = align(["add", "mul", "mm"], ["mul", "add", "mul", "mm"])
    assert pairs == [(0, 1), (1, 2), (2, 3), (None, 0)]


def model(attention: dict[int, int], *, blocks: int = 5, extra: bool = False) -> Trace:
    """Blocks of attention (of a softmax and a product) and a product; `attention` are the lengths
    of the softmax by block, 100 in the others.
    """
    scene, now, device = Scene(), 0, 10_000
    opened = []

    def run(name: str, length: int) -> None:
        nonlocal now, device
        op = scene.op(name, now, now + 10)
        scene.kernel(device, device + length, scene.launch(now + 2, now + 3), op=op)
        now, device = now + 20, device + length

    def module(name: str) -> None:
        opened.append((name, now))

    def close() -> None:
        nonlocal now
        name, start = opened.pop()
        scene.mark("frame", start, now, f"nn.Module: {name}")
        now += 5

    module("Net_0")
    for block in range(blocks):
        module(f"Block_{block}")
        module(f"Attention_{block}")
        if extra and block == 0:
            run("aten::fill_", 3)
        run("aten::softmax", attention.get(block, 100))
        run("aten::bmm", 200)
        close()
        run("aten::mm", 50)
        close()
    close()
    return scene.build()


def lines(a: Trace, b: Trace, depth: int = 3) -> list[tuple[int, str, float]]:
    found = compare_work(content_of(a), content_of(b))
    assert found is not None
    assert found.tree is not None
    listed = tree_lines(found.tree, depth)
    return [(one.depth, " > ".join(one.names), one.branch.difference_ns) for one in listed]


def test_a_slow_block_is_named_with_what_is_slow_in_it():
    assert lines(model({}), model({3: 500}))[0] == (
        0,
        "Net_0 > Block_3 > Attention_3 > aten::softmax",
        400.0,
    )


def test_what_all_blocks_share_is_one_line():
    slower = dict.fromkeys(range(5), 150)
    assert lines(model({}), model(slower))[0] == (
        0,
        "Net_0 > Block (x5) > Attention (x5) > aten::softmax (x5)",
        250.0,
    )


def test_an_operator_that_one_side_has_alone_shifts_no_other():
    found = lines(model({}), model({}, extra=True))
    assert found == [(0, "Net_0 > Block_0 > Attention_0 > aten::fill_ (only in B)", 3.0)]


def test_depth_limits_the_levels_of_lines():
    a, b = model({}), model({1: 500, 3: 900})
    assert {depth for depth, _, _ in lines(a, b, 1)} == {0}
    assert {depth for depth, _, _ in lines(a, b, 4)} > {0}
