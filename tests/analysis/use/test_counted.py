"""Counters by operator: which dispatch of the counter pass belongs to which operator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.use.counted import operator_counters
from profharness.trace.model import Counters
from tests.analysis.scene import Scene


def timed(*kernels, workgroups=-1):
    """A pass with an operator for each (operator, kernel)."""
    made = Scene()
    for at, (operator, kernel) in enumerate(kernels):
        op = made.op(operator, 100 * at, 100 * at + 10)
        made.kernel(100 * at + 20, 100 * at + 50, name=kernel, op=op, workgroups=workgroups)
    return made.build()


def counted(*dispatches, counter="WAVES", workgroups=-1, operators=()):
    """A counter pass of (kernel, value), without operators but for those of the first kernels."""
    made = Scene()
    for at, (kernel, _) in enumerate(dispatches):
        name = operators[at] if at < len(operators) else None
        op = -1 if name is None else made.op(name, 10 * at, 10 * at + 2)
        made.kernel(10 * at + 3, 10 * at + 5, name=kernel, workgroups=workgroups, op=op)
    trace = made.build()
    counters = Counters.build(
        kernel=list(range(len(dispatches))),
        name=trace.strings.code(counter),
        value=[float(value) for _, value in dispatches],
        source=0,
    )
    return replace(trace, counters=counters)


def shown(rows):
    return {row.operator: (row.dispatches, row.recorded, row.in_order, row.sum) for row in rows}


def test_equally_many_kernels_of_a_name_are_paired_in_order():
    rows = operator_counters(
        counted(("gemm", 1), ("add", 5), ("gemm", 3)),
        timed(("aten::mm", "gemm"), ("aten::addmm", "gemm"), ("aten::add", "add")),
    )
    assert shown(rows) == {
        "aten::mm": (1, 0, 1, 1.0),
        "aten::addmm": (1, 0, 1, 3.0),
        "aten::add": (1, 0, 1, 5.0),
    }


def test_ranks_are_paired_apart_in_the_order_of_starts_with_all_instances():
    """The kernels of two ranks alternate, in one pass the other way round than in the other, and
    no table is in the order of time.
    """
    asked = timed(*((f"aten::of{number}", "gemm") for number in (0, 1, 2, 3)))
    asked = replace(asked, kernels=asked.kernels.with_columns(rank=[0, 1, 0, 1]).take([2, 1, 3, 0]))
    given = counted(*[("gemm", 0)] * 4)
    counters = Counters.build(
        kernel=[0, 0, 1, 1, 2, 2, 3, 3],
        name=given.strings.code("WAVES"),
        value=[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0],
        source=0,
    )
    kernels = given.kernels.with_columns(rank=[1, 0, 1, 0], start_ns=[20, 30, 0, 10])
    rows = operator_counters(replace(given, kernels=kernels, counters=counters), asked)
    assert shown(rows) == {
        "aten::of0": (1, 0, 1, 44.0),
        "aten::of1": (1, 0, 1, 33.0),
        "aten::of2": (1, 0, 1, 22.0),
        "aten::of3": (1, 0, 1, 11.0),
    }


def test_otherwise_each_gets_the_mean_of_its_name():
    rows = operator_counters(
        counted(("gemm", 1), ("gemm", 2), ("gemm", 6)),
        timed(("aten::mm", "gemm"), ("aten::addmm", "gemm")),
    )
    assert shown(rows) == {"aten::mm": (1, 0, 0, 3.0), "aten::addmm": (1, 0, 0, 3.0)}


def test_workgroups_tell_kernels_apart_where_both_passes_have_them():
    asked = timed(("aten::mm", "gemm"), workgroups=8)
    assert operator_counters(counted(("gemm", 1), workgroups=4), asked) == ()
    assert len(operator_counters(counted(("gemm", 1)), asked)) == 1


def test_operators_of_the_counter_pass_itself_come_first():
    with_op = replace(timed(("aten::mm", "gemm")), counters=counted(("gemm", 7)).counters)
    code = with_op.strings.code("WAVES")
    with_op = replace(with_op, counters=with_op.counters.with_columns(name=code))
    assert shown(operator_counters(with_op, timed(("aten::relu", "other")))) == {
        "aten::mm": (1, 1, 0, 7.0)
    }


def test_a_dispatch_with_an_operator_of_its_own_counts_once():
    asked = timed(("aten::mm", "gemm"), ("aten::mm", "gemm"))
    rows = operator_counters(counted(("gemm", 10), ("gemm", 10), operators=["aten::mm"]), asked)
    assert shown(rows) == {"aten::mm": (2, 1, 1, 20.0)}
    # the second one stands under the operator that it is paired with, whatever the first one's is
    asked = timed(("aten::mm", "gemm"), ("aten::addmm", "gemm"))
    rows = operator_counters(counted(("gemm", 10), ("gemm", 7), operators=["other"]), asked)
    assert shown(rows) == {"other": (1, 1, 0, 10.0), "aten::addmm": (1, 0, 1, 7.0)}


def test_of_a_name_with_operators_what_has_no_pair_is_left_out():
    rows = operator_counters(
        counted(("gemm", 10), ("gemm", 10), ("add", 1), operators=["aten::mm"]),
        timed(*[("aten::mm", "gemm")] * 3, *[("aten::add", "add")] * 2),
    )
    assert shown(rows) == {"aten::mm": (1, 1, 0, 10.0), "aten::add": (2, 0, 0, 2.0)}


def test_per_cent_have_no_sum():
    (row,) = operator_counters(
        counted(("gemm", 50), ("gemm", 70), counter="MfmaUtil"),
        timed(("aten::mm", "gemm"), ("aten::mm", "gemm")),
    )
    assert (row.sum, row.mean, row.unit) == (None, 60.0, "%")


def test_nothing_counted_is_nothing():
    assert operator_counters(timed(("aten::mm", "gemm")), timed(("aten::mm", "gemm"))) == ()


@given(
    st.lists(
        st.tuples(st.sampled_from(["aten::mm", "aten::add"]), st.sampled_from("abc")),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 12),
    st.integers(0, 2**32 - 1),
)
def test_paired_sums_are_those_of_a_plain_walk(kernels, recorded, seed):
    values = np.random.default_rng(seed).integers(1, 1000, len(kernels)).tolist()
    rows = operator_counters(
        counted(
            *((kernel, value) for (_, kernel), value in zip(kernels, values, strict=True)),
            operators=[operator for operator, _ in kernels[:recorded]],
        ),
        timed(*kernels),
    )
    expected: dict[str, float] = {}
    for (operator, _), value in zip(kernels, values, strict=True):
        expected[operator] = expected.get(operator, 0.0) + value
    assert {row.operator: row.sum for row in rows} == pytest.approx(expected)
    assert all(row.in_order + row.recorded == row.dispatches for row in rows)
    assert sum(row.recorded for row in rows) == min(recorded, len(kernels))
