"""The hottest calls: ranked by what is their own, compared by what they take with what is inside."""

from __future__ import annotations

import pytest

from profharness.analysis.replay.hottest import HotCalls, hottest
from profharness.understand.load import load
from tests.analysis.replay.calls import operator, recorded, relu, written

LINEAR = recorded([[8, 4], [4, 4]], ["float", "float"])


@pytest.fixture
def hot(tmp_path) -> HotCalls:
    """Two calls of linear with a product inside each, a product outside, and three of relu."""
    path = written(
        tmp_path / "trace.json",
        operator("aten::linear", 0, 100, **LINEAR),
        operator("aten::mm", 10, 60, **LINEAR),
        operator("aten::linear", 100, 110, **LINEAR),
        operator("aten::mm", 120, 80, **LINEAR),
        operator("aten::mm", 300, 40, **LINEAR),
        relu(400, 1),
        relu(410, 3),
        relu(420, 5, extent=65),
    )
    return hottest(load([path]).trace)


def test_calls_are_ranked_by_self_time(hot):
    assert [(call.name, call.self_ns, len(call.rows)) for call in hot.calls] == [
        ("aten::mm", 180_000, 3),
        ("aten::linear", 70_000, 2),
        ("aten::relu", 5_000, 1),
        ("aten::relu", 4_000, 2),
    ]
    assert hot.total_ns == 259_000
    assert sum(call.share for call in hot.calls) == pytest.approx(1)
    assert not hot.on_device


def test_what_is_compared_is_the_whole_call(hot):
    product, linear, *_ = hot.calls
    assert linear.inclusive_ns.tolist() == [100_000, 110_000]
    assert product.inclusive_ns.tolist() == [60_000, 80_000, 40_000]


def test_no_time_counts_twice_in_the_sum(hot):
    product, linear, *_ = hot.calls
    both = [times.tolist() for times in hot.outermost((product, linear))]
    assert both == [[40_000], [100_000, 110_000]]
    assert [times.tolist() for times in hot.outermost((product,))] == [[60_000, 80_000, 40_000]]


def test_a_device_is_what_counts_where_one_was_traced(tmp_path):
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7}
    path = written(
        tmp_path / "trace.json",
        operator("aten::mm", 0, 10, **LINEAR),
        {**launch, "ts": 5, "dur": 1, "args": {"correlation": 3}},
        {**kernel, "ts": 20, "dur": 30, "args": {"correlation": 3, "device": 0, "stream": 7}},
    )
    found = hottest(load([path]).trace)
    assert found.on_device
    assert [(call.self_ns, call.inclusive_ns.tolist()) for call in found.calls] == [
        (30_000, [30_000])
    ]
