"""Paths of the recorded files: every nanosecond of a window belongs to one segment."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from profharness.analysis.critical import classes
from profharness.analysis.critical.changes import parse
from profharness.analysis.critical.graph import STREAM, Graph, graph_of
from profharness.analysis.critical.host_points import Role
from profharness.analysis.critical.records import KEPT_ROWS, CriticalPath
from profharness.analysis.critical.rerun import rerun
from profharness.analysis.critical.scope import scopes
from profharness.analysis.critical.segments import segments_of, work_names
from profharness.analysis.critical.summary import critical_path
from profharness.analysis.critical.walk import path_of
from profharness.trace.model import Marks, Trace
from profharness.understand.load import load
from tests.conftest import shared_path
from tests.recorded import TOGETHER

pytestmark = TOGETHER
KINETO = sorted(
    path.relative_to(shared_path("fixtures")).as_posix()
    for path in shared_path("fixtures/kineto").glob("*.json.gz")
)
ROCM = [
    "rocm/rocprof_v1/kokkos_2021/results.json",
    *sorted(
        path.relative_to(shared_path("fixtures")).as_posix()
        for kind in ("json", "rocpd", "pftrace")
        for path in shared_path(f"fixtures/rocm/rocprofv3/{kind}").rglob("*")
        if path.suffix in (".json", ".gz", ".db", ".pftrace")
    ),
]
LARGE = 200_000  # bytes: reading more takes longer than a test should


@cache
def trace_of(name: str) -> Trace:
    path = shared_path(f"fixtures/{name}")
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    return load([path]).trace


def graphs(name: str) -> list[Graph]:
    return [graph_of(scope) for scope in scopes(trace_of(name))]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow)
        if shared_path(f"fixtures/{name}").is_file()
        and shared_path(f"fixtures/{name}").stat().st_size > LARGE
        else name
        for name in (*KINETO, *ROCM)
    ],
)
def test_segments_sum_to_the_window_and_a_replay_gives_it(name: str) -> None:
    trace = trace_of(name)
    made = graphs(name)
    if len(trace.ops) or len(trace.api):
        assert made
    for graph in made:
        found = segments_of(graph, path_of(graph))
        assert int(found.length.sum()) == graph.scope.window_ns
        assert (found.length > 0).all()
        assert found.start[0] == graph.scope.start
        assert (found.start[1:] == found.end[:-1]).all()
        again = rerun(graph, graph.cause, graph.lag)
        assert again.window_ns == graph.scope.window_ns
        assert (again.time == graph.time).all()


@cache
def paths_of(name: str) -> CriticalPath:
    changes = [parse("kernel:.=0.5"), parse("graphs"), parse("no-sync")]
    found = critical_path(trace_of(f"kineto/{name}.json.gz"), changes)
    assert found is not None
    return found


def test_steps_are_divided_whole_too() -> None:
    for path in paths_of("a100_nccl_rank0of2").processes:
        assert sum(part.ns for part in path.segments.values()) == path.window_ns
        assert len(path.rows) == KEPT_ROWS
        assert 0.9 * path.window_ns < sum(row.ns for row in path.rows) <= path.window_ns
        assert path.steps
        for step in path.steps:
            assert sum(step.segments.values()) == step.window_ns


def test_no_change_gains_more_than_it_takes_from_the_path() -> None:
    for name in ("v100_epoch_ns_timestamps", "h100_bert_small", "mi300x_timesformer"):
        for path in paths_of(name).processes:
            check, *forecasts = path.what_if
            assert check.change == "no change"
            assert check.forecast_ns == check.window_ns == path.window_ns
            for made in forecasts:
                gain = made.window_ns - made.forecast_ns
                assert gain >= 0
                assert made.at_most_ns is None or gain <= made.at_most_ns
                assert made.residual_ns == 0


def test_a_full_queue_is_no_limit_of_the_host() -> None:
    """This V100 is busy for 98 % of the window, and the host blocks in launches for half of it since
    the queue is full: kernels of half the length halve the window.
    """
    [path] = paths_of("v100_epoch_ns_timestamps").processes
    assert path.segments["kernel"].ns / path.window_ns > 0.96
    faster = path.what_if[1]
    assert faster.forecast_ns / faster.window_ns == pytest.approx(0.512, abs=0.01)
    assert faster.next_limit == "kernel"


def test_waits_for_an_event_and_for_the_device_have_their_edges() -> None:
    """spin_kernel ended inside of cudaEventSynchronize, which returned 8 us later, and before
    cudaDeviceSynchronize began. Without its mark, since a step's window ends with spin_kernel.
    """
    whole = trace_of("kineto/a100_event_sync.json.gz")
    [graph] = [graph_of(one) for one in scopes(replace(whole, marks=Marks.empty()))]
    trace, points, works = graph.scope.trace, graph.points, graph.works
    names, _ = work_names(graph.scope)
    edges = {}
    for point in (points.role == Role.RETURN).nonzero()[0].tolist():
        node = 2 * works + point
        work = int(graph.cause[STREAM, node]) - works
        call = trace.strings[int(trace.api.name[points.call[point]])]
        awaited = trace.strings[int(names[work])]
        after = int(graph.time[node] - graph.arrived.end[work])
        edges[call] = awaited.partition("(")[0], after, bool(graph.binding[node] == STREAM)
    spin = "at::cuda::"
    assert edges["cudaEventSynchronize"] == (spin, 8_000, True)
    assert edges["cudaDeviceSynchronize"] == (spin, 74_000, False)
    path = segments_of(graph, path_of(graph))
    kernels = path.name[path.kind == classes.KERNEL].tolist()
    assert any("spin_kernel" in trace.strings[name] for name in kernels)


def test_the_backward_pass_of_another_thread_is_on_the_path() -> None:
    [path] = paths_of("a100_nccl_rank0of2").processes
    assert any(
        row.name.startswith("ConvolutionBackward") or "Backward" in row.name
        for row in path.rows[:40]
    )
    [graph] = graphs("kineto/a100_nccl_rank0of2.json.gz")
    assert (graph.points.role == Role.RESUME).sum() == 3
