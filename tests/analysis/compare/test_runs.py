import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.compare.deltas import BY_DRIFT, changes, simultaneous
from profharness.analysis.compare.gate import breaches, parse
from profharness.analysis.compare.operators.joined import with_work
from profharness.analysis.compare.records import Comparison, Delta, PointComparison
from profharness.analysis.compare.runs import compare
from profharness.analysis.records import (
    Figure,
    HotspotRow,
    Hotspots,
    PointSummary,
    RunInfo,
    Summary,
    TraceCounts,
)
from profharness.analysis.run.passes import run_info
from profharness.analysis.run.summary import summarise_run
from profharness.errors import UsageError
from profharness.report.text.comparison import comparison_lines
from profharness.rundir.manifest import NodeRecord, ScanRecord
from tests.analysis.run.run_scene import SIZES, Builder, manifest, scan_trace, trial_ns


def made(name, rates, half=0.02, **more):
    points = tuple(
        PointSummary(
            point=f"p{at}",
            batch_size=at,
            throughput=rate,
            latency_ms=at / rate * 1e3,
            metrics={
                "throughput": Figure(
                    value=rate, unit="items/s", low=rate * (1 - half), high=rate * (1 + half)
                ),
                "latency_mean": Figure(
                    value=at / rate * 1e3,
                    unit="ms",
                    low=at / rate * 1e3 * (1 - half),
                    high=at / rate * 1e3 * (1 + half),
                ),
                "latency_p99": Figure(value=None, unit="ms", needs="more trials"),
            },
        )
        for at, rate in rates.items()
    )
    return Summary(source=name, trace=TraceCounts(), points=points, **more)


def delta(comparison, point, name):
    (found,) = [
        one
        for item in comparison.points
        if item.point == point
        for one in item.deltas
        if one.name == name
    ]
    return found


def test_a_run_against_itself_is_all_noise():
    builder, _ = scan_trace()
    summary = summarise_run(manifest(), builder.trace(), "x")
    comparison = compare(summary, summary)
    assert len(comparison.points) == len(summary.points)
    deltas = [one for point in comparison.points for one in point.deltas]
    assert deltas
    assert all(one.change == 0 and one.significant is not True for one in deltas)
    assert all(one.change == 0 for table in comparison.hotspots for one in table.rows)
    assert comparison.only_a == comparison.only_b == ()


def drifting(seed, kind, ratio=1.0, drift=0.01):
    """A run of three points whose measurements drift by 1 %: each by itself, or all alike."""
    dice = np.random.default_rng([seed, 7])
    builder, common = Builder(), dice.normal(0, drift)
    for key, size in [(f"torch-b{size}", size) for size in SIZES] + [
        (f"torch-b{size}~1", size) for size in (SIZES[0], SIZES[-1])
    ]:
        slow = math.exp(common if kind == "run" else dice.normal(0, drift)) * ratio
        builder.trials("bare", key, size, trial_ns(size, int(dice.integers(10**9)), 40, slow=slow))
    return summarise_run(manifest(), builder.trace(), "x")


def called(pairs, kind, ratio=1.0):
    """In how many of the pairs a throughput is called different."""
    return sum(
        any(
            one.significant
            for item in compare(drifting(2 * at, kind), drifting(2 * at + 1, kind, ratio)).points
            for one in item.deltas
            if one.name == "throughput"
        )
        for at in range(pairs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["each", "run"])
def test_repeated_runs_rarely_differ(kind):
    """The same machine again: at most one of twenty is called different."""
    assert called(20, kind) <= 2
    assert called(6, kind, 1.1) == 6


@pytest.mark.statistics
@pytest.mark.parametrize("kind", ["each", "run"])
@pytest.mark.parametrize(("ratio", "least"), [(1.0, 0.0), (1.05, 0.7), (1.1, 1.0), (1.2, 1.0)])
def test_how_often_two_runs_are_called_different(kind, ratio, least):
    pairs = 200
    found = called(pairs, kind, ratio) / pairs
    if ratio == 1.0:
        assert found <= 0.05
    else:
        assert found >= least


def test_change_ratio_and_bounds():
    comparison = compare(made("a", {4: 100.0, 8: 150.0}), made("b", {4: 90.0, 8: 150.5}))
    slower, same = delta(comparison, "p4", "throughput"), delta(comparison, "p8", "throughput")
    assert slower.change == pytest.approx(-0.1)
    assert slower.significant
    assert slower.low < -0.1 < slower.high < 0
    assert same.significant is False
    assert same.noise == pytest.approx(
        math.expm1(simultaneous(2) / 1.959964 * math.hypot(BY_DRIFT, 0.02, 0.02)), rel=1e-3
    )
    latency = delta(comparison, "p4", "latency")
    assert latency.change == pytest.approx(1 / 0.9 - 1)
    assert latency.better == "lower"
    assert not [one for one in comparison.points[0].deltas if one.name == "latency_p99"]


def test_the_drift_that_an_interval_holds_is_not_added_once_more():
    def noise(half, drift):
        both = [made(name, {4: 100.0}, half) for name in "ab"]
        both = [
            msgspec.structs.replace(
                one, points=tuple(msgspec.structs.replace(p, drift=drift) for p in one.points)
            )
            for one in both
        ]
        return math.log1p(delta(compare(*both), "p4", "throughput").noise)

    own = BY_DRIFT / math.sqrt(2)
    assert noise(0.03, 0.0) == pytest.approx(math.sqrt(2) * math.hypot(0.03, own), rel=1e-2)
    assert noise(0.03, 0.028) == pytest.approx(math.sqrt(2) * 0.03, rel=1e-2)  # more than usual
    assert noise(0.012, 0.01) == pytest.approx(math.sqrt(2) * math.hypot(0.002, own), rel=1e-2)


@pytest.mark.parametrize(
    ("name", "unit", "drifts"),
    [
        ("device_memory", "B", False),
        ("kernels_per_step", "kernels", False),
        ("step_time", "ns", True),
        ("busy", "share", True),
    ],
)
def test_counts_and_memory_do_not_drift(name, unit, drifts):
    def of(value):
        return {name: Figure(value=value, unit=unit, low=value, high=value)}

    (found,) = changes(of(8e9), of(8.1e9), 1.0)
    assert found.significant is not drifts
    assert found.noise == (pytest.approx(math.expm1(BY_DRIFT)) if drifts else 0.0)


def test_noise_without_a_bound_is_never_significant():
    comparison = compare(made("a", {4: 100.0}, half=0.02), made("b", {4: 60.0}, half=1.0))
    found = delta(comparison, "p4", "throughput")
    assert (found.significant, found.unbounded, found.noise) == (False, True, None)
    assert breaches(comparison, parse("throughput<-5%")) == ()


def test_what_was_asked_differently_is_said():
    info = {
        "id": "x",
        "path": "x",
        "kind": "scan",
        "created": "",
        "profharness": "0",
        "argv": (),
        "state": "done",
    }
    a = made(
        "a",
        {4: 1.0},
        run=RunInfo(
            **info,
            device="one",
            asked={"model": "particlenet", "threads": "2"},
            versions={"torch": "2.1"},
        ),
    )
    b = made(
        "b",
        {4: 1.0},
        run=RunInfo(
            **info, device="one", asked={"model": "other", "trials": "5"}, versions={"torch": "2.1"}
        ),
    )
    comparison = compare(a, b)
    assert {one.name: (one.a, one.b) for one in comparison.asked} == {
        "model": ("particlenet", "other"),
        "threads": ("2", None),
        "trials": (None, "5"),
    }
    assert comparison.ran_on == ()
    assert compare(a, made("loose", {4: 1.0})).asked == ()


def test_a_scans_settings_are_what_was_asked():
    scan = ScanRecord(
        name="particlenet",
        settings={
            "model": "m.onnx",
            "batch_sizes": [1, 4],
            "output": "traces",
            "threads": None,
            "shape": {"x": [3, 5]},
        },
    )
    node = NodeRecord(host="n", variables={"OMP_NUM_THREADS": "2", "LANG": "C"})
    assert run_info(manifest(scan=scan, nodes=(node,)), "x").asked == {
        "variable OMP_NUM_THREADS": "2",
        "scan": "particlenet",
        "model": "m.onnx",
        "batch_sizes": "1, 4",
        "shape": "x:3, 5",
    }
    command = manifest(kind="command", scan=None, command=("python", "train.py"), nodes=())
    assert run_info(command, "x").asked == {
        "command": "python train.py",
        "capture": "default",
        "ranks": "1",
    }


def test_points_of_one_run_only_and_failures():
    broken = made("b", {8: 10.0, 16: 10.0})
    broken = msgspec.structs.replace(
        broken, points=(msgspec.structs.replace(broken.points[0], state="failed"), broken.points[1])
    )
    comparison = compare(made("a", {4: 1.0, 8: 10.0}), broken)
    assert (comparison.only_a, comparison.only_b, comparison.failed) == (("p4",), ("p16",), ("p8",))


def test_hotspots_by_name():
    def table(rows):
        return Hotspots(
            by="kernel",
            total_ns=sum(t for _, t in rows.values()),
            rows=tuple(
                HotspotRow(
                    name=name,
                    category="gemm",
                    calls=c,
                    total_ns=t,
                    share=0.5,
                    mean_ns=t / c,
                    median_ns=t / c,
                    min_ns=1,
                    max_ns=t,
                    std_ns=0.0,
                )
                for name, (c, t) in rows.items()
            ),
        )

    comparison = compare(
        made("a", {}, hotspots=(table({"x": (10, 1000), "y": (1, 50)}),)),
        made("b", {}, hotspots=(table({"x": (10, 1500), "z": (2, 100)}),)),
    )
    rows = {row.name: row for row in comparison.hotspots[0].rows}
    assert list(rows) == ["x", "z", "y"]
    assert rows["x"].change == pytest.approx(0.5)
    assert rows["y"].calls_b is None
    assert rows["z"].mean_a_ns is rows["z"].change is None


def test_simultaneous_bound():
    assert simultaneous(1) == pytest.approx(1.96, abs=1e-3)
    assert simultaneous(10) == pytest.approx(2.80, abs=0.01)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("throughput<-5%", [("throughput", "<", -0.05, True)]),
        (
            " latency_p99 >= 2 % , latency>0.5",
            [("latency_p99", ">=", 0.02, True), ("latency", ">", 0.5, False)],
        ),
        (
            "busy<=-.1 or throughput<-10%",
            [("busy", "<=", -0.1, False), ("throughput", "<", -0.1, True)],
        ),
        ("floor_time>1%", [("floor_time", ">", 0.01, True)]),
    ],
)
def test_expressions(text, expected):
    assert [(one.name, one.sign, one.bound, one.relative) for one in parse(text)] == [
        (name, sign, pytest.approx(bound), relative) for name, sign, bound, relative in expected
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "throughput",
        "<5%",
        "throughput<",
        "throughput<5%%",
        "throughput=5",
        "throughput<5 items",
        "throughput<1e400x",
        "5<throughput",
        "throughput<-5%,",
        "throughput<-5% and latency>1",
        "__import__('os')",
        "throughput<nan",
        "throughput<(1)",
        "a.b<1",
        "throughput<-5%;x",
        "Throughput<1%",
    ],
)
def test_nonsense_is_refused(text):
    with pytest.raises(UsageError, match="--fail-on") as caught:
        parse(text)
    assert "throughput<-5%" in caught.value.hint


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_conditions_or_a_usage_error(text):
    try:
        assert parse(text)
    except UsageError:
        pass


def gate(text, change, significant):
    one = Delta(
        name="throughput",
        unit="items/s",
        a=100.0,
        b=100 * (1 + change),
        change=change,
        significant=significant,
    )
    return breaches(
        Comparison(run_a="a", run_b="b", points=(PointComparison(point="p", deltas=(one,)),)),
        parse(text),
    )


def test_the_gate_asks_for_more_than_noise():
    assert [one.point for one in gate("throughput<-5%", -0.08, True)] == ["p"]
    assert gate("throughput<-5%", -0.08, False) == ()
    assert gate("throughput<-5%", -0.03, True) == ()
    assert gate("throughput<-5%", 0.08, True) == ()
    with pytest.raises(UsageError, match="no noise bound"):
        gate("throughput<-5%", -0.08, None)
    assert len(gate("throughput<-5", -0.08, True)) == 1
    assert gate("throughput<-9", -0.08, True) == ()
    assert gate("throughput<-5%", -0.08, True)[0].condition == "throughput<-5%"


def test_a_gate_on_nothing_is_refused():
    with pytest.raises(UsageError, match="'jets'"):
        gate("jets<-5%", 0.0, False)
    with pytest.raises(UsageError, match="no 'throughput' in common"):
        breaches(compare(made("a", {4: 1.0}), made("b", {8: 1.0})), parse("throughput<-5%"))


def test_without_intervals_nothing_is_called_significant():
    a = Summary(
        source="a",
        trace=TraceCounts(),
        points=(PointSummary(point="p", throughput=10.0, latency_ms=2.0),),
    )
    b = Summary(
        source="b",
        trace=TraceCounts(),
        points=(PointSummary(point="p", throughput=12.0, throughput_sem=0.1, latency_ms=1.0),),
    )
    found = delta(compare(a, b), "p", "throughput")
    assert (found.significant, found.noise) == (None, None)
    assert found.change == pytest.approx(0.2)
    assert np.isfinite(found.a)


@pytest.mark.parametrize(
    ("names_a", "names_b", "devices", "other"),
    [
        (("gemm",), ("sort",), ("MI300X", "MI300X"), True),
        (("gemm",), ("sort",), ("MI300X", "H100"), False),  # every vendor has names of its own
        (("gemm", "fill"), ("sort", "fill"), ("MI300X", "MI300X"), False),
        (("gemm",), ("sort",), ("", ""), False),
    ],
)
def test_kernels_of_one_device_tell_that_two_traces_are_of_different_work(
    names_a, names_b, devices, other
):
    def side(name, kernels, device):
        rows = tuple(
            HotspotRow(
                name=kernel,
                category="other",
                calls=1,
                total_ns=50,
                share=1 / len(kernels),
                mean_ns=50.0,
                median_ns=50.0,
                min_ns=50,
                max_ns=50,
                std_ns=0.0,
            )
            for kernel in kernels
        )
        rate = Figure(value=5.0, unit="steps/s")
        return Summary(
            source=name,
            trace=TraceCounts(),
            metrics={"steps_per_second": rate},
            hotspots=(Hotspots(by="kernel", total_ns=50 * len(rows), rows=rows),),
            device_names=(device,) if device else (),
        )

    a, b = side("a", names_a, devices[0]), side("b", names_b, devices[1])
    found = with_work(compare(a, b), (a, None), (b, None))
    assert (found.other_work is not None) is other
    words = list(comparison_lines(found, ()))
    assert any("A and B do different work" in line for line in words[:3]) is other
    assert (found.run[0].better == "neither") is other
