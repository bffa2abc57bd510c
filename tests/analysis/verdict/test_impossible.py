"""What cannot be is told, and no verdict is built on it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from profharness.analysis.records import Figure, Partition
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.verdict.impossible import impossible_figures
from profharness.trace.model import Trace
from tests.analysis.scene import Scene

SPLIT = Partition(
    window_ns=100, compute_ns=60, exposed_communication_ns=0, exposed_copy_ns=10, idle_ns=30
)


def scene() -> Trace:
    made = Scene()
    for at in range(0, 1000, 100):
        made.kernel(at, at + 60, op=made.op("aten::mm", at, at + 10), name="gemm")
    return made.build()


def found(trace: Trace) -> list[str]:
    summary = summarise_trace(trace, "made up")
    return [one.message for one in summary.findings if one.id == "impossible-figures"]


def test_of_a_sound_trace_nothing_is_said() -> None:
    assert found(scene()) == []
    assert list(impossible_figures({}, SPLIT)) == []


def test_records_that_cannot_be_withhold_the_verdict() -> None:
    trace = scene()
    sound = summarise_trace(trace, "made up").verdict
    lasting = trace.kernels.dur_ns.copy()
    lasting[3] = -100_000_000_000
    summary = summarise_trace(
        replace(trace, kernels=trace.kernels.with_columns(dur_ns=lasting)), "made up"
    )
    (said, *_) = [one for one in summary.findings if one.id == "impossible-figures"]
    assert said.message.endswith("cannot be: 1 kernels last less than no time")
    assert (said.severity, said.figures) == ("error", {"records": 1})
    assert sound is not None
    assert summary.verdict is None
    assert "records that cannot be" in summary.verdict_needs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"idle_ns": 31}, "the parts of the window are 101 ns of 100 ns"),
        ({"idle_ns": -30, "compute_ns": 120}, "compute is 120 ns of 100 ns; idle is -30 ns"),
    ],
)
def test_parts_sum_to_the_window(change: dict[str, int], words: str) -> None:
    (one,) = impossible_figures({}, msgspec.structs.replace(SPLIT, **change), "b4")
    assert words in one.message
    assert one.point == "b4"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("gpu_util", 1.01, "of a possible 1"),
        ("kernel_time", -5.0, "is -5"),
        ("mfu", float("inf"), "is inf"),
        ("mfu", float("nan"), "is nan"),
        ("gpu_util", 1.0, ""),
        ("mfu", None, ""),
    ],
)
def test_numbers_are_finite_and_not_below_zero(name: str, value: float, words: str) -> None:
    said = list(impossible_figures({name: Figure(value=value, unit="")}, None))
    assert [words in one.message for one in said] == ([True] if words else [])
