"""Each criterion on summaries made by hand: what it reads first, what decides, and when it does
not judge.
"""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.axes.records import AxesScan, AxisCurve, AxisLevels, PointRate
from profharness.analysis.certificate.criteria import CRITERIA
from profharness.analysis.certificate.criterion import at_least
from profharness.analysis.certificate.judge import judge, outcome_of
from profharness.analysis.certificate.records import Judged, Judgement, State
from profharness.analysis.certificate.subject import subject_of
from profharness.analysis.curves.records import Series
from profharness.analysis.records import (
    Figure,
    PointSummary,
    ProblemRow,
    Summary,
    TelemetryRow,
    TraceCounts,
)
from profharness.analysis.verdict.records import Verdict
from profharness.findings import finding
from profharness.rundir.manifest import DeviceRecord, Manifest, NodeRecord, PointRecord
from profharness.stats.bootstrap import Z95

STATES: tuple[State, ...] = ("met", "not met", "not judged", "not applicable")


def manifest(device: str = "cuda:0", **changes: object) -> Manifest:
    node = NodeRecord(
        host="n",
        cpu_model="CPU",
        devices=(DeviceRecord(index=0, kind="cuda", name="GPU", driver="1"),),
        versions={"torch": "2"},
    )
    known = {
        "id": "r",
        "created": "",
        "profharness": "0",
        "kind": "scan",
        "argv": (),
        "state": "done",
        "nodes": (node,),
        "points": (PointRecord(id="p", pass_name="bare", device=device),),
    }
    return Manifest(**(known | changes))


def judged(
    criterion: str,
    figures: dict[str, float | Figure] | None = None,
    *,
    of: Manifest | None = None,
    series: tuple[Series, ...] = (),
    verdict: Verdict | None = None,
    **of_summary: object,
) -> Judged:
    """One criterion of the point `p`, whose figures are shares."""
    metrics = {
        name: figure if isinstance(figure, Figure) else Figure(value=figure, unit="share")
        for name, figure in (figures or {}).items()
    }
    point = PointSummary(
        point="p",
        backend="torch",
        concurrency=8,
        throughput=100.0,
        metrics=metrics,
        verdict=verdict,
    )
    summary = Summary(source="r", trace=TraceCounts(), points=(point,), series=series, **of_summary)
    return judge(subject_of(of or manifest(), summary)).named(criterion)


def curve(throughput: dict[float, float], *kinds: str) -> Series:
    return Series(
        key={"backend": "torch"},
        axis="concurrency",
        levels=tuple(throughput),
        throughput=tuple(throughput.values()),
        throughput_sem=(0.1,) * len(throughput),
        findings=tuple(finding(kind, "made up") for kind in kinds),
    )


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_an_interval_decides_only_as_a_whole(one, two, three):
    low, value, high = sorted((one, two, three))
    found = at_least(0.5, value, low, high)
    assert (found == "met") == (low >= 0.5)
    assert (found == "not met") == (high < 0.5)


@pytest.mark.parametrize(
    ("throughput", "kinds", "state"),
    [
        ({1: 20, 8: 100, 16: 101}, (), "met"),
        ({1: 20, 8: 100, 16: 150}, (), "not met"),
        ({1: 20, 4: 80, 8: 100}, (), "not judged"),  # nothing beyond
        ({1: 20, 8: 100, 12: 100}, (), "not judged"),  # not twice as far
        ({1: 20, 8: 100, 9: 95}, ("falls-after-peak",), "met"),
    ],
)
def test_a_scan_of_clients_shows_its_plateau_by_going_on(throughput, kinds, state):
    assert judged("plateau", series=(curve(throughput, *kinds),)).state == state


def over_axes(
    rates: dict[tuple[int, str], float], spread: float = 0.01, point: str = "", axis: str = "n"
) -> Judgement:
    """A scan over an axis of numbers and `how`, whose rates have intervals of this relative half width."""
    points = tuple(
        PointRate(
            point=f"torch@n{n}-how{how}",
            parameters={axis: n, "how": how},
            throughput=rate,
            low=rate * (1 - spread),
            high=rate * (1 + spread),
        )
        for (n, how), rate in rates.items()
    )
    curves = tuple(
        AxisCurve(
            key={"how": how},
            axis=axis,
            levels=tuple(float(one.parameters[axis]) for one in along),
            throughput=tuple(one.throughput for one in along),
            throughput_sem=tuple(one.throughput * spread / Z95 for one in along),
            points=tuple(one.point for one in along),
        )
        for how in dict.fromkeys(how for _, how in rates)
        if len(along := [one for one in points if one.parameters["how"] == how]) > 1
    )
    axes = AxesScan(
        axes=(
            AxisLevels(name=axis, values=tuple(sorted({n for n, _ in rates})), is_number=True),
            AxisLevels(name="how", values=("a", "b"), is_number=False),
        ),
        unit="items",
        points=points,
        best=max(points, key=lambda one: one.throughput).point,
        curves=curves,
    )
    summary = Summary(
        source="r",
        trace=TraceCounts(),
        points=tuple(
            PointSummary(point=one.point, throughput=one.throughput, parameters=one.parameters)
            for one in points
        ),
        axes=axes,
    )
    return judge(subject_of(manifest(), summary, point))


FLAT = {(1, "a"): 50.0, (2, "a"): 97.0, (4, "a"): 96.0, (1, "b"): 40.0, (2, "b"): 60.0}


def test_a_scan_over_axes_is_at_its_plateau_where_more_of_no_axis_gives_more():
    found = over_axes(FLAT)
    assert found.answer.startswith("Whether GPU at n 2, how a is saturated")
    plateau = found.named("plateau")
    assert (plateau.state, plateau.value) == ("met", 1.0)
    assert "along n" in plateau.text


@pytest.mark.parametrize(
    ("rates", "point", "state", "told"),
    [
        (FLAT | {(4, "a"): 150.0}, "torch@n2-howa", "not met", "64.7 % of the plateau along n"),
        (FLAT | {(4, "a"): 99.0}, "", "not judged", "beyond the scan, whose largest level is 4"),
        (FLAT | {(2, "b"): 199.0}, "torch@n2-howa", "not met", "at n 2, how b"),
        (FLAT | {(4, "a"): 105.0}, "torch@n2-howa", "not judged", "reaches over the threshold"),
        ({(2, "a"): 97.0, (1, "b"): 40.0}, "", "not judged", "at one value alone"),
    ],
    ids=["more gives more", "open end", "another text is faster", "unsure", "one value"],
)
def test_the_worst_axis_decides_and_is_named(rates, point, state, told):
    spread = 0.03 if told.startswith("reaches") else 0.001
    plateau = over_axes(rates, spread, point).named("plateau")
    assert plateau.state == state
    assert told in plateau.text


def test_a_larger_power_cap_is_not_more_load():
    found = over_axes(FLAT, axis="power-cap")
    assert "at power-cap 2, how a" in found.answer
    plateau = found.named("plateau")
    assert plateau.state == "not judged"
    assert "makes more load" in plateau.text


def test_the_bare_pass_speaks_before_the_traced_one_and_the_driver():
    figures = {"busy_bare": 0.95, "busy": 0.5, "gpu_percent": 100.0}
    found = judged("busy", figures)
    assert (found.state, found.value) == ("met", 0.95)
    del figures["busy_bare"]
    assert judged("busy", figures).state == "not judged"  # the profiler's cost is not known
    assert judged("busy", figures | {"busy": 0.4}).state == "not met"  # nor would it explain this
    assert judged("busy", figures | {"busy": 0.92}).state == "met"
    del figures["busy"]
    found = judged("busy", figures)
    assert (found.state, found.value) == ("met", 1.0)


def test_passes_of_other_kernels_do_not_say_how_busy_the_device_was():
    differ = (finding("kernels-differ", "made up", point="p"),)
    assert judged("busy", {"busy_bare": 0.95}, findings=differ).state == "not judged"


def test_the_figures_of_all_points_together_say_nothing_of_one():
    whole = {"fill_busy": Figure(value=1.0, unit="share")}
    assert judged("fill", metrics=whole).state == "not judged"


def test_few_waves_do_not_show_that_a_device_is_not_full():
    assert judged("fill", {"wave_fill": 0.8}).state == "met"
    assert judged("fill", {"wave_fill": 0.2}).state == "not judged"
    assert judged("fill", {"wave_fill": 0.8, "cu_active": 0.2}).state == "not met"


@pytest.mark.parametrize(
    ("figures", "kind", "state"),
    [
        ({"flops_of_ceiling": 0.7}, "idle-host-not-ready", "met"),
        ({"bandwidth_share": 0.7, "flops_of_ceiling": 0.1}, "", "met"),
        ({"compute_bound": 0.3, "bandwidth_bound": 0.3}, "compute", "met"),
        ({"compute_bound": 0.3, "bandwidth_bound": 0.1}, "compute", "not judged"),
        ({"power_saturation": 0.97}, "inside-kernel", "met"),
        ({"power_saturation": 0.9}, "inside-kernel", "not met"),
        ({"flops_of_ceiling": 0.2}, "communication", "not met"),
        ({"flops_of_ceiling": 2.96}, "", "not judged"),
        ({"bandwidth_share": 2.96}, "", "not judged"),
        ({"roofline_share": 2.96, "flops_of_ceiling": 0.2}, "", "not judged"),
        ({"bandwidth_share": 2.96, "flops_of_ceiling": 0.7}, "", "met"),
        ({"flops_of_ceiling": 0.2}, "undetermined", "not judged"),
        ({"flops_of_ceiling": 0.2}, "", "not judged"),
        ({}, "kernels", "not judged"),
    ],
)
def test_a_limit_is_a_ceiling_or_the_power_cap(figures, kind, state):
    verdict = Verdict(kind=kind, text="", evidence="made up") if kind else None
    assert judged("limiter", figures, verdict=verdict).state == state


def test_errors_on_other_points_are_not_of_this_one():
    def of(point: str | None) -> State:
        return judged("findings", findings=(finding("warmup-leak", "x", point=point),)).state

    assert of("q") == "met"
    assert of("p") == "not met"
    assert of(None) == "not met"


def test_warnings_withhold_nothing():
    assert judged("findings", findings=(finding("drift", "x"),)).state == "met"
    row = ProblemRow(source="f", severity="warning", count=1, message="")
    assert judged("files", problems=(row,)).state == "met"
    error = msgspec.structs.replace(row, severity="error")
    assert judged("files", problems=(error,)).state == "not met"


def test_a_failed_command():
    failed = manifest(kind="command", exit_status=1)
    assert judged("whole", of=failed).state == "not met"


def test_what_is_not_recorded_is_named():
    bare = manifest(
        nodes=(NodeRecord(host="n", devices=(DeviceRecord(index=0, kind="cuda", name="G"),)),)
    )
    found = judged("versions", of=bare)
    assert found.state == "not judged"
    assert "the driver's version and the versions of the software" in found.text


def limit(low: float, high: float) -> TelemetryRow:
    return TelemetryRow(
        metric="power_limit", unit="W", device="0", mean=high, low=low, high=high, samples=9
    )


def test_the_cap_of_each_device_has_to_stay():
    assert judged("cap", telemetry=(limit(300, 300), limit(400, 400))).state == "met"
    assert judged("cap", telemetry=(limit(400, 400), limit(300, 400))).state == "not met"


def test_throttling_by_the_power_limit_is_no_fault():
    held = {"throttle_power": 1.0, "throttle_thermal": 0.0}
    assert judged("clocks", held).state == "met"
    assert judged("clocks", held | {"throttle_external": 0.5}).state == "not met"


def test_a_condition_may_be_known_of_the_run_alone():
    others = {"gpu_processes_other": Figure(value=2.0, unit="processes")}
    assert judged("others", metrics=others).state == "not met"


def test_a_cpu_has_no_units_clock_and_cap_that_are_judged():
    cpu = manifest("cpu")
    for name in ("fill", "clocks", "cap"):
        assert judged(name, of=cpu).state == "not applicable"
    cores = {"cores_used": 7.9, "cores_allowed": 8.0}
    assert judged("busy", cores, of=cpu).state == "met"
    assert judged("busy", cores | {"cores_used": 4.0}, of=cpu).state == "not met"


def combined(trust: State, saturation: State, conditions: State) -> str:
    return outcome_of(
        [
            Judged(id="t", group="trust", state=trust, text=""),
            Judged(id="m", group="saturation", state="met", text=""),
            Judged(id="s", group="saturation", state=saturation, text=""),
            Judged(id="c", group="conditions", state=conditions, text=""),
        ]
    )


@pytest.mark.parametrize("states", list(itertools.product(STATES, repeat=3)))
def test_the_outcome_follows_the_documented_order(states):
    trust, saturation, conditions = states
    found = combined(*states)
    if "not met" in (trust, conditions):
        assert found == "not trusted"
    elif trust == "not judged":
        assert found == "undecided"
    elif saturation in ("not met", "not judged"):
        assert found == {"not met": "not saturated", "not judged": "undecided"}[saturation]
    else:
        assert found == "saturated"


def test_each_criterion_is_judged_and_has_its_own_name():
    point = PointSummary(point="p", throughput=1.0)
    summary = Summary(source="r", trace=TraceCounts(), points=(point,))
    found = judge(subject_of(manifest(), summary))
    assert [one.id for one in found.judged] == [one.id for one in CRITERIA]
    assert len({one.id for one in CRITERIA}) == len(CRITERIA)
