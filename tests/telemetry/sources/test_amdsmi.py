"""AMD's own package as a second source, over a stand-in: its values, and every way in which it may
fail.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness.analysis.run.checks import telemetry_findings
from profharness.rundir import telemetry
from profharness.telemetry.checkup import source_states
from profharness.telemetry.sources.amd.smi_library import number, roots, versioned_library
from tests.processes import gone
from tests.telemetry import emulated
from tests.telemetry.running import ROOT, Sampler, wait_for

STAND_IN = ROOT / "tests/fakes/stand_in_amdsmi"

# a stamp of another clock is not used: each read of these still pictures then counts at its own
# time
STILL = (
    emulated.State(stamp_ns=1),
    emulated.State(power_w=0, energy_j=0.0, gpu=0, memory=0, stamp_ns=1),
)


def environment(mode: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(STAND_IN), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "STAND_IN_AMDSMI": mode, "ROCM_PATH": "/nowhere"}


@pytest.mark.slow
def test_values_in_their_units_and_missing_ones_of_every_kind(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=10, sources=("amdsmi",), env=environment("")) as sampler:
        ready = sampler.ready()
        time.sleep(1.2)
        assert sampler.stop()["failed"] == []
    trace = telemetry.read(sampler.file("samples.bin"))
    means = {
        trace.strings[code]: float(trace.samples.value[trace.samples.metric == code].mean())
        for code in set(trace.samples.metric.tolist())
    }
    assert means == pytest.approx(
        {
            "gpu_percent": 100,
            "memory_activity": 0.37,
            "power_w": 324,
            "power_energy": 324,
            "clock_gpu": 1650,
            "temperature_hotspot": 58,
        },
        rel=0.01,
    )
    assert {entry["metric"] for entry in ready["missing"]} == {
        "clock_memory",
        "temperature_edge",
        "temperature_memory",
    }
    assert trace.devices[0].identity == "0000:c1:00.0"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("abort", "ended the process that held it"),
        ("symbol", "does not fit AMD's library"),
        ("library", "does not find AMD's library"),
    ],
)
def test_a_package_that_does_not_fit_is_a_reason_and_no_accident(
    tmp_path: Path, mode: str, why: str
) -> None:
    with Sampler(tmp_path, sources=("cpu", "amdsmi"), env=environment(mode)) as sampler:
        missing = {entry["metric"]: entry["why"] for entry in sampler.ready()["missing"]}
        assert why in missing["amdsmi"]
        assert sampler.stop()["rows"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("abort", "SIGABRT"),
        ("symbol", "does not fit AMD's library"),
        ("library", "does not find AMD's library"),
        ("nothing", "gives no value here"),
        ("shifted", "power_w of 0000:c1:00.0 is 58 by the library and 324"),
    ],
)
def test_our_own_reader_takes_the_place_of_a_library_that_cannot_be_used(
    tmp_path: Path, mode: str, why: str
) -> None:
    emulated.mi250x(tmp_path / "sys", *STILL)
    done = run(tmp_path, "0.6", environment(mode))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["figures"]["gpu_percent"]["value"], row(found, "power_w")["mean"]) == (100, 324)
    (told,) = [one["message"] for one in found["findings"] if one["id"] == "sampler-gaps"]
    assert why in told
    assert told.endswith("our own reader takes its place")


@pytest.mark.slow
def test_without_the_package_our_own_reader_takes_its_place(tmp_path: Path) -> None:
    emulated.mi250x(tmp_path / "sys", *STILL)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/amdsmi.py").write_text("raise ModuleNotFoundError('amdsmi')\n")
    done = run(
        tmp_path,
        "0.6",
        {**os.environ, "PYTHONPATH": str(tmp_path / "hidden"), "ROCM_PATH": "/nowhere"},
    )
    (told,) = [
        one["message"] for one in json.loads(done.stdout)["findings"] if one["id"] == "sampler-gaps"
    ]
    assert "is not installed" in told


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("segfault", "SIGSEGV"),
        pytest.param("hang", "did not answer within", marks=pytest.mark.slow),
    ],
)
def test_a_library_that_fails_during_the_run_is_replaced_at_once(
    tmp_path: Path, mode: str, why: str
) -> None:
    emulated.mi250x(tmp_path / "sys", *STILL)
    with Sampler(
        tmp_path, hz=10, sources=("amdsmi",), sysfs=str(tmp_path / "sys"), env=environment(mode)
    ) as sampler:
        names = [source["name"] for source in sampler.ready()["sources"]]
        time.sleep(3.0 if mode == "segfault" else 8.0)
        done = sampler.stop()
    assert names[:3] == ["amdsmi", "amd0", "amd1"]
    ((source, last),) = [(one["source"], one["last"]) for one in done["failed"]]
    assert source == "amdsmi"
    assert why in last
    trace = telemetry.read(sampler.file("samples.bin"))
    power = (trace.samples.metric == trace.strings.find("power_w")) & (trace.samples.device == 0)
    at = np.sort(trace.samples.at_ns[power])
    assert set(trace.samples.value[power].tolist()) == {324.0}
    assert at[-1] - at[0] > (
        2.4e9 if mode == "segfault" else 7e9
    )  # power from before the end of the library to the end of the run
    assert np.diff(at).max() < (0.5e9 if mode == "segfault" else 6.5e9)
    (device,) = [
        one for one in trace.devices if one.identity == "0000:c1:00.0"
    ]  # the same device, whoever reads it
    assert device.index == "0"
    (told,) = [one for one in telemetry_findings(trace, {}) if "amdsmi" in one.message]
    assert why in told.message
    assert "our own reader took over" in told.message


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """The child ends with the sampler, however that ends."""
    with Sampler(tmp_path, sources=("amdsmi",), env=environment("")) as sampler:
        sampler.ready()
        children = wait_for(
            lambda: (
                Path(f"/proc/{sampler.process.pid}/task/{sampler.process.pid}/children")
                .read_text()
                .split()
            ),
            "the child",
        )
        sampler.process.kill()
        sampler.process.wait()
    wait_for(lambda: all(map(gone, children)), "its end")


def run(folder: Path, seconds: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`profharness telemetry --source amdsmi` over the tree in `folder`/sys."""
    command = [
        sys.executable,
        "-m",
        "profharness",
        "telemetry",
        "-o",
        str(folder / "log"),
        "--source",
        "amdsmi",
        "--seconds",
        seconds,
        "--json",
    ]
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**variables, "PROFHARNESS_SYSFS": str(folder / "sys")},
    )


def row(found: dict[str, Any], metric: str) -> dict[str, Any]:
    return next(one for one in found["rows"] if one["metric"] == metric)


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
    assert list(states) == [
        "cpu",
        "cgroup",
        "pressure",
        "rapl",
        "pm_counters",
        "network",
        "rdma",
        "slingshot",
        "lustre",
        "nfs",
        "amd",
        "device-counters",
        "amdsmi",
        "nvml",
    ]
    assert states["cpu"] == ""
    assert states["amd"] == states["device-counters"] == "the amdgpu driver is not loaded"
    assert "ended the process that held it" in states["amdsmi"]
    assert "/nowhere/class/powercap is absent" in states["rapl"]
    assert states["nvml"]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (5, 5),
        ("N/A", None),
        (65535, None),
        (4294967295, None),
        (2**64 - 1, None),
        (True, None),
        (None, None),
        ([2, 65535, "N/A", 4], 3),
        ([], None),
        (0, 0),
    ],
)
def test_every_shape_of_missing(raw: object, found: float | None) -> None:
    assert number(raw) == found
    assert number(0, zero_unset=True) is None


@pytest.mark.parametrize(
    ("present", "taken"),
    [
        (("26", "27"), "libamd_smi.so.27"),
        (("24", "26"), "libamd_smi.so.26"),
        (("", "27"), "libamd_smi.so"),
    ],
)
def test_a_library_with_a_version_alone_is_found_the_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...], taken: str
) -> None:
    some_library = sys.modules["msgspec._core"].__file__
    assert some_library is not None
    # a folder of its own name: what was loaded once from a path stays loaded
    rocm = tmp_path / f"rocm-{'-'.join(present)}"
    (rocm / "lib").mkdir(parents=True)
    for version in present:
        name = f"libamd_smi.so.{version}".removesuffix(".")
        shutil.copy(some_library, rocm / "lib" / name)
    monkeypatch.setenv("ROCM_PATH", str(rocm))
    before = ctypes.CDLL
    with versioned_library():
        # the name in its folder, and alone, as the package asks for it where ROCM_PATH is not set
        asked = [ctypes.CDLL(str(rocm / "lib/libamd_smi.so"))]
        if "" not in present:
            asked.append(ctypes.CDLL("libamd_smi.so"))
        with pytest.raises(OSError, match="libother"):
            ctypes.CDLL(str(rocm / "libother.so"))
    assert ctypes.CDLL is before
    assert {library._name for library in asked} == {str(rocm / "lib" / taken)}


def test_without_any_version_the_packages_own_error_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    with versioned_library(), pytest.raises(OSError, match=r"libamd_smi\.so"):
        ctypes.CDLL(str(tmp_path / "lib/libamd_smi.so"))


def test_rocm_is_looked_for_in_wheels_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_rocm_sdk_core_nightly").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nothing"), str(tmp_path)])
    monkeypatch.delenv("ROCM_PATH", raising=False)
    assert roots() == ("/opt/rocm", "/opt/rocm/core", f"{tmp_path}/_rocm_sdk_core_nightly")
