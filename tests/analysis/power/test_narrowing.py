"""Telemetry of the window narrows what the records leave open."""

from __future__ import annotations

import pytest

from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.metrics import IDLE_CAUSES
from profharness.analysis.power.narrowing import MIN_SAMPLES
from profharness.analysis.records import Summary
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time import idle
from profharness.report.text.metrics import metrics_text
from profharness.stats.streams import streams
from profharness.trace.model import Source, Trace
from tests.analysis.run.test_steps import of_command
from tests.analysis.test_ranges import MS, US, steps_of


def sampled(percent: float, *, metric: str = "gpu_percent", every: int = MS) -> Summary:
    """Ten steps, of which 60 of 76 ms are open, and a sample at each ms."""
    scene = steps_of(10 * MS, 60 * MS, 5 * MS, count=10)
    for at in range(0, 760 * MS, every):
        scene.sample(metric, at, at, percent, device=0)
    return of_run(scene.build())


def of_run(trace: Trace) -> Summary:
    """The summary beside the run's telemetry, which the scene holds."""
    return summarise_trace(trace, "made.json", yardstick=Yardstick(telemetry=streams(trace)))


def ends(summary: Summary, name: str) -> tuple[float, float]:
    figure = summary.metrics[name]
    assert figure.value is None
    assert figure.low is not None
    assert figure.high is not None
    return float(figure.low), float(figure.high)


def test_a_device_was_busy_for_at_most_what_the_driver_says():
    plain = summarise_trace(steps_of(10 * MS, 60 * MS, 5 * MS, count=10).build(), "made.json")
    low, high = ends(plain, "busy")
    assert high - low > 0.75
    found = sampled(30)
    # the driver's 30 % may be 31 %
    assert ends(found, "busy") == pytest.approx((low, 0.31))
    assert ends(found, "idle") == pytest.approx((0.69, 1 - low))
    assert ends(found, "compute")[1] == pytest.approx(0.31)
    split = found.partition
    assert split is not None
    assert plain.partition is not None
    assert split.idle_or_not_recorded_ns == pytest.approx((0.31 - low) * split.window_ns, abs=1)
    assert split.idle_ns + split.idle_or_not_recorded_ns == (
        plain.partition.idle_ns + plain.partition.idle_or_not_recorded_ns
    )
    assert split.idle_causes is not None
    assert split.idle_causes.macro_ns + split.idle_causes.micro_ns == split.idle_ns
    assert "the driver's GPU % is 30.0 % in the window" in metrics_text(found)


def test_it_was_busy_for_at_least_what_counters_of_the_hardware_say():
    low, high = ends(sampled(0.5, metric="cu_active"), "busy")
    assert low == pytest.approx(0.5)
    assert high > 0.85
    assert ends(sampled(0.5, metric="cu_active"), "idle")[1] == pytest.approx(0.5)


def test_what_says_nothing_changes_nothing():
    plain = ends(sampled(100), "busy")
    assert plain == ends(sampled(30, every=760 * MS // (MIN_SAMPLES - 2)), "busy")
    assert plain == ends(sampled(30, metric="power_w"), "busy")
    assert plain[1] > 0.85


def test_a_scattered_percentage_bounds_by_its_error():
    scene = steps_of(10 * MS, 60 * MS, 5 * MS, count=10)
    for number in range(100):
        scene.sample(
            "gpu_percent", number * 7 * MS + US, number * 7 * MS + US, 100 * (number % 2), device=0
        )
    # 50 of 100 samples say 100 %: 0.5 +- 2 * 0.05, and the resolution
    assert ends(of_run(scene.build()), "busy")[1] == pytest.approx(0.61, abs=0.01)


def test_the_figures_of_the_causes_sum_to_the_idle_time():
    found = sampled(30)
    split = found.partition
    assert split is not None
    causes = [found.metrics[f"idle_{name}"].value or 0.0 for name in IDLE_CAUSES]
    assert sum(causes) == pytest.approx(split.idle_ns / split.window_ns)
    assert ends(found, "idle")[0] == pytest.approx(sum(causes))
    gaps = [found.metrics[f"idle_{name}_gaps"].value or 0.0 for name in ("micro", "macro")]
    assert sum(gaps) == pytest.approx(sum(causes))


def test_a_range_that_closes_is_a_value():
    found = sampled(0)
    split = found.partition
    assert split is not None
    assert split.idle_or_not_recorded_ns == 0
    for name in ("busy", "idle", "compute"):
        figure = found.metrics[name]
        assert figure.value is not None
        assert "the driver's GPU % is 0.0 % in the window" in figure.note
    assert found.metrics["idle"].value == split.idle_ns / split.window_ns
    counted = sampled(1, metric="cu_active")
    assert counted.metrics["busy"].value == pytest.approx(1 - counted.metrics["idle"].value)
    assert ends(counted, "compute")[1] > 0.85


def test_each_point_is_narrowed_in_its_own_windows():
    scene = steps_of(10 * MS, 60 * MS, 5 * MS, count=10)
    for place, point in enumerate(("a", "b")):
        begin = 380 * MS * place
        scene.mark("trial", begin, begin + 380 * MS, point=point)
        for at in range(begin, begin + 380 * MS, MS):
            scene.sample("gpu_percent", at, at, 30 + 20 * place, device=0)
    points = {one.point: one for one in of_run(scene.build()).points}
    assert points["a"].metrics["busy"].high == pytest.approx(0.31)
    assert points["b"].metrics["busy"].high == pytest.approx(0.51)
    for one in points.values():
        assert one.partition is not None
        assert one.metrics["idle"].low == one.partition.idle_ns / one.partition.window_ns


def test_what_is_searched_for_unrecorded_work_is_searched_once(
    monkeypatch: pytest.MonkeyPatch,
):
    calls = []
    real = idle.not_recorded
    monkeypatch.setattr(idle, "not_recorded", lambda *args: calls.append(args[2]) or real(*args))
    assert sampled(30).partition is not None
    assert calls == [0]


def test_the_telemetry_of_a_run_narrows_its_figures_and_its_verdict():
    scene = steps_of(10 * MS, 60 * MS, 5 * MS, count=10)
    scene.sources = (Source("a.json", "kineto", pid=7, pass_name="torch"),)
    for at in range(0, 760 * MS, MS):
        scene.sample("gpu_percent", at, at, 30.0, device=0)
    found = summarise_run(of_command(), scene.build(), "run")
    assert found.metrics["busy"].high == pytest.approx(0.31)
    assert found.partition is not None
    assert found.partition.idle_ns == pytest.approx(0.69 * found.partition.window_ns, abs=1)
