"""Why a point moved: each cause built by itself, and told with the effect that it has."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.compare.deltas import BY_DRIFT
from profharness.analysis.compare.reasons import Side, reasons
from profharness.analysis.compare.row_reasons import row_reason
from profharness.analysis.compare.runs import compare
from profharness.analysis.records import (
    Figure,
    HotspotRow,
    Hotspots,
    IdleCauses,
    Partition,
    PointKernel,
    PointSummary,
    Summary,
    TraceCounts,
)
from profharness.analysis.summarise import summarise_point, summarise_trace
from profharness.report.text.comparison import comparison_lines
from profharness.report.text.comparison import why as why_text
from tests.analysis.scene import Scene

T = 1000


def split(compute=600, communication=0, copy=0, **causes):
    """A window of 1000 ns; idle time that no cause is given for is the host's."""
    idle = T - compute - communication - copy
    told = {f"{name}_ns": value for name, value in causes.items()}
    told["host_not_ready_ns"] = told.get("host_not_ready_ns", 0) + idle - sum(told.values())
    return Partition(
        window_ns=T,
        compute_ns=compute,
        exposed_communication_ns=communication,
        exposed_copy_ns=copy,
        idle_ns=idle,
        communication_ns=communication,
        copy_ns=copy,
        idle_causes=IdleCauses(**told),
    )


def kernel(name, total, calls=10, share=1.0, workgroups=None):
    return PointKernel(name=name, calls=calls, total_ns=total, share=share, workgroups=workgroups)


def summary(rate, partition, kernels=(), half=0.01, **figures):
    metrics = {
        "throughput": Figure(
            value=rate, unit="items/s", low=rate * (1 - half), high=rate * (1 + half)
        )
    }
    metrics |= {
        name: Figure(value=value, unit="MHz" if name == "clock_gpu" else "share")
        for name, value in figures.items()
    }
    point = PointSummary(
        point="p", throughput=rate, metrics=metrics, partition=partition, kernels=tuple(kernels)
    )
    return Summary(source=f"{rate:g}", trace=TraceCounts(), points=(point,))


def why(a, b):
    return compare(a, b).points[0].reasons


def test_a_switched_kernel_is_named_with_what_it_costs():
    found = why(
        summary(
            100, split(600), [kernel("old_gemm", 500, share=0.83), kernel("same", 100, share=0.17)]
        ),
        summary(
            80, split(680), [kernel("new_gemm", 600, share=0.88), kernel("same", 80, share=0.12)]
        ),
    )
    assert found[0].kind == "kernels-switched"
    assert "gone: old_gemm (83.0 % of kernel time); new: new_gemm" in found[0].message
    assert found[0].effect == pytest.approx(1.25 * 0.6 - 0.5)
    noise = np.hypot(BY_DRIFT, np.hypot(0.01, 0.01))
    assert found[0].noise == pytest.approx(np.expm1(noise), rel=0.02)


def test_parts_that_go_the_way_of_the_change_come_first():
    """B takes 10 % longer although it idles less: its compute is what makes it slower."""
    comparison = compare(
        summary(110, split(500, launch_in_progress=500), [kernel("slow", 500)]),
        summary(100, split(727, launch_in_progress=273), [kernel("slow", 727)]),
    )
    found = comparison.points[0].reasons
    effects = [one.effect for one in found if one.effect is not None]
    assert effects[0] == pytest.approx(1.1 * 0.727 - 0.5)
    assert effects[1] == pytest.approx(1.1 * 0.273 - 0.5)
    assert sum(effects) == pytest.approx(0.1)
    assert why_text(comparison) == "Slow takes 1.45 times as long per call (+30.0 %)."
    back = compare(
        summary(100, split(727, launch_in_progress=273), [kernel("slow", 727)]),
        summary(110, split(500, launch_in_progress=500), [kernel("slow", 500)]),
    )
    assert why_text(back).startswith("Slow takes 0.69 times as long per call (-")


def test_a_kernel_that_takes_longer_and_one_that_is_called_more_often():
    # a trial of b lasts 1.6 windows of a: 16 calls in a's window are 10 in b's
    found = why(
        summary(100, split(600), [kernel("slow", 300, calls=16), kernel("often", 300, calls=16)]),
        summary(
            100 / 1.6, split(750), [kernel("slow", 375, calls=10), kernel("often", 375, calls=40)]
        ),
    )
    told = {one.message for one in found if one.kind in ("kernel-time", "kernel-calls")}
    assert told == {"slow takes 2.00 times as long per call", "often is called 4.00 times as often"}


def test_a_changed_launch_shape_is_told_with_the_kernel():
    found = why(
        summary(100, split(600), [kernel("k", 600, calls=20, workgroups=120)]),
        summary(50, split(800), [kernel("k", 800, calls=10, workgroups=64)]),
    )
    assert "with 64 workgroups instead of 120" in found[0].message


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("launch_in_progress", "launches in progress"),
        ("queued_gap", "gaps between queued kernels"),
        ("synchronisation", "synchronisation"),
        ("waiting_copy_or_event", "waiting on copies or events"),
        ("host_not_ready", "the host not ready"),
    ],
)
def test_more_idle_by_cause(cause, words):
    a, b = split(600, launch_in_progress=0), split(480, **{cause: 520})
    found = why(summary(100, a, [kernel("k", 600)]), summary(80, b, [kernel("k", 480)]))
    rise = next(one for one in found if one.effect and one.effect > 0)
    assert words in rise.message
    assert "rose" in rise.message


def test_exposed_communication_and_copies():
    found = why(
        summary(100, split(600), [kernel("k", 600)]),
        summary(50, split(300, communication=300, copy=200), [kernel("k", 300)]),
    )
    by_kind = {one.kind: one for one in found}
    assert by_kind["communication"].effect == pytest.approx(0.6)
    assert by_kind["copy"].effect == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("name", "before", "after", "kind", "words"),
    [
        ("clock_gpu", 1700.0, 1250.0, "clock", "the device's clock fell from 1700 MHz to 1250 MHz"),
        (
            "launch_bound",
            0.1,
            0.5,
            "launch-bound",
            "the launch-bound share rose from 10.0 % to 50.0 %",
        ),
        ("fill_busy", 0.9, 0.4, "fill", "fill while busy fell from 90.0 % to 40.0 %"),
        ("occupancy", 0.9, 0.4, "occupancy", "occupancy fell"),
        ("throttle_power", 0.0, 0.4, "throttled", "power limit rose"),
        ("throttle_thermal", 0.0, 0.4, "throttled", "temperature rose"),
    ],
)
def test_what_explains(name, before, after, kind, words):
    found = why(
        summary(100, split(600), **{name: before}), summary(50, split(600), **{name: after})
    )
    (told,) = [one for one in found if one.kind == kind]
    assert words in told.message
    assert told.effect is None
    assert not [
        one
        for one in why(
            summary(100, split(600), **{name: before}), summary(50, split(600), **{name: before})
        )
        if one.kind == kind
    ]


def test_intervals_that_meet_explain_nothing():
    a, b = (
        {"fill_busy": Figure(value=value, unit="share", low=0.2, high=0.9)} for value in (0.8, 0.4)
    )
    assert [
        one.kind
        for one in reasons(Side(1, split(600), a), Side(2, split(600), b), 0.01)
        if one.kind == "fill"
    ] == []


def test_within_the_noise_there_are_no_reasons():
    same = why(
        summary(100, split(600), clock_gpu=1700.0, half=0.05),
        summary(97, split(400), clock_gpu=1000.0, half=0.05),
    )
    assert same == ()


def test_an_effect_within_the_noise_is_not_told():
    found = why(
        summary(
            100, split(600, launch_in_progress=0, queued_gap=100), [kernel("k", 600)], half=0.05
        ),
        summary(
            60, split(600, launch_in_progress=20, queued_gap=80), [kernel("k", 600)], half=0.05
        ),
    )
    assert not [one for one in found if "launches in progress" in one.message]


def test_a_faster_run_has_reasons_too():
    found = why(
        summary(100, split(300), [kernel("k", 300)]), summary(200, split(600), [kernel("k", 600)])
    )
    assert found[0].effect == pytest.approx(-0.5)
    assert "fell from 70.0 % to 20.0 %" in found[0].message


@given(
    st.tuples(*[st.integers(0, 300)] * 3), st.tuples(*[st.integers(0, 300)] * 3), st.floats(0.3, 3)
)
def test_effects_of_the_parts_sum_to_the_change(before, after, stretch):
    from profharness.analysis.compare.reasons import _effects

    a, b = split(*before), split(*after)
    effects = _effects(Side(1.0, a, {}), Side(stretch, b, {}))
    assert sum(later - earlier for earlier, later in effects.values()) == pytest.approx(stretch - 1)


def traced(gemm="gemm", length=100, gap=20):
    made = Scene()
    for trial in range(4):
        begin = trial * 1000
        made.mark("trial", begin, begin + 1000, point="p")
        call = made.launch(begin, begin + 5)
        made.kernel(begin + gap, begin + gap + length, call, name=gemm, workgroups=20)
        made.kernel(
            begin + 900,
            begin + 910,
            made.launch(begin + 890, begin + 895),
            name="small",
            workgroups=1,
        )
    return made.build()


def test_a_points_kernels_come_from_its_trials():
    found = summarise_point(traced(), "p").kernels
    assert [(one.name, one.calls, one.total_ns, one.workgroups) for one in found] == [
        ("gemm", 4, 400, 20),
        ("small", 4, 40, 1),
    ]
    assert found[0].share == pytest.approx(400 / 440)


def test_loose_traces_are_compared_by_their_windows():
    a, b = (
        summarise_trace(traced(name, length), "x") for name, length in (("old", 100), ("new", 800))
    )
    a, b = (msgspec.structs.replace(one, points=(), metrics={}) for one in (a, b))
    text = "\n".join(
        comparison_lines(
            compare(
                a,
                msgspec.structs.replace(
                    b,
                    partition=msgspec.structs.replace(
                        b.partition, window_ns=2 * b.partition.window_ns
                    ),
                ),
            ),
            (),
        )
    )
    assert "why" in text
    assert "gone: old" in text


def row(name="k", calls=100, mean=1000.0, std=50.0, **more):
    return HotspotRow(
        name=name,
        category="gemm",
        calls=calls,
        total_ns=int(calls * mean),
        share=0.5,
        mean_ns=mean,
        median_ns=mean,
        min_ns=1,
        max_ns=2000,
        std_ns=std,
        **more,
    )


NONE = (Hotspots(by="kernel", total_ns=0, rows=()),) * 2


class TestRows:
    def test_noise_comes_from_the_calls(self):
        found = row_reason(row(), row(mean=1005.0), NONE, None)
        scatter = 1.959964 * np.hypot(0.005, 0.005 / 1.005)
        assert found.noise == pytest.approx(np.hypot(BY_DRIFT, scatter), rel=1e-6)
        assert found.significant is False
        assert row_reason(row(), row(mean=1200.0), NONE, None).significant is True
        assert row_reason(row(calls=1), row(mean=1200.0), NONE, None).significant is None

    def test_new_and_gone(self):
        assert row_reason(None, row(), NONE, None).message == "new"
        assert row_reason(row(), None, NONE, None).message == "gone"

    def test_calls_shape_fill(self):
        assert row_reason(row(), row(calls=150), NONE, None).message == "called 1.50 times as often"
        assert (
            "64 workgroups instead of 120"
            in row_reason(row(workgroups=120), row(workgroups=64), NONE, None).message
        )
        assert row_reason(row(fill=0.9), row(fill=0.4), NONE, None).message == "fill 0.90 -> 0.40"

    def test_of_a_launch_what_changed_is_named_and_nothing_else(self):
        def why(before, after):
            rows = (row(workgroups=number, workgroup_size=size) for number, size in (before, after))
            return row_reason(*rows, NONE, None).message

        small, large = (256, 1, 1), (512, 1, 1)
        size = "workgroups of 512x1x1 threads instead of 256x1x1"
        number = "launched with 64 workgroups instead of 120"
        assert why((120, small), (120, large)) == size
        assert why((120, small), (64, small)) == number
        assert why((120, small), (64, large)) == f"{number}; {size}"
        assert why((120, None), (120, large)) == ""  # one side does not say

    def test_a_kernel_that_follows_the_clock(self):
        assert (
            row_reason(row(), row(mean=1350.0), NONE, 0.74).message == "the clock is 0.74 times A's"
        )
        assert "clock" not in row_reason(row(), row(mean=1350.0), NONE, 1.4).message

    def test_an_operator_whose_kernels_switched(self):
        tables = tuple(
            Hotspots(by="op", total_ns=0, rows=(row(name, op="aten::mm"),))
            for name in ("old", "new")
        )
        found = row_reason(
            row("aten::mm", kernel_ns=10), row("aten::mm", kernel_ns=20), tables, None
        )
        assert found.message == "kernels switched: gone old; new new"

    def test_an_operator_on_the_host_or_the_device(self):
        assert (
            row_reason(row(kernel_ns=5000), row(mean=2000.0, kernel_ns=5000), NONE, None).message
            == "on the host: its kernels take as long as before"
        )
        assert (
            row_reason(row(kernel_ns=5000), row(mean=2000.0, kernel_ns=10_000), NONE, None).message
            == "its kernels take 2.00 times as long"
        )


def test_the_text_names_the_reason_below_the_point():
    text = "\n".join(
        comparison_lines(
            compare(
                summary(100, split(600), [kernel("old", 600)], clock_gpu=1700.0),
                summary(50, split(800), [kernel("new", 800)], clock_gpu=900.0),
            ),
            (),
        )
    )
    assert re.search(r"why +\+100\.0 %  gone: old", text)
    assert "the device's clock fell from 1700 MHz to 900 MHz" in text


def test_two_recorded_devices(shared):
    from profharness import readers

    a, b = (
        summarise_trace(readers.read(shared / f"fixtures/kineto/{name}.json.gz"), name)
        for name in ("mi300x_bert_small", "h100_bert_small")
    )
    found = compare(a, b).reasons
    assert {one.kind for one in found} >= {"kernels-switched", "idle", "fill"}
    assert "attn_fwd" in next(one.message for one in found if one.kind == "kernels-switched")
    assert sum(one.effect for one in found if one.effect) == pytest.approx(
        b.metrics["step_time"].value / a.metrics["step_time"].value - 1, abs=0.05
    )
