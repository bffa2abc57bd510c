"""Rows of a comparison sum to both windows, and say the same from either side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.compare.operators.changes import compare_work
from profharness.analysis.compare.operators.content import Content, content_of
from profharness.analysis.compare.operators.records import (
    Branch,
    StepChange,
    WorkComparison,
    WorkRow,
    WorkTable,
)
from profharness.report.compared.words import other_work_words, work_answer
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Trace
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


def device_of(*works: tuple[str, int], devices: int = 1, steps: int = 2) -> Content:
    """Steps of 100 ns with these operators and the time of their kernels, on each device alike."""
    scene = Scene(devices=tuple(Device(str(number)) for number in range(devices)))
    for number in range(steps):
        start = 100 * number
        scene.mark("step", start, start + 100, f"ProfilerStep#{number}")
        at = start + 20
        for place, (name, length) in enumerate(works):
            op = scene.op(name, start + 1 + 4 * place, start + 4 + 4 * place)
            for device in range(devices):
                by = scene.launch(start + 2 + 4 * place, start + 3 + 4 * place)
                scene.kernel(at, at + length, by, op=op, device=device, name=name)
            at += length
    content = content_of(scene.build())
    assert content is not None
    return content


def test_a_step_on_several_devices_is_that_of_each():
    one = device_of(("aten::mm", 30))
    two = device_of(("aten::mm", 40), devices=2)
    step = compared(one, two).step
    assert (step.units_a, step.units_b) == (1, 2)
    row = next(row for row in compared(one, two).operators.rows if row.name == "aten::mm")
    assert (row.a_ns, row.b_ns, row.difference_ns) == (60, 160, 10.0)
    assert (step.a_ns, step.b_ns) == (step.whole_a_ns / 2, step.whole_b_ns / 4)
    assert sum(one.difference_ns for one in compared(one, two).operators.rows) == pytest.approx(
        step.difference_ns
    )


@pytest.mark.parametrize(
    ("a", "b", "other"),
    [
        ((("aten::mm", 30), ("aten::mul", 9)), (("aten::mm", 9), ("aten::mul", 30)), False),
        ((("aten::mm", 30),), (("aten::bmm", 30),), True),
        ((("aten::mm", 30), ("aten::mul", 3)), (("aten::bmm", 30), ("aten::mul", 3)), True),
        ((("aten::mm", 30), ("aten::mul", 9)), (("aten::bmm", 30), ("aten::mul", 9)), False),
    ],
)
def test_traces_that_share_hardly_an_operator_are_of_different_work(a, b, other):
    found = compared(device_of(*a), device_of(*b)).other_work
    assert (found is not None) is other
    if found is not None:
        assert found.of == "operators"
        assert found.common_a == found.common_b < 0.2


@pytest.mark.parametrize(
    ("flops_a", "flops_b", "other"),
    [
        (1e12, 1.09e12, False),  # as lengths of sequences scatter
        (1e12, 1.2e12, True),
        (1e12, None, False),  # the operators tell
    ],
)
def test_operations_of_a_step_tell_different_work_first(flops_a, flops_b, other):
    one, two = (replace(device_of(("aten::mm", 30)), flops=flops) for flops in (flops_a, flops_b))
    found = compared(one, two).other_work
    assert (found is not None) is other
    unlike = replace(device_of(("triton::fused", 30)), flops=flops_a)
    assert compared(replace(one, flops=flops_a), unlike).other_work is None


@pytest.mark.parametrize(("beside", "other"), [(0.0, True), (1.5e12, False), (0.5e12, True)])
def test_products_of_unknown_work_are_no_different_work(beside, other):
    whole = replace(device_of(("aten::mm", 30)), flops=2e12)
    partly = replace(device_of(("aten::mm", 30)), flops=1e12, unknown_flops=beside)
    for pair in ((whole, partly), (partly, whole)):
        assert (compared(*pair).other_work is not None) is other


def test_the_same_work_stays_it_where_one_trace_lost_an_operator():
    contents = [content_of(of_products(linked=linked)) for linked in (True, False)]
    assert contents[0] is not None
    assert contents[1] is not None
    assert contents[0].flops == 2 * (contents[1].flops or 0)
    assert compared(*contents).other_work is None


def of_products(*, linked: bool) -> Trace:
    """Two products of a step, of which the second, a short one on matrix units, may have no
    operator.
    """
    scene = Scene(devices=(Device("0", "NVIDIA H100 80GB HBM3"),))
    given = {"shapes": "[[1024, 1024], [1024, 1024]]", "dtype": '["float", "float"]'}
    for at in range(0, 5_000_000, 1_000_000):
        scene.mark("step", at, at + 900_000, "ProfilerStep#1")
        for start, length, name in ((at, 300_000, "sgemm"), (at + 520_000, 28_000, "hgemm")):
            by = scene.launch(start + 2000, start + 3000)
            known = linked or name == "sgemm"
            op = scene.op("aten::mm", start + 1000, start + 4000, **given) if known else NULL
            scene.kernel(start + 50_000, start + 50_000 + length, by, op=op, name=name)
    return scene.build()


def test_different_work_comes_first_and_nothing_is_faster():
    one = replace(device_of(("aten::mm", 30)), flops=2e9)
    two = replace(device_of(("aten::bmm", 60)), flops=3e12)
    found = compared(one, two)
    assert found.other_work is not None
    words = other_work_words(found.other_work, found.step)
    assert words.startswith("A and B do different work, so that neither is the faster one: the ")
    assert "matrix products of one step are 2.00 GFLOP in A and 3.00 TFLOP in B." in words
    assert "%" not in words


@pytest.mark.parametrize(
    ("ceiling_b", "ns_b", "limiter"),
    [
        (2.0e12, 50, "bandwidth"),
        (2.0e12, 20, None),  # it got faster, though the ceiling is lower
        (3.9e12, 50, None),  # the ceiling hardly moved
        (8.0e12, 20, "bandwidth"),
    ],
)
def test_a_changed_ceiling_is_a_reason_where_the_limiter_says_so(ceiling_b, ns_b, limiter):
    one = replace(
        device_of(("aten::mul", 30), ("aten::mm", 10)),
        limiters={"aten::mul": "bandwidth"},
        ceilings={"bandwidth": 4.0e12},
    )
    two = replace(
        device_of(("aten::mul", ns_b), ("aten::mm", 20)), ceilings={"bandwidth": ceiling_b}
    )
    rows = {row.name: row for row in compared(one, two).operators.rows}
    assert rows["aten::mul"].limiter == limiter
    assert rows["aten::mul"].reason == (
        f"bound by bandwidth, whose ceiling is {ceiling_b / 4e12:.2f} times A's" if limiter else ""
    )
    assert rows["aten::mm"].limiter is None


def step_of(a_ns: float, b_ns: float) -> StepChange:
    return StepChange(
        clock="device",
        a_ns=a_ns,
        b_ns=b_ns,
        change=b_ns / a_ns - 1,
        window_a="2 steps",
        window_b="2 steps",
        steps_a=1,
        steps_b=1,
        whole_a_ns=round(a_ns),
        whole_b_ns=round(b_ns),
        difference_ns=b_ns - a_ns,
    )


def rows_of(**differences: float) -> WorkTable:
    rows = tuple(
        WorkRow(name=name, side="both", a_ns=9, b_ns=9, difference_ns=ns)
        for name, ns in differences.items()
    )
    return WorkTable(by="op", clock="device", rows=rows)


@pytest.mark.parametrize(
    ("b_ns", "differences", "words"),
    [
        (
            1200.0,
            {"mm": -300.0, "mul": 250.0, "add": 150.0, "idle": 100.0},
            (
                "20.0 % more time in B (1.000 µs in A, 1.200 µs in B): mul +250 ns, add +150 ns, "
                "idle +100 ns; against it mm -300 ns."
            ),
        ),
        (
            800.0,
            {"mm": -300.0, "mul": 40.0, "add": 40.0, "idle": 20.0},
            "20.0 % less time in B (1.000 µs in A, 800 ns in B): mm -300 ns.",
        ),
        (
            1010.0,
            {"mm": 10.0},
            (
                "as long in both, as far as two recordings tell (1.000 µs in A, 1.010 µs in B): "
                "mm +10 ns."
            ),
        ),
    ],
)
def test_answers_name_first_what_goes_their_way(b_ns, differences, words):
    said = work_answer(step_of(1000.0, b_ns), rows_of(**differences))
    assert said == f"One step takes {words}"
