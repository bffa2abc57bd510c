from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.formulas import INFLATED
from profharness.analysis.kernels import filling
from profharness.analysis.measurement import measure
from profharness.analysis.metrics import METRICS, figures
from profharness.analysis.summarise import points_of, summarise_point, summarise_trace
from profharness.stats import intervals
from profharness.trace.model import Device, Problem, Source, Strings, Trace
from tests.analysis.scene import Scene


def busy_scene() -> Scene:
    """A window of 1000 ns (one step): 500 compute, 100 of a collective alone, 50 of a copy alone,
    350 idle.
    """
    scene = Scene()
    scene.mark("step", 0, 1000)
    scene.kernel(100, 400, scene.launch(0, 50), name="gemm", workgroups=10)
    scene.kernel(300, 500, scene.launch(60, 70), name="gemm", stream=1, workgroups=2)
    scene.kernel(500, 500, scene.launch(80, 82), name="gemm", stream=1, workgroups=1)
    scene.kernel(
        450, 600, scene.launch(90, 95), name="ncclDevKernel_Generic", stream=2, workgroups=1
    )
    scene.kernel(900, 1000, scene.launch(700, 710), name="gemm", workgroups=5)
    scene.copy(590, 650, scene.call("hipMemcpyAsync", 100, 110), stream=3)
    scene.call("hipDeviceSynchronize", 620, 690)
    return scene


def values(scene: Scene) -> dict[str, float | int | None]:
    return {name: figure.value for name, figure in figures(measure(scene.build())).items()}


def test_every_share_of_a_made_up_step():
    found = values(busy_scene())
    expected = {
        "busy": 0.6,
        "busy_any": 0.65,
        "sum_busy": 0.75,
        "concurrency": 0.75 / 0.6,
        "compute": 0.5,
        "communication": 0.15,
        "exposed_communication": 0.1,
        "copy": 0.06,
        "exposed_copy": 0.05,
        "idle": 0.35,
        "idle_launch_in_progress": 0.1 + 0.2,
        "idle_synchronisation": 0.04,
        "idle_host_not_ready": 0.01,
        "idle_queued_gap": 0.0,
        "idle_micro_gaps": 0.35,
        "idle_macro_gaps": 0.0,
        "idle_longest_gap": 250,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_latencies_queue_and_short_kernels():
    found = values(busy_scene())
    # gemm on stream 0 twice, gemm on stream 1, the collective on stream 2; the empty gemm queued
    # behind another
    assert found["launch_latency_median"] == np.median([100, 200, 300 - 60, 450 - 90])
    assert found["queue_delay_median"] == 500 - 80
    assert (found["short_kernels_by_count"], found["short_kernels_by_time"]) == (1.0, 1.0)
    depth = (400 - 0) + (500 - 60) + (500 - 80) + (600 - 90) + (1000 - 700) + (650 - 100)
    assert found["queue_depth"] == pytest.approx(depth / 1000)


def test_fill_adds_running_workgroups_up_to_one_per_unit():
    found = figures(measure(busy_scene().build()))
    # 10 units: [100,300) 1.0, [300,400) 1.0 of 1.2, [400,450) 0.2, [450,500) 0.3, [500,600) 0.1,
    # [900,1000) 0.5
    filled = 200 + 100 + 10 + 15 + 10 + 50
    assert found["fill"].value == pytest.approx(filled / 1000)
    assert found["fill_busy"].value == pytest.approx(filled / 600)
    assert found["underfilled"].value == pytest.approx(100 / 1000)
    assert (found["fill"].coverage, found["fill"].low, found["fill"].high) == (
        1.0,
        found["fill"].value,
        found["fill"].value,
    )


def test_fill_is_not_measured_below_nine_tenths_of_kernel_time():
    scene = busy_scene()
    scene.kernel(650, 700, workgroups=-1)
    barely = figures(measure(scene.build()))["fill"]
    assert barely.value is not None
    assert barely.coverage == pytest.approx(750 / 800)
    assert barely.high == pytest.approx(barely.value + 0.05)
    scene.kernel(700, 750, workgroups=-1)
    below = figures(measure(scene.build()))["fill"]
    assert (below.value, below.coverage) == (None, pytest.approx(750 / 850))
    assert "90%" in below.needs
    assert "88%" in below.needs


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 25)),
        min_size=1,
        max_size=10,
    )
)
def test_fill_equals_a_sum_over_every_ns(found):
    scene = Scene()
    level = np.zeros(50)
    for first, second, workgroups in found:
        scene.kernel(min(first, second), max(first, second), workgroups=workgroups)
        level[min(first, second) : max(first, second)] += workgroups
    part = filling.offered(scene.build(), 0, intervals.window(5, 45)).fill
    assert part is not None
    inside = level[5:45]
    assert part.filled_ns == pytest.approx(np.minimum(inside / 10, 1).sum())
    assert part.underfilled_ns == ((inside > 0) & (inside < 5)).sum()
    assert part.busy_ns == (inside > 0).sum()


def test_kernels_without_geometry_count_as_filling_the_device():
    scene = Scene()
    scene.kernel(0, 10)
    scene.kernel(20, 30, workgroups=1)
    part = filling.offered(scene.build(), 0, intervals.window(0, 40))
    assert part.fill is not None
    assert (part.fill.underfilled_ns, part.fill.unknown_ns) == (10, 10)
    assert (part.filled.start.tolist(), part.filled.end.tolist()) == ([0], [10])


def test_unknown_compute_units_leave_fill_out():
    scene = busy_scene()
    scene.devices = (Device("0"),)
    figure = figures(measure(scene.build()))["fill"]
    assert figure.value is None
    assert "compute units" in figure.needs


def test_what_is_missing_is_named_and_never_zero():
    scene = Scene()
    scene.kernel(0, 10)
    found = figures(measure(scene.build()))
    for name in (
        "launch_latency_median",
        "launch_bound",
        "queue_depth",
        "fill",
        "steps_per_second",
        "cores_used",
        "cores_allowed",
        "operators",
    ):
        assert found[name].value is None
        assert found[name].needs
    nothing = figures(measure(Trace(sources=(Source("e", "kineto"),), strings=Strings())))
    assert {figure.value for figure in nothing.values()} == {None}
    assert all(figure.needs for figure in nothing.values())


def test_high_percentiles_need_ten_samples_beyond_them():
    scene = Scene()
    for number in range(999):
        scene.kernel(
            100 * number + 50, 100 * number + 60, scene.launch(100 * number, 100 * number + 5)
        )
    too_few = figures(measure(scene.build()))["launch_latency_p99"]
    assert too_few.value is None
    assert "1000" in too_few.needs
    scene.kernel(99_970, 99_980, scene.launch(99_900, 99_905))
    assert figures(measure(scene.build()))["launch_latency_p99"].value == pytest.approx(50, abs=0.5)


def test_disagreeing_clocks_are_said():
    scene = Scene()
    scene.kernel(10, 20, scene.launch(15, 16))
    assert "5 ns" in figures(measure(scene.build()))["launch_latency_median"].note


def test_shares_of_a_traced_pass_are_marked():
    trace = busy_scene().build()
    assert figures(measure(trace))["busy"].note == INFLATED
    assert figures(measure(trace, traced=False))["busy"].note == ""


def test_steps():
    scene = Scene()
    for number in range(4):
        scene.mark("step", 250 * number, 250 * (number + 1))
        scene.kernel(250 * number + 10, 250 * number + 20)
        scene.kernel(250 * number + 30, 250 * number + 40)
    found = values(scene)
    assert (found["steps_per_second"], found["step_time"], found["kernels_per_step"]) == (
        4e6,
        250.0,
        2.0,
    )


def test_kernels_of_a_step_are_those_that_start_in_it():
    """At its start, not at its end; wherever they stand in the file."""
    scene = Scene()
    for start in (750, 500, 20, 10, 499, 250, 251, 1000):
        scene.kernel(start, start + 1)
    for number in range(4):
        scene.mark("step", 250 * number, 250 * (number + 1))
    assert values(scene)["kernels_per_step"] == 7 / 4


def test_cores_are_weighted_by_time_inside_the_window():
    scene = Scene()
    scene.op("Conv", 100, 300)
    scene.sample("cpu_tree", 0, 200, 1.0)
    scene.sample("cpu_tree", 200, 250, 4.0)
    scene.sample("cpu_node", 200, 250, 64.0)
    found = figures(measure(scene.build(), allowed_cores=8))
    assert found["cores_used"].value == pytest.approx((100 * 1 + 50 * 4) / 150)
    assert found["cores_allowed"].value == 8
    assert found["operators"].value == 1.0


def test_two_devices_share_the_window():
    scene = Scene(devices=(Device("0"), Device("1")))
    scene.kernel(0, 100, device=0)
    scene.kernel(0, 50, device=1)
    assert values(scene)["busy"] == 0.75


def test_names_are_unique_and_units_known():
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    assert {metric.better for metric in METRICS} <= {"higher", "lower", "neither"}
    assert {metric.unit for metric in METRICS} == {
        "share",
        "ns",
        "kernels",
        "steps/s",
        "cores",
        "FLOP/s",
        "B/s",
        "B",
        "FLOP/B",
    }


def test_units_of_figures_are_those_of_the_table():
    found = figures(measure(busy_scene().build()))
    assert {name: figure.unit for name, figure in found.items()} == {
        metric.name: metric.unit for metric in METRICS
    }


def test_a_summary_holds_everything_of_one_trace():
    scene = busy_scene()
    scene.problems = (Problem("warning", "a.json", 3, "rows without a name"),)
    summary = summarise_trace(scene.build(), "a.json")
    assert summary.source == "a.json"
    assert summary.trace.kernels == 5
    assert list(summary.devices) == ["0"]
    assert summary.partition is not None
    assert summary.partition.window_ns == 1000
    assert summary.verdict is not None
    assert summary.verdict.kind in ("idle-host-not-ready", "kernels")
    assert summary.hotspots[0].by == "kernel"
    assert summary.problems[0].count == 3
    assert summary.sources[0].format == "kineto"
    assert summary.points == ()


def test_points_have_figures_of_their_own():
    scene = Scene()
    for point, at, length in (("b", 0, 80), ("a", 100, 20)):
        scene.mark("point", at, at + 100, point=point)
        scene.mark("trial", at, at + 100, point=point)
        scene.kernel(at, at + length, scene.launch(at, at + 1))
    trace = scene.build()
    assert points_of(trace) == ["b", "a"]
    summary = summarise_trace(trace, "a.json")
    assert [(point.point, point.metrics["busy"].value) for point in summary.points] == [
        ("b", 0.8),
        ("a", 0.2),
    ]
    point = summarise_point(trace, "a")
    assert point.verdict is not None
    assert point.verdict.idle


def test_an_empty_trace_has_a_summary_without_a_verdict():
    summary = summarise_trace(Trace(sources=(Source("e", "kineto"),), strings=Strings()), "e")
    assert summary.partition is None
    assert summary.verdict is None
    assert summary.verdict_needs.startswith("a complete trace, as the trace holds no device work")
    assert [item.id for item in summary.findings] == ["empty-trace"]
