"""Tallies of parts, joined, say what one tally of everything says."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.kernels.hotspots import grouped, tally
from profharness.analysis.kernels.tally import alike, join
from profharness.trace.merge import merge
from profharness.trace.model import Source, Trace
from tests.analysis.scene import Scene

KERNELS = st.lists(
    st.tuples(
        st.sampled_from(("gemm", "add", "copy_kernel")),
        st.integers(0, 6),
        st.sampled_from((-1, 8, 16)),
        st.integers(0, 2),
    ),
    max_size=12,
)


def _scene(kernels: list[tuple[str, int, int, int]], number: int) -> Trace:
    scene = Scene(sources=(Source(f"{number}.json", "kineto", pid=7),))
    ops = [
        scene.op(name, 10 * i, 10 * i + 9)
        for i, name in enumerate(("aten::mm", "aten::add", "aten::copy_"))
    ]
    scene.call("hipMemcpyAsync", 0, 1)
    scene.copy(0, 3)
    for place, (name, length, workgroups, op) in enumerate(kernels):
        scene.kernel(10 * place, 10 * place + length, name=name, workgroups=workgroups, op=ops[op])
    return scene.build()


@settings(max_examples=60)
@given(st.lists(KERNELS, min_size=1, max_size=4), st.sampled_from(("kernel", "op", "category")))
def test_joined_parts_are_the_whole(parts, by):
    traces = [_scene(kernels, number) for number, kernels in enumerate(parts)]
    whole = grouped(merge(traces), by)
    sent = [pickle.loads(pickle.dumps(tally(trace, by))) for trace in traces]
    joined = join(sent).table()
    assert [row.name for row in joined.rows] == [row.name for row in whole.rows]
    for ours, theirs in zip(joined.rows, whole.rows, strict=True):
        assert ours.std_ns == pytest.approx(theirs.std_ns, rel=1e-12)
        fields = [name for name in ours.__struct_fields__ if name not in ("std_ns", "kernel_ns")]
        assert [getattr(ours, name) for name in fields] == [
            getattr(theirs, name) for name in fields
        ]
        assert (ours.kernel_ns or 0) == (theirs.kernel_ns or 0)
    assert (joined.total_ns, joined.busy_ns, joined.busy_any_ns, joined.device_span_ns) == (
        whole.total_ns,
        whole.busy_ns,
        whole.busy_any_ns,
        whole.device_span_ns,
    )


def test_of_files_with_and_without_kernels_those_with_kernels_count():
    with_kernels, without = (
        _scene([("gemm", 5, -1, 0)], 0),
        Scene(sources=(Source("b.json", "kineto"),)),
    )
    without.op("aten::mm", 0, 5)
    tallies = [tally(with_kernels, None), tally(without.build(), None)]
    assert [one.by for one in tallies] == ["kernel", "op"]
    assert [row.name for row in join(alike(tallies)).table().rows] == ["gemm"]


def test_device_time_of_files_that_saw_the_same_device_is_not_added():
    def on(identity: str) -> Trace:
        scene = Scene()
        scene.devices = (type(scene.devices[0])("0", host="n", identity=identity),)
        scene.kernel(0, 5)
        return scene.build()

    assert join([tally(on("pci1"), None), tally(on("pci2"), None)]).table().busy_ns == 10
    assert join([tally(on("pci1"), None), tally(on("pci1"), None)]).table().busy_ns is None
