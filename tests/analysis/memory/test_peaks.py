"""Peaks of torch's allocator against a count by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.measurement import Measurement
from profharness.analysis.memory import peaks as allocator
from profharness.analysis.metrics import figures
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Samples, Source, Strings, Trace
from profharness.trace.sample_metrics import HSA_ALLOCATED, TORCH_ALLOCATED, TORCH_RESERVED

Row = tuple[int, int, float]


def trace_of(rows: list[Row], metric: str = TORCH_ALLOCATED) -> Trace:
    """Rows of (ns, device, bytes)."""
    strings = Strings()
    at = np.array([row[0] for row in rows], np.int64)
    samples = Samples.build(
        at_ns=at,
        until_ns=at,
        device=np.array([row[1] for row in rows], np.int64),
        metric=np.full(len(rows), strings.code(metric), np.int64),
        value=np.array([row[2] for row in rows], np.float64),
        source=0,
    )
    devices = (Device(index="4"), Device(index="7"))
    return Trace((Source("t.json", "kineto"),), strings, devices=devices, samples=samples)


def measured(trace: Trace, start: int, end: int) -> Measurement:
    return Measurement(trace, Windows(intervals.window(start, end), "a window"))


def test_what_was_taken_before_the_window_counts_in_it() -> None:
    trace = trace_of([(0, 0, 50.0), (10, 0, 20.0), (30, 0, 90.0)])
    compute = allocator.peak(TORCH_ALLOCATED, of_host=False)
    assert compute(measured(trace, 5, 25)).value == 50.0
    assert compute(measured(trace, 10, 30)).value == 20.0
    assert compute(measured(trace, 40, 50)).value == 90.0
    assert compute(measured(trace, 40, 50)).unit == "B"


def test_host_and_devices_have_their_own_peaks() -> None:
    trace = trace_of([(0, NULL, 900.0), (1, 0, 5.0), (2, 1, 7.0), (3, 1, 1.0)])
    found = figures(measured(trace, 0, 10))
    assert found["torch_host_allocated_peak"].value == 900.0
    assert found["torch_allocated_peak"].value == 7.0
    assert found["torch_allocated_peak_4"].value == 5.0
    assert found["torch_allocated_peak_7"].value == 7.0
    assert found["torch_reserved_peak"].value is None
    assert "on a device" in found["torch_reserved_peak"].needs


@pytest.mark.parametrize(
    ("devices", "names"),
    [
        ((Device("0", "n0", rank=0), Device("0", "n1", rank=1)), ("r0_0", "r1_0")),
        ((Device("0", "n0"), Device("0", "n1")), ("n0_0", "n1_0")),
        ((Device("0", "n0", rank=0), Device("0", "n1", rank=0)), ("n0_0", "n1_0")),
        ((Device("0", vendor="AMD"), Device("0", vendor="NVIDIA")), ("0_0", "1_0")),
        ((Device("0", "n0", rank=0), Device("1", "n1", rank=1)), ("0", "1")),
    ],
)
def test_devices_of_one_number_keep_their_own_peaks(
    devices: tuple[Device, ...], names: tuple[str, ...]
) -> None:
    trace = replace(trace_of([(0, 0, 1.0), (0, 1, 3.0)]), devices=devices)
    found = allocator.of_each_device(measured(trace, 0, 10))
    assert {name: figure.value for name, figure in found.items()} == {
        f"torch_allocated_peak_{names[0]}": 1.0,
        f"torch_allocated_peak_{names[1]}": 3.0,
    }


def test_memory_through_hsa_has_peaks_of_its_own() -> None:
    trace = trace_of([(0, NULL, 900.0), (1, 0, 5.0), (2, 1, 7.0), (3, 1, 1.0)], HSA_ALLOCATED)
    found = figures(measured(trace, 0, 10))
    assert (found["hsa_allocated_peak"].value, found["hsa_host_allocated_peak"].value) == (7, 900)
    assert (found["hsa_allocated_peak_4"].value, found["hsa_allocated_peak_7"].value) == (5, 7)
    assert found["torch_allocated_peak"].value is None
    nothing = measured(replace(trace, samples=Samples.empty()), 0, 10)
    assert "--memory-allocation-trace" in figures(nothing)["hsa_allocated_peak"].needs


def test_without_the_allocator_its_option_is_named() -> None:
    empty = measured(replace(trace_of([]), samples=Samples.empty()), 0, 10)
    assert "--profile-memory" in figures(empty)["torch_allocated_peak"].needs
    assert not allocator.recorded(empty.trace)
    of_one = measured(trace_of([(0, 0, 1.0)], TORCH_RESERVED), 0, 10)
    assert allocator.of_each_device(of_one) == {}


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from([NULL, 0, 1]), st.integers(0, 99).map(float)),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    start=st.integers(0, 60),
    length=st.integers(1, 30),
)
def test_peaks_are_those_of_a_walk_over_every_nanosecond(
    rows: list[Row], start: int, length: int
) -> None:
    def walked(place: int) -> float | None:
        own = sorted(row for row in rows if row[1] == place)
        seen = [
            [row for row in own if row[0] <= at][-1][2]
            for at in range(start, start + length)
            if any(row[0] <= at for row in own)
        ]
        return max(seen, default=None)

    m = measured(trace_of(rows), start, start + length)
    on_host = allocator.peak(TORCH_ALLOCATED, of_host=True)(m).value
    assert on_host == (None if walked(NULL) is None else pytest.approx(walked(NULL)))
    highest = max((v for v in (walked(0), walked(1)) if v is not None), default=None)
    assert allocator.peak(TORCH_ALLOCATED, of_host=False)(m).value == highest
