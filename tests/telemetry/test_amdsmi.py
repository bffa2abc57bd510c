"""AMD's own package as a second source: over a stand-in, and the real package over a stand-in library where it is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.readers import telemetry
from profharness.telemetry.checkup import source_states
from profharness.telemetry.sources.amdsmi import number
from tests.telemetry.running import ROOT, Sampler

STAND_IN = ROOT / "tests/fakes/stand_in_amdsmi"


def environment(mode: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(STAND_IN), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "STAND_IN_AMDSMI": mode, "ROCM_PATH": "/nowhere"}


def test_values_in_their_units_and_missing_ones_of_every_kind(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=10, sources=("amdsmi",), env=environment("")) as sampler:
        ready = sampler.ready()
        time.sleep(1.2)
        assert sampler.stop()["failed"] == []
    trace = telemetry.read(sampler.file("samples.bin"))
    means = {trace.strings[code]: float(trace.samples.value[trace.samples.metric == code].mean()) for code in set(trace.samples.metric.tolist())}
    assert means == pytest.approx({"gpu_percent": 100, "memory_activity": 0.37, "power_w": 324, "power_energy": 324, "clock_gpu": 1650,
                                   "temperature_hotspot": 58}, rel=0.01)
    assert {entry["metric"] for entry in ready["missing"]} == {"clock_memory", "temperature_edge", "temperature_memory"}
    assert trace.devices[0].identity == "0000:c1:00.0"


@pytest.mark.parametrize(("mode", "why"), [
    ("abort", "ended the process that tried it"), ("symbol", "does not fit AMD's library"), ("library", "does not find AMD's library")])
def test_a_package_that_does_not_fit_is_a_reason_and_no_accident(tmp_path: Path, mode: str, why: str) -> None:
    with Sampler(tmp_path, sources=("cpu", "amdsmi"), env=environment(mode)) as sampler:
        missing = {entry["metric"]: entry["why"] for entry in sampler.ready()["missing"]}
        assert why in missing["amdsmi"]
        assert sampler.stop()["rows"] > 0


def test_a_secondary_die_has_no_power(tmp_path: Path) -> None:
    with Sampler(tmp_path, sources=("amdsmi",), env=environment("secondary")) as sampler:
        missing = {entry["metric"]: entry["why"] for entry in sampler.ready()["missing"]}
        sampler.stop()
    assert "the other die" in missing["power_w"]
    assert "the other die" in missing["power_energy"]


def test_doctor_survives_a_library_that_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment("abort").items():
        monkeypatch.setenv(name, value)
    states = dict(source_states("/nowhere"))
    assert list(states) == ["cpu", "cgroup", "pressure", "rapl", "amd", "amdsmi", "nvml"]
    assert states["cpu"] == ""
    assert states["amd"] == "the amdgpu driver is not loaded"
    assert "ended the process that tried it" in states["amdsmi"]
    assert "/nowhere/class/powercap is absent" in states["rapl"]
    assert states["nvml"]


@pytest.mark.parametrize(("raw", "found"), [
    (5, 5), ("N/A", None), (65535, None), (4294967295, None), (2**64 - 1, None), (True, None), (None, None), ([2, 65535, "N/A", 4], 3), ([], None), (0, 0)])
def test_every_shape_of_missing(raw: object, found: float | None) -> None:
    assert number(raw) == found
    assert number(0, zero_unset=True) is None


@pytest.mark.skipif(importlib.util.find_spec("amdsmi") is None, reason="needs the real amdsmi package (extra `amd`)")
def test_the_real_package_over_a_stand_in_library() -> None:
    code = """
from tests.fakes.stand_in_libamd_smi import install
metrics = dict(current_socket_power=612, energy_accumulator=65536 * 10, system_clock_counter=123, average_gfx_activity=99, average_umc_activity=37,
               current_gfxclks=[2100] * 4, current_gfxclk=2100, current_uclk=1300, temperature_hotspot=55, temperature_mem=40)
install([{"amdsmi_get_gpu_metrics_info": metrics, "amdsmi_get_gpu_device_bdf": {"as_uint": 0xC1 << 8}}])
from profharness.telemetry.sources import amdsmi
(source,) = amdsmi._load()
source.probe()
row = [-1] * len(source.columns)
source.read(row, 0)
print({column.metric: round(raw * column.scale, 3) for column, raw in zip(source.columns, row)})
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "'power_w': 612.0, 'power_energy': 10.0, 'clock_gpu': 2100.0, 'clock_memory': 1300.0" in done.stdout
