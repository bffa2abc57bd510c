from __future__ import annotations

from profharness.analysis.time.linking import link_copies, link_kernels
from profharness.trace.columns.table import NULL
from profharness.trace.model import Source
from tests.analysis.scene import Scene


def test_kernels_and_copies_find_their_calls():
    scene = Scene()
    second = scene.launch(10, 12)
    first = scene.launch(0, 2)
    moved = scene.call("hipMemcpyAsync", 20, 22)
    scene.kernel(5, 9, first)
    scene.kernel(15, 19, second)
    scene.kernel(30, 31, 99_999)
    scene.kernel(32, 33)
    scene.copy(25, 26, moved)
    trace = scene.build()
    links = link_kernels(trace)
    assert links.api.tolist() == [1, 0, NULL, NULL]
    assert links.linked.tolist() == [True, True, False, False]
    assert links.has_calls.all()
    assert link_copies(trace).api.tolist() == [2]


def test_graph_kernels_share_one_call():
    scene = Scene()
    graph = scene.call("hipGraphLaunch", 0, 5)
    plain = scene.launch(6, 7)
    for start in (10, 20, 30):
        scene.kernel(start, start + 5, graph)
    scene.kernel(40, 45, plain)
    links = link_kernels(scene.build())
    assert links.api.tolist() == [0, 0, 0, 1]
    assert links.in_graph.tolist() == [True, True, True, False]


def test_of_calls_with_one_id_the_launch_counts_then_the_outermost():
    scene = Scene()
    scene.call("hsa_queue_create", 0, 50, correlation=5)
    scene.call("cuLaunchKernel", 12, 14, correlation=5)
    scene.call("cudaLaunchKernel", 10, 20, correlation=5)
    scene.kernel(30, 31, 5)
    assert link_kernels(scene.build()).api.tolist() == [2]


def test_processes_are_kept_apart_where_both_sides_name_them():
    scene = Scene(sources=(Source("a.db", "rocpd"),))
    scene.launch(0, 1, pid=7, correlation=5)
    scene.launch(2, 3, pid=8, correlation=5)
    scene.kernel(10, 11, 5, pid=8)
    scene.kernel(12, 13, 5, pid=7)
    scene.kernel(14, 15, 5, pid=9)
    assert link_kernels(scene.build()).api.tolist() == [1, 0, NULL]


def test_sources_are_kept_apart():
    scene = Scene(sources=(Source("a.json", "kineto"), Source("b.json", "kineto")))
    scene.launch(0, 1, source=0, correlation=5)
    scene.launch(2, 3, source=1, correlation=5)
    scene.kernel(10, 11, 5, source=1)
    scene.kernel(12, 13, 5, source=0)
    assert link_kernels(scene.build()).api.tolist() == [1, 0]


def test_a_source_without_calls_says_so():
    scene = Scene(sources=(Source("a.csv", "csv"), Source("b.json", "kineto")))
    scene.launch(2, 3, source=1, correlation=5)
    scene.kernel(10, 11, 5, source=0)
    scene.kernel(12, 13, 5, source=1)
    links = link_kernels(scene.build())
    assert links.has_calls.tolist() == [False, True]
    assert links.api.tolist() == [NULL, 0]


def test_calls_in_a_file_beside_the_kernels_are_found():
    scene = Scene(
        sources=(
            Source("7_kernel_trace.csv", "rocprofv3_csv", pid=7, pass_name="p", layer="rocprofv3"),
            Source("7_hip_api_trace.csv", "rocprofv3_csv", pid=7, pass_name="p", layer="rocprofv3"),
            Source("8_hip_api_trace.csv", "rocprofv3_csv", pid=8, pass_name="p", layer="rocprofv3"),
        )
    )
    scene.launch(0, 1, source=2, pid=8, correlation=5)
    scene.launch(2, 3, source=1, correlation=5)
    scene.kernel(10, 11, 5, source=0)
    links = link_kernels(scene.build())
    assert links.api.tolist() == [1]
    assert links.has_calls.all()


def test_no_calls_at_all():
    scene = Scene()
    scene.kernel(10, 11, 5)
    links = link_kernels(scene.build())
    assert (links.api.tolist(), links.has_calls.tolist(), links.in_graph.tolist()) == (
        [NULL],
        [False],
        [False],
    )
