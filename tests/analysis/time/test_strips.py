from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.pictures.records import KINDS, Strip
from profharness.analysis.records import IdleCauses, Partition
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.idle_spans import idle_spans
from profharness.analysis.time.strips import MOST_DEVICES, device_spans, device_strips, strip
from profharness.analysis.time.timeline import partition_windows
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.model import Device, Trace
from tests.analysis.scene import Scene

CAUSES = KINDS[3:]


def parts(split: Partition) -> dict[str, int]:
    """The parts of a partition that are not empty, by the names that strips use."""
    causes = split.idle_causes or IdleCauses()
    figures = {**msgspec.structs.asdict(split), **msgspec.structs.asdict(causes)}
    return {name: figures[name] for name in KINDS if figures[name]}


def built(numbers: list[int]) -> Trace:
    """A trace of two devices whose records overlap, link and wait in ways that the numbers say."""
    scene = Scene(devices=(Device("0"), Device("1")))
    names = ("hipLaunchKernel", "hipStreamSynchronize", "hipMemcpyAsync", "hipStreamWaitEvent")
    at = 0
    for number in numbers:
        at += number % 13
        call = scene.call(names[number % 4], at, at + number % 7, tid=number % 2)
        late = at + number % 17
        by = call if number % 3 else -1
        device = number % 5 % 2
        if number % 11 < 7:
            name = "ncclKernel_AllReduce" if number % 6 == 0 else "k"
            scene.kernel(late, late + number % 9, by, name=name, device=device)
        else:
            scene.copy(late, late + number % 9, by, device=device, src=1 - device, dst=device)
    return scene.build()


NUMBERS = st.lists(st.integers(0, 10**6), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, st.integers(0, 60), st.integers(1, 60), st.integers(1, 40))
def test_the_instants_of_each_kind_are_those_that_the_partition_measures(
    numbers: list[int], low: int, length: int, most: int
) -> None:
    trace = built(numbers)
    windows = intervals.union(
        intervals.window(low, low + length), intervals.window(low + length + 5, low + length + 40)
    )
    idle = IdleAnalysis(trace)
    for device in (0, 1):
        split = partition_windows(trace, windows, (device,), idle)
        spans = device_spans(trace, device, windows, idle)
        assert {name: held.total for name, held in spans.items() if len(held)} == parts(split)
        assert intervals.union(*spans.values()).total == windows.total
        for pieces in (10**6, most):
            drawn = strip("0", [spans[kind] for kind in KINDS], windows, pieces)
            assert drawn.totals() == parts(split)
            assert len(drawn.kind) <= max(pieces, len(KINDS))
            assert drawn.thinned == (sum(map(len, spans.values())) > pieces)


def test_causes_are_disjoint_sets() -> None:
    trace = built([3, 141, 592, 653, 589, 793, 238, 462, 643, 383, 279, 502])
    idle, window = IdleAnalysis(trace), intervals.window(0, 90)
    spans = idle_spans(idle, 0, window)
    assert set(spans) == set(CAUSES)
    ordered = sorted(
        pair for held in spans.values() for pair in zip(held.start, held.end, strict=True)
    )
    assert all(first[1] <= second[0] for first, second in pairwise(ordered))


def test_few_pieces_stand_as_they_were_recorded() -> None:
    scene = Scene()
    scene.call("hipGetDevice", 0, 1)
    scene.kernel(100, 200, scene.launch(50, 60))
    scene.kernel(300, 400, scene.launch(240, 260))
    trace = scene.build()
    (drawn,) = device_strips(
        trace, Windows(intervals.window(100, 400), ""), IdleAnalysis(trace)
    ).strips
    columns = zip(drawn.kind, drawn.at, drawn.ns, strict=True)
    named = [(KINDS[kind], at, ns) for kind, at, ns in columns]
    assert named == [
        ("compute_ns", 0, 100),
        ("host_not_ready_ns", 100, 40),
        ("launch_in_progress_ns", 140, 60),
        ("compute_ns", 200, 100),
    ]
    assert (drawn.start_ns, drawn.end_ns, drawn.window_ns, drawn.thinned) == (100, 400, 300, False)


def test_a_thinned_strip_keeps_the_share_of_each_kind_in_a_bin() -> None:
    busy = intervals.of(np.arange(0, 1000, 10), np.arange(4, 1004, 10))
    idle = intervals.complement(busy, 0, 1000)
    kinds = [busy, *[intervals.EMPTY] * 5, idle, *[intervals.EMPTY] * 2]
    drawn = strip("0", kinds, intervals.window(0, 1000), 20)
    assert drawn.thinned
    assert drawn.kind == (0, 6) * 10
    assert drawn.width == (100,) * 20
    assert drawn.ns == (40, 60) * 10
    assert drawn.before == (0, 40) * 10


def test_neighbouring_bins_of_one_kind_are_one_piece() -> None:
    many = intervals.of(np.arange(0, 50, 2), np.arange(1, 51, 2))
    rest = intervals.complement(many, 0, 1000)
    kinds = [rest, *[intervals.EMPTY] * 7, many]
    drawn = strip("0", kinds, intervals.window(0, 1000), 40)
    assert drawn.thinned
    assert len(drawn.kind) < 8
    assert (drawn.kind[-1], drawn.at[-1] + drawn.width[-1]) == (0, 1000)
    assert drawn.width[-1] == drawn.ns[-1] > 900
    assert drawn.totals() == {"compute_ns": 975, "host_not_ready_ns": 25}


def test_devices_beyond_the_first_sixteen_are_counted() -> None:
    scene = Scene(devices=tuple(Device(str(number)) for number in range(20)))
    for number in range(20):
        scene.kernel(0, 10 + number, device=number)
    trace = scene.build()
    drawn = device_strips(trace, Windows(intervals.window(0, 40), ""), IdleAnalysis(trace))
    assert len(drawn.strips) == MOST_DEVICES
    assert drawn.left_out == 4
    assert [one.device for one in drawn.strips[:2]] == ["0", "1"]
    assert all(sum(one.ns) == one.window_ns == 40 for one in drawn.strips)


def test_without_a_window_there_is_no_strip() -> None:
    trace = Scene().build()
    assert device_strips(trace, Windows(intervals.EMPTY, ""), IdleAnalysis(trace)).strips == ()


def test_a_strip_is_json() -> None:
    drawn = strip("0", [intervals.window(0, 5), *[intervals.EMPTY] * 8], intervals.window(0, 5), 9)
    assert msgspec.json.decode(msgspec.json.encode(drawn), type=Strip) == drawn
