"""What is left out of a trace because a window cannot see it changes no figure in the window."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.measurement import Measurement
from profharness.analysis.metrics import figures
from profharness.analysis.records import Figure
from profharness.analysis.summarise import device_partition
from profharness.analysis.time.whole import Whole
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import Device, Trace
from tests.analysis.scene import Scene

LENGTH = 60
AMD = Device("0", vendor="amd", compute_units=10)
times = st.tuples(st.integers(0, LENGTH), st.integers(0, 20))
pieces = st.lists(
    st.tuples(
        st.sampled_from("kkkkkcgwso"),
        times,
        st.integers(0, 30),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(1, 2),
    ),
    max_size=25,
)
windows = st.lists(st.tuples(st.integers(-5, LENGTH), st.integers(1, 20)), min_size=1, max_size=5)


def trace_of(found: list[tuple[str, tuple[int, int], int, int, int, int]]) -> Trace:
    scene = Scene(devices=(AMD, Device("1", vendor="amd", compute_units=10)))
    scene.kernel(0, 5, name="gemm", workgroups=5)
    for kind, (start, length), before, number, device, tid in found:
        end = start + length
        if kind in "kc":
            by = scene.launch(start - before, start - before + 7, tid=tid) if number else -1
            if kind == "c":
                scene.copy(start, end, by, device=device, stream=number, src=device)
            else:
                scene.kernel(
                    start,
                    end,
                    by,
                    name=("gemm", "ncclKernel_AllReduce", "relu")[number],
                    device=device,
                    stream=number,
                    workgroups=(4, 15, -1)[number],
                )
        elif kind == "o":
            scene.op("aten::mm", start, end, tid=tid)
        else:
            scene.call(
                {"g": "hipGetDevice", "w": "hipStreamWaitEvent", "s": "hipDeviceSynchronize"}[kind],
                start,
                end,
                tid=tid,
            )
    return scene.build()


def alike(first: dict[str, Figure], second: dict[str, Figure]) -> bool:
    """Equal in all but the rounding of sums that begin elsewhere."""
    numbers = [(first[name].value, second[name].value) for name in first]
    return first.keys() == second.keys() and all(
        one == other
        if one is None or other is None
        else one == pytest.approx(other, rel=1e-9, abs=1e-12)
        for one, other in numbers
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(pieces, windows)
def test_a_window_sees_all_that_counts_in_it(
    found: list[tuple[str, tuple[int, int], int, int, int, int]], asked: list[tuple[int, int]]
) -> None:
    trace = trace_of(found)
    shared = Whole(trace, KernelFacts(trace))
    for start, length in asked:  # each on its own, from parts that earlier ones may have made
        when = intervals.window(start, start + length)
        seen = Measurement(trace, Windows(when, "part"), known=shared)
        values, split = figures(seen), device_partition(seen)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                intervals, "reaching", lambda members, _: np.ones(len(members), np.bool_)
            )
            full = Measurement(trace, Windows(when, "part"))
            assert alike(values, figures(full))
            assert split == device_partition(full)
            assert full.near.rows is None


@given(windows)
def test_windows_far_apart_see_what_lies_between(asked: list[tuple[int, int]]) -> None:
    """The stretch from the first to the last is seen: all of it may be needed, and it needs no
    search.
    """
    when = intervals.merge(
        intervals.lasting([start for start, _ in asked], [length for _, length in asked])
    )
    members = Intervals(np.arange(-100, LENGTH + 300, 10), np.arange(-100, LENGTH + 300, 10) + 3)
    inside = intervals.inside_ns(members, when) > 0
    seen = intervals.reaching(members, when)
    assert not np.any(inside & ~seen)
    assert not seen[members.end <= when.start[0]].any()
    assert not seen[members.start >= when.end[-1]].any()


def test_what_a_window_does_not_see_is_left_out() -> None:
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.kernel(start, start + 50, name=f"k{start}")
    trace = scene.build()
    near = Whole(trace, KernelFacts(trace)).near(intervals.window(240, 420))
    assert near.rows is not None
    assert near.rows.tolist() == [2, 3, 4]
    assert trace.strings.decode(near.trace.kernels.name) == ["k200", "k300", "k400"]
