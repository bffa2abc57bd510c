"""Rows of a comparison sum to both windows, and say the same from either side."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.compare.operators.changes import compare_work
from profharness.analysis.compare.operators.content import Content, content_of
from profharness.analysis.compare.operators.records import Branch, WorkComparison, WorkTable
from tests.analysis.compare.operators.scenes import STEPS, drawn
from tests.analysis.scene import Scene

SIDES = {"only-a": "only-b", "only-b": "only-a", "both": "both", "rest": "rest"}


def compared(a: Content | None, b: Content | None) -> WorkComparison:
    found = compare_work(a, b)
    assert found is not None
    return found


def tables(found: WorkComparison) -> list[WorkTable]:
    listed = (found.operators, found.shapes, found.modules, found.categories)
    return [table for table in listed if table is not None]


def moved(branch: Branch) -> float:
    """The difference of a node as its own and that of the nodes inside of it say it."""
    return branch.own_ns + sum(one.difference_ns for one in branch.inner)


def every(branch: Branch) -> list[Branch]:
    return [branch, *(one for inner in branch.inner for one in every(inner))]


@given(STEPS, STEPS, st.booleans())
@settings(max_examples=40, deadline=None)
def test_rows_sum_to_both_windows_exactly(a, b, device):
    one, other = (content_of(drawn(steps, device=device)) for steps in (a, b))
    if one is None or other is None or one.window.clock != other.window.clock:
        return  # a side without operators, or without kernels beside one with them
    found = compared(one, other)
    for table in tables(found):
        assert sum(row.a_ns or 0 for row in table.rows) == one.window.whole_ns
        assert sum(row.b_ns or 0 for row in table.rows) == other.window.whole_ns
        total = sum(row.difference_ns for row in table.rows)
        assert total == pytest.approx(found.step.difference_ns, abs=1e-6)
    tree = found.tree
    assert tree is not None
    assert (tree.a_ns, tree.b_ns) == (one.window.whole_ns, other.window.whole_ns)
    for branch in every(tree):
        assert moved(branch) == pytest.approx(branch.difference_ns, abs=1e-6)


@given(STEPS, st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_trace_against_itself_differs_nowhere(steps, marked, device):
    content = content_of(drawn(steps, marked=marked, device=device))
    if content is None:
        return
    found = compared(content, content)
    assert found.step.difference_ns == 0
    for table in tables(found):
        assert {row.difference_ns for row in table.rows} <= {0.0}
        assert {row.side for row in table.rows} <= {"both", "rest"}
    assert found.tree is not None
    assert {branch.difference_ns for branch in every(found.tree)} == {0.0}


@given(STEPS, STEPS)
@settings(max_examples=20, deadline=None)
def test_the_other_way_round_each_difference_has_the_other_sign(a, b):
    one, other = content_of(drawn(a)), content_of(drawn(b))
    if one is None or other is None or one.window.clock != other.window.clock:
        return
    forth, back = compared(one, other), compared(other, one)
    for table, turned in zip(tables(forth), tables(back), strict=True):
        rows = {row.name: row for row in turned.rows}
        for row in table.rows:
            mirror = rows[row.name]
            assert (row.a_ns, row.b_ns) == (mirror.b_ns, mirror.a_ns)
            assert row.difference_ns == -mirror.difference_ns
            assert mirror.side == SIDES[row.side]


def test_several_steps_are_compared_per_step():
    def of(steps, length):
        scene = Scene()
        for number in range(steps):
            start = 100 * number
            scene.mark("step", start, start + 100, f"ProfilerStep#{number}")
            op = scene.op("aten::mm", start + 5, start + 20)
            by = scene.launch(start + 10, start + 12)
            scene.kernel(start + 20, start + 20 + length, by, op=op)
        return content_of(scene.build())

    found = compared(of(2, 30), of(4, 60))
    row = next(row for row in found.operators.rows if row.name == "aten::mm")
    assert (row.a_ns, row.b_ns, row.calls_a, row.calls_b) == (60, 240, 2, 4)
    assert (row.difference_ns, row.ratio) == (30.0, 2.0)
    # from the first mark to the end of the last kernel: 100 + 20 + 30, and 300 + 20 + 60
    assert (found.step.whole_a_ns, found.step.whole_b_ns) == (150, 380)
    assert found.step.difference_ns == 380 / 4 - 150 / 2


def test_a_single_step_counts_what_the_device_does_after_its_mark():
    scene = Scene()
    scene.mark("step", 0, 50, "ProfilerStep#0")
    op = scene.op("aten::mm", 5, 20)
    scene.kernel(40, 90, scene.launch(10, 12), op=op)
    content = content_of(scene.build())
    assert content is not None
    assert content.operators["aten::mm"].ns == 50


def test_an_operator_of_one_side_names_where_its_work_is_on_the_other():
    def of(*inner):
        scene = Scene()
        outer = scene.op("aten::_convolution", 0, 100)
        for place, (name, length) in enumerate(inner):
            start = 10 + 20 * place
            op = scene.op(name, start, start + 10)
            scene.kernel(
                100 * place + 100, 100 * place + 100 + length, scene.launch(start, start + 1), op=op
            )
        assert outer == 0
        return content_of(scene.build())

    found = compared(of(("aten::cudnn_convolution", 50)), of(("aten::miopen_convolution", 30)))
    reasons = {row.name: (row.side, row.reason) for row in found.operators.rows}
    assert reasons["aten::cudnn_convolution"] == (
        "only-a",
        "its work is in aten::miopen_convolution of B, both inside aten::_convolution",
    )
    assert reasons["aten::miopen_convolution"][1] == (
        "its work is in aten::cudnn_convolution of A, both inside aten::_convolution"
    )
    more = compared(of(("aten::mm", 50)), of(("aten::mm", 50), ("aten::fill_", 5)))
    (fill,) = [row for row in more.operators.rows if row.side == "only-b"]
    assert fill.reason == "only in B, inside aten::_convolution, which both have"


def test_nothing_is_compared_across_clocks_or_without_operators():
    device, host = (
        content_of(drawn([[("aten::mm", [5])]])),
        content_of(drawn([[("aten::mm", [5])]], device=False)),
    )
    assert device is not None
    assert host is not None
    assert (device.window.clock, host.window.clock) == ("device", "host")
    assert compare_work(device, host) is None
    assert compare_work(None, host) is None
    bare = Scene()
    bare.kernel(0, 5)
    assert content_of(bare.build()) is None
