"""Counters of the hardware beside the split of a window: equal stretches of time, or the words that
say which.
"""

from __future__ import annotations

import msgspec
import pytest

from profharness.analysis.power.run_telemetry import CAPTURED_SAMPLES, rows
from profharness.analysis.records import Figure, Summary, TelemetryRow
from profharness.analysis.summarise import summarise_trace
from profharness.report.text.measured.counted import counted, gpu_percent
from profharness.stats.streams import streams
from profharness.trace.model import Trace
from tests.analysis.scene import Scene

MS = 1_000_000
EVERY = 100 * MS


def traced(kernel_ms: int) -> Trace:
    """A run of 11 s that is sampled every 100 ms: SM activity is 0.8 while a kernel of so many ms
    runs from 5 s on, and 0 else.
    """
    scene = Scene()
    begin, end = 5_000 * MS, (5_000 + kernel_ms) * MS
    scene.kernel(begin, end, scene.launch(begin - 10_000, begin - 5_000))
    for number in range(110):
        at = number * EVERY
        works = begin <= at and at + EVERY <= end
        for metric, value in (("sm_activity", 0.8 * works), ("gpu_percent", 99.0 * works)):
            scene.sample(metric, at, at + EVERY, value, device=0)
    return scene.build()


def summary(trace: Trace) -> Summary:
    return msgspec.structs.replace(
        summarise_trace(trace, "made"), telemetry=rows(trace, trace), devices=()
    )


def test_samples_of_the_window_are_compared_with_it() -> None:
    assert counted(summary(traced(2_000))) == (
        "Counters of the hardware meanwhile: GPU 99 %, SM activity 80.0 %."
    )


def test_a_window_that_is_too_short_for_samples_is_not_compared() -> None:
    assert counted(summary(traced(300))) == (
        "Counters of the hardware over the whole run of 10.9 s: GPU 3 %, SM activity 2.2 %."
    )


def test_a_window_needs_five_samples() -> None:
    by_length: dict[int, list[float | None]] = {}
    for samples in (CAPTURED_SAMPLES - 1, CAPTURED_SAMPLES):
        trace = traced(100 * samples)
        assert len(streams(trace)) == 2
        by_length[samples] = [row.captured for row in rows(trace, trace)]
    assert by_length[CAPTURED_SAMPLES - 1] == [None, None]
    assert by_length[CAPTURED_SAMPLES] == pytest.approx([99.0, 0.8])


def test_without_a_split_there_is_nothing_to_compare() -> None:
    alone = msgspec.structs.replace(summary(traced(300)), partition=None)
    assert counted(alone).startswith("Counters of the hardware: GPU 3 %")
    assert counted(msgspec.structs.replace(alone, telemetry=())) == ""


def test_the_driver_s_figure_says_which_time_it_is_of() -> None:
    """A device that is idle for most of a window, whose driver says 98 % over a much longer run."""
    trace = traced(300)
    partition = summarise_trace(trace, "made").partition
    assert partition is not None
    half = msgspec.structs.replace(partition, idle_ns=partition.window_ns // 2)
    row = TelemetryRow(
        metric="gpu_percent", unit="%", device="0", mean=98.0, low=98.0, high=98.0, samples=110,
        span_ns=10_900 * MS,
    )  # fmt: skip
    made = msgspec.structs.replace(
        summary(trace),
        partition=half,
        metrics={"gpu_percent": Figure(value=98.0, unit="%", source="telemetry")},
    )
    alone = msgspec.structs.replace(made, telemetry=())
    assert gpu_percent(alone) == 'The driver\'s "GPU %" said 98 meanwhile.'
    over_all = msgspec.structs.replace(made, telemetry=(row,))
    assert gpu_percent(over_all) == 'The driver\'s "GPU %" said 98 over the whole run of 10.9 s.'
    inside = msgspec.structs.replace(row, captured=50.0)
    assert gpu_percent(msgspec.structs.replace(made, telemetry=(inside,))) == ""
