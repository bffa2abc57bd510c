from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.timeline import partition, partition_windows
from profharness.stats import intervals
from profharness.trace.model import Device
from tests.analysis.scene import Scene

LENGTH = 80
spans = st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(
    lambda pair: (min(pair), max(pair))
)
work = st.lists(
    st.tuples(st.sampled_from(["compute", "nccl", "copy"]), spans, st.integers(0, 1)), max_size=12
)


def scene_of(found) -> Scene:
    scene = Scene(devices=(Device("0"), Device("1")))
    for kind, (start, end), device in found:
        if kind == "copy":
            scene.copy(start, end, device=device)
        else:
            scene.kernel(
                start,
                end,
                name="ncclDevKernel_Generic" if kind == "nccl" else "gemm",
                device=device,
            )
    return scene


def picture(found, kind: str, device: int) -> np.ndarray:
    held = np.zeros(LENGTH, bool)
    for its_kind, (start, end), its_device in found:
        if its_kind == kind and its_device == device:
            held[start:end] = True
    return held


@given(work, st.lists(spans, min_size=1, max_size=3))
def test_parts_equal_a_bitmap_and_sum_to_the_window(found, chosen):
    windows = intervals.merge(
        intervals.of([start for start, _ in chosen], [end for _, end in chosen])
    )
    trace = scene_of(found).build()
    devices = sorted({device for _, _, device in found})
    split = partition_windows(trace, windows)
    inside = intervals.contains(windows, np.arange(LENGTH))
    expected = np.zeros(6, int)
    for device in devices:
        compute, talk, copy = (
            picture(found, kind, device) & inside for kind in ("compute", "nccl", "copy")
        )
        expected += [
            compute.sum(),
            (talk & ~compute).sum(),
            (copy & ~talk & ~compute).sum(),
            (inside & ~copy & ~talk & ~compute).sum(),
            talk.sum(),
            copy.sum(),
        ]
    parts = (split.compute_ns, split.exposed_communication_ns, split.exposed_copy_ns, split.idle_ns)
    assert (*parts, split.communication_ns, split.copy_ns) == tuple(expected)
    assert sum(parts) == split.window_ns == windows.total * len(devices)


@given(work, spans)
def test_busy_is_no_more_than_the_window_and_the_union_no_more_than_the_sum(found, chosen):
    split = partition(scene_of(found).build(), *chosen)
    busy = split.window_ns - split.idle_ns
    assert 0 <= busy <= split.window_ns
    assert busy <= sum(end - start for _, (start, end), _ in found)


def test_one_device_of_two():
    scene = scene_of([("compute", (0, 10), 0), ("compute", (5, 25), 1)])
    assert partition(scene.build(), 0, 20, device=1).compute_ns == 15
    assert partition(scene.build(), 0, 20).window_ns == 40


def test_causes_come_along_only_when_asked_for():
    trace = scene_of([("compute", (0, 10), 0)]).build()
    assert partition(trace, 0, 20).idle_causes is None
    causes = partition_windows(
        trace, intervals.window(0, 20), None, IdleAnalysis(trace)
    ).idle_causes
    assert causes is not None
    assert causes.no_host_record_ns == 10


def test_an_empty_window_has_empty_parts():
    split = partition(scene_of([("compute", (0, 10), 0)]).build(), 5, 5)
    assert (split.window_ns, split.compute_ns, split.idle_ns) == (0, 0, 0)
