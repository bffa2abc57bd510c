from __future__ import annotations

from profharness.analysis.records import DeviceCounts
from profharness.analysis.time.counts import count, count_devices, device_keys
from profharness.trace.model import Device, Source, Strings, Trace
from tests.analysis.scene import Scene


def test_every_count_of_a_small_trace():
    scene = Scene()
    graph = scene.call("hipGraphLaunch", 0, 5)
    scene.call("hipGraphLaunch", 6, 7)
    plain = scene.launch(8, 9)
    scene.kernel(10, 20, graph, name="a")
    scene.kernel(15, 30, graph, name="b", stream=1)
    scene.kernel(40, 50, plain, name="a")
    scene.kernel(50, 50, 12345, name="empty")
    scene.copy(28, 45, stream=2)
    trace = count(scene.build())
    assert (
        trace.kernels,
        trace.copies,
        trace.distinct_kernels,
        trace.streams,
        trace.devices,
        trace.ranks,
    ) == (4, 1, 3, 3, 1, 1)
    assert (trace.span_ns, trace.busy_ns, trace.busy_any_ns, trace.sum_kernel_ns) == (
        40,
        30,
        40,
        35,
    )
    assert (trace.unlinked_kernels, trace.graph_launches, trace.kernels_in_graphs) == (1, 2, 2)
    assert trace.pass_name is None


def test_devices_are_summed_but_for_the_span():
    scene = Scene(devices=(Device("0"), Device("1")))
    scene.kernel(0, 10, device=0)
    scene.kernel(5, 25, device=1)
    scene.copy(25, 28, device=1)
    trace = scene.build()
    total = count(trace)
    assert (total.busy_ns, total.busy_any_ns, total.span_ns, total.devices) == (30, 33, 28, 2)
    assert count_devices(trace) == {
        "0": DeviceCounts(kernels=1, busy_ns=10, busy_any_ns=10, span_ns=10),
        "1": DeviceCounts(kernels=1, busy_ns=20, busy_any_ns=23, span_ns=23),
    }


def test_unlinked_is_unknown_only_where_kernels_meet_no_host_call():
    alone = Scene()
    alone.kernel(0, 1)
    assert count(alone.build()).unlinked_kernels is None
    with_calls = Scene()
    with_calls.kernel(0, 1)
    with_calls.call("hipDeviceSynchronize", 0, 5)
    assert count(with_calls.build()).unlinked_kernels == 1
    assert (
        count(Trace(sources=(Source("e.json", "kineto"),), strings=Strings())).unlinked_kernels == 0
    )


def test_an_empty_trace_counts_nothing():
    counts = count(Trace(sources=(Source("e.json", "kineto"),), strings=Strings()))
    assert (counts.kernels, counts.span_ns, counts.busy_ns, counts.devices, counts.ranks) == (
        0,
        0,
        0,
        0,
        1,
    )


def test_keys_of_several_sources_name_host_rank_and_device():
    scene = Scene(
        sources=(Source("a.json", "kineto", rank=0), Source("b.json", "kineto", rank=1)),
        devices=(Device("0", host="n1", rank=0), Device("0", host="n2", rank=1), Device("3")),
    )
    scene.kernel(0, 1, device=0, source=0)
    scene.kernel(0, 1, device=1, source=1)
    scene.kernel(0, 1, device=2, source=1)
    trace = scene.build()
    assert list(device_keys(trace).values()) == ["n1/0/0", "n2/1/0", "-/-/3"]
    assert count(trace).ranks == 2


def test_keys_that_would_collide_name_their_file():
    scene = Scene(
        sources=(Source("/x/a.json", "kineto"), Source("/x/b.json", "kineto")),
        devices=(Device("0"), Device("0")),
    )
    scene.kernel(0, 1, device=0, source=0)
    scene.kernel(0, 1, device=1, source=1)
    assert list(device_keys(scene.build()).values()) == ["a.json/-/0", "b.json/-/0"]


def test_devices_that_one_file_names_twice_are_numbered():
    scene = Scene(devices=(Device("0"), Device("0"), Device("0 (2)"), Device("0")))
    for device in range(4):
        scene.kernel(0, 1 + device, device=device)
    trace = scene.build()
    assert list(device_keys(trace).values()) == ["0", "0 (2)", "0 (2) (2)", "0 (3)"]
    assert sum(device.kernels for device in count_devices(trace).values()) == 4


def test_the_pass_comes_from_the_sources_with_device_work():
    scene = Scene(
        sources=(
            Source("t.csv", "telemetry", pass_name="bare"),
            Source("a.json", "kineto", pass_name="torch"),
        )
    )
    scene.kernel(0, 1, source=1)
    assert count(scene.build()).pass_name == "torch"
