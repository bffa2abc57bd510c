"""Releases that stamp wrong times on what runs on a device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.time.device_work import work_of
from profharness.analysis.verdict.gpu_times import faulty_times, of_releases
from profharness.trace.model import Device, Trace
from tests.analysis.scene import Scene


def trace_of(device: str, version: str, key: str = "hip_runtime_version") -> Trace:
    scene = Scene()
    scene.kernel(0, 10)
    trace = scene.build()
    return replace(
        trace,
        devices=tuple(replace(one, name=device) for one in trace.devices or (Device("0"),)),
        sources=tuple(replace(one, details=((key, version),)) for one in trace.sources),
    )


@pytest.mark.parametrize(
    ("device", "version", "shown"),
    [
        ("AMD Instinct MI300X", "60443483", "HIP 6.4.43483"),
        ("AMD Instinct MI300X VF", "6.3.42131-fa1d09cbda", "HIP 6.3.42131"),
        ("AMD Instinct MI300X", "6.4.1", "ROCm 6.4.1"),
        ("AMD Instinct MI300X", "6.3", "ROCm 6.3"),
        ("MI300X_A1", "6.4.0-47", "ROCm 6.4.0"),
        ("AMD Instinct MI300X", "60443484", ""),
        ("AMD Instinct MI300X", "60241134", ""),
        ("AMD Instinct MI300X", "70253211", ""),
        ("AMD Instinct MI300X", "6.4.2", ""),
        ("AMD Instinct MI300X", "6.2.4", ""),
        ("AMD Instinct MI300X", "", ""),
        ("AMD Instinct MI300X", "unknown", ""),
        ("AMD Instinct MI325X", "6.4.1", ""),
        ("", "6.4.1", ""),
    ],
)
def test_it_takes_the_device_and_the_release(device: str, version: str, shown: str) -> None:
    trace = trace_of(device, version)
    found = faulty_times(trace, work_of(trace))
    assert [one.id for one in found] == ["known-fault"] * bool(shown)
    if found:
        assert found[0].message.startswith(f"{device} under {shown}: ROCm 6.3.0 to 6.4.1")
        assert found[0].severity == "warning"
        assert "6.4.2" in found[0].advice


def test_other_facts_of_a_file_are_no_release() -> None:
    trace = trace_of("AMD Instinct MI300X", "6.4.1", "cuda_runtime_version")
    assert not faulty_times(trace, work_of(trace))
    assert len(of_releases(trace, ("7.0", "6.4.1"))) == 1
    assert not of_releases(trace, ())
    without = replace(trace, kernels=trace.kernels.take(np.zeros(0, np.int64)))
    assert not of_releases(without, ("6.4.1",))
