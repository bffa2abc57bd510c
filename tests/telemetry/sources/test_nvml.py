"""NVIDIA's source in the real sampler process, over the stand-in for nvidia-ml-py."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import telemetry
from profharness.stats.packages import packages
from profharness.stats.streams import streams
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import SAMPLE_METRICS
from tests.telemetry.running import ROOT, Sampler

STAND_IN = ROOT / "tests/fakes/stand_in_pynvml"


def sampled(
    folder: Path, seconds: float = 1.2, hz: float = 20.0, missing: str = ""
) -> tuple[Trace, dict[str, str]]:
    """The trace of a short sampling, and what was missing."""
    path = os.pathsep.join(filter(None, (str(STAND_IN), os.environ.get("PYTHONPATH"))))
    with Sampler(
        folder,
        hz=hz,
        sources=("nvml",),
        env={**os.environ, "PYTHONPATH": path, "STAND_IN_NVML": missing},
    ) as sampler:
        ready = sampler.ready()
        time.sleep(seconds)
        done = sampler.stop()
    assert done["failed"] == []
    absent = {entry["metric"]: entry["why"] for entry in ready["missing"]}
    if not ready["sources"]:
        return Trace((), telemetry.Strings()), absent
    return telemetry.read(sampler.file("samples.bin")), absent


def values(trace: Trace, metric: str) -> np.ndarray:
    return trace.samples.value[trace.samples.metric == trace.strings.find(metric)]


@pytest.mark.slow
def test_every_value_in_its_unit(tmp_path: Path) -> None:
    trace, missing = sampled(tmp_path)
    means = {
        metric.name: float(found.mean())
        for metric in SAMPLE_METRICS
        if len(found := values(trace, metric.name))
    }
    assert {
        name: value for name, value in means.items() if name != "power_energy"
    } == pytest.approx(
        {
            "power_w": 420.0,
            "power_average": 415.0,
            "throttle_power": 0.25,
            "throttle_thermal": 0.0,
            "throttle_external": 1.0,
            "gpu_percent": 97.0,
            "memory_activity": 0.41,
            "clock_gpu": 1980.0,
            "clock_memory": 2619.0,
            "temperature_edge": 61.0,
            "gpu_memory_used": 20 << 30,
            "gpu_memory_total": 80 << 30,
            "power_limit": 700.0,
            "gpu_processes": 1.0,
            "gpu_processes_other": 0.0,
            "sm_activity": 0.8,
            "sm_occupancy": 0.35,
            "tensor_activity": 0.22,
            "dram_activity": 0.55,
            "fp64_activity": 0.0,
            "fp32_activity": 0.125,
            "fp16_activity": 0.01,
            "pcie_sent": 512 * 2**20,
            "pcie_received": 1024 * 2**20,
        },
        rel=0.02,
    )
    assert means["power_energy"] == pytest.approx(420.0, rel=0.01)
    assert missing == {}
    (device,) = trace.devices
    assert (device.index, device.identity, device.name, device.vendor) == (
        "0",
        "GPU-00000000-1111-2222-3333-444444444444",
        "NVIDIA H100 80GB HBM3",
        "nvidia",
    )
    assert len(values(trace, "power_w")) > 15
    assert (
        3 <= len(values(trace, "sm_activity")) <= 7
    )  # five per second at most: GPM samples need time between them


def test_what_a_part_lacks_is_named(tmp_path: Path) -> None:
    trace, missing = sampled(tmp_path, 0.3, missing="gpm,utilisation,instant")
    assert {"gpu_percent", "memory_activity", "sm_activity", "power_w"} <= missing.keys()
    assert "Hopper or newer" in missing["sm_activity"]
    assert "Not Supported" in missing["gpu_percent"]
    assert "Not Supported" in missing["power_w"]
    # on an Ampere part without the instant field the older call is an average, and is called so
    assert set(values(trace, "power_average").tolist()) == {415.0}


@pytest.mark.slow
def test_mig_instances_have_gpm_and_memory_of_their_own(tmp_path: Path) -> None:
    trace, missing = sampled(tmp_path, missing="mig")
    assert [
        (device.index, device.identity[:4], device.name.rpartition(" ")[2])
        for device in trace.devices
    ] == [("0", "GPU-", "HBM3"), ("0.0", "MIG-", "3g.40gb"), ("0.1", "MIG-", "3g.40gb")]
    found = {(one.metric, one.device): float(one.samples.value.mean()) for one in streams(trace)}
    assert (found["sm_activity", "0.0"], found["sm_activity", "0.1"]) == (
        pytest.approx(0.1, rel=0.01),
        pytest.approx(0.2, rel=0.01),
    )
    assert (
        found["gpu_memory_used", "0.0"],
        found["gpu_memory_used", "0.1"],
        found["gpu_memory_total", "0.1"],
    ) == (1 << 30, 2 << 30, 40 << 30)
    assert [
        device
        for metric, device in found
        if metric in ("power_w", "power_energy", "clock_gpu", "power_limit")
    ] == ["0"] * 4  # once, on the whole
    assert ("sm_activity", "0") not in found
    assert "Not Supported" in missing["sm_activity"]
    (package,) = packages(streams(trace))
    assert (package.scope, sorted(package.dies)) == (
        "package of 2 MIG instances",
        ["0", "0.0", "0.1"],
    )


@pytest.mark.parametrize(
    ("absent", "why"), [("driver", "Library Not Found"), ("devices", "finds no device")]
)
def test_without_a_device_there_is_a_reason(tmp_path: Path, absent: str, why: str) -> None:
    _, missing = sampled(tmp_path, 0.1, missing=absent)
    assert why in missing["nvml"]


def test_without_the_package_there_is_a_reason(tmp_path: Path) -> None:
    try:
        import pynvml  # noqa: F401  that it can be imported
    except ImportError:
        with Sampler(tmp_path, sources=("nvml",)) as sampler:
            assert [entry["why"] for entry in sampler.ready()["missing"]] == [
                "nvidia-ml-py is not installed (extra `nvidia`)"
            ]
            sampler.stop()
    else:
        pytest.skip("nvidia-ml-py is installed here")
