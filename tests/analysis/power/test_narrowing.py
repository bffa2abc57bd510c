"""Telemetry of the window narrows what the records leave open."""

from __future__ import annotations

import pytest

from profharness.analysis.power.narrowing import MIN_SAMPLES, narrowed
from profharness.analysis.records import Summary
from profharness.analysis.summarise import summarise_trace
from profharness.report.text.metrics import metrics_text
from profharness.stats.streams import streams
from tests.analysis.test_ranges import MS, US, steps_of


def sampled(percent: float, *, metric: str = "gpu_percent", every: int = MS) -> Summary:
    """Ten steps, of which 60 of 76 ms are open, and a sample at each ms."""
    scene = steps_of(10 * MS, 60 * MS, 5 * MS, count=10)
    for at in range(0, 760 * MS, every):
        scene.sample(metric, at, at, percent, device=0)
    trace = scene.build()
    return narrowed(summarise_trace(trace, "made.json"), trace, streams(trace))


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
    assert ends(found, "busy") == pytest.approx((low, 0.3))
    assert ends(found, "idle") == pytest.approx((0.7, 1 - low))
    assert ends(found, "compute")[1] == pytest.approx(0.3)
    split = found.partition
    assert split is not None
    assert plain.partition is not None
    assert split.idle_or_not_recorded_ns == pytest.approx((0.3 - low) * split.window_ns, abs=1)
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
    trace = scene.build()
    found = narrowed(summarise_trace(trace, "made.json"), trace, streams(trace))
    # 50 of 100 samples say 100 %: 0.5 +- 2 * 0.05
    assert ends(found, "busy")[1] == pytest.approx(0.6, abs=0.01)
