"""What is known before anything is loaded: devices, capabilities, and the driver's interface."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.telemetry.sources.amd.counting import libraries
from profharness.telemetry.sources.amd.counting.libraries import Libraries, find_libraries
from profharness.telemetry.sources.amd.counting.preflight import (
    CAP_PERFMON,
    CAP_SYS_ADMIN,
    OUT_OF_TREE,
    UPSTREAM,
    Preflight,
    may_profile,
    preflight,
)
from profharness.telemetry.sources.amd.counting.sets import SETS, arch_name
from profharness.telemetry.sources.amd.devices import find_dies
from tests.telemetry import emulated

Answers = dict[int, int]


def driver(version: tuple[int, int], answers: Answers) -> Callable[[int, int, bytes], bytes]:
    """A kernel that answers each profiler number with an errno, 0 for success."""

    def ioctl(_handle: int, number: int, argument: bytes) -> bytes:
        if number == 0x80084B01:
            return struct.pack("<II", *version)
        assert struct.unpack_from("<I", argument)[0] == 2, "only the question for the version"
        assert len(argument) == number >> 16 & 0x3FFF, "as many bytes as the number says"
        if code := answers.get(number, errno.EINVAL):
            raise OSError(code, "stand-in")
        return argument

    return ioctl


def held(folder: Path, *bits: int) -> str:
    status = folder / "status"
    status.write_text(f"Name:\tx\nCapEff:\t{sum(1 << bit for bit in bits):016x}\nCapBnd:\t0\n")
    return str(status)


def look(
    tree: emulated.Tree,
    version: tuple[int, int] = (1, 23),
    answers: Answers | None = None,
    *bits: int,
    kfd: str = "/dev/null",
) -> Preflight:
    return preflight(
        find_dies(str(tree.root)),
        str(tree.root),
        kfd=kfd,
        status=held(tree.root, *bits),
        ioctl=driver(version, {UPSTREAM: 0} if answers is None else answers),
    )


@pytest.mark.parametrize(
    ("version", "answers", "bits", "level", "said"),
    [
        ((1, 23), {UPSTREAM: 0}, (CAP_PERFMON,), "full", ""),
        ((1, 23), {UPSTREAM: 0}, (CAP_SYS_ADMIN,), "full", ""),
        ((1, 17), {OUT_OF_TREE: 0}, (CAP_PERFMON,), "full", ""),
        ((1, 23), {UPSTREAM: 0}, (), "fabric-only", "lacks CAP_PERFMON"),
        ((1, 23), {UPSTREAM: errno.EPERM}, (), "fabric-only", "lacks CAP_PERFMON"),
        ((1, 22), {UPSTREAM: 0}, (CAP_PERFMON,), "fabric-only", "(KFD 1.22) has no profiler"),
        ((1, 23), {UPSTREAM: errno.ENOTTY}, (CAP_PERFMON,), "fabric-only", "no profiler interface"),
    ],
)
def test_levels(
    tmp_path: Path,
    version: tuple[int, int],
    answers: Answers,
    bits: tuple[int, ...],
    level: str,
    said: str,
) -> None:
    found = look(emulated.mi300x(tmp_path), version, answers, *bits)
    assert found.level == level
    assert said in found.why
    assert bool(found.why) == bool(said)


@pytest.mark.parametrize(
    ("mode", "units", "simds", "dies", "devices"),
    [("SPX", 304, 1216, 8, 1), ("DPX", 152, 608, 4, 2), ("CPX", 38, 152, 1, 8)],
)
def test_each_partition_is_a_device_of_its_own_size(
    tmp_path: Path, mode: str, units: int, simds: int, dies: int, devices: int
) -> None:
    found = look(emulated.mi300x(tmp_path, mode=mode), (1, 23), None, CAP_PERFMON).devices
    assert len(found) == devices
    assert {
        (one.compute_units, one.simds, one.waves, one.dies, one.counters.arch) for one in found
    } == {(units, simds, 32, dies, "gfx942")}
    assert [one.die.gpu_id for one in found] == [60000 + part for part in range(devices)]
    assert found[0].die.mode == f"{mode}/NPS1"


def test_both_dies_of_a_package(tmp_path: Path) -> None:
    found = look(emulated.mi250x(tmp_path), (1, 23), None, CAP_PERFMON).devices
    assert [(one.compute_units, one.waves, one.counters.arch) for one in found] == [
        (110, 32, "gfx90a"),
        (110, 32, "gfx90a"),
    ]


def test_other_parts_and_guests_are_refused_with_the_reason(tmp_path: Path) -> None:
    radeon = emulated.Tree(tmp_path / "radeon")
    radeon.pci(emulated.FIRST, "AMD Radeon", "0x7550", (0, 1))
    radeon.node(
        gpu_id=1, simd_count=128, simd_per_cu=2, location_id=0xC1 << 8, gfx_target_version=120001
    )
    found = look(radeon)
    assert (found.level, found.devices) == ("none", ())
    assert found.why.startswith("gfx1201 has no counters that count a whole device exactly")

    guest = emulated.mi300x(tmp_path / "guest")
    device = guest.root / f"bus/pci/devices/{emulated.FIRST}/device"
    device.write_text("0x74b5\n")
    assert "virtual function (SR-IOV)" in look(guest).why


@pytest.mark.parametrize(
    ("kfd", "said"), [("/dev/absent-kfd", "is absent"), ("/proc", "cannot be opened")]
)
def test_without_the_device_file_there_is_none(tmp_path: Path, kfd: str, said: str) -> None:
    found = look(emulated.mi300x(tmp_path), kfd=kfd)
    assert found.level == "none"
    assert said in found.why


def test_capabilities_of_a_process_that_cannot_be_read(tmp_path: Path) -> None:
    assert not may_profile(str(tmp_path / "none"))
    (tmp_path / "status").write_text("Name: x\n")
    assert not may_profile(str(tmp_path / "status"))


def test_names_of_architectures() -> None:
    assert {version: arch_name(version) for version in (90010, 90402, 90500, 110000, 120001)} == {
        90010: "gfx90a",
        90402: "gfx942",
        90500: "gfx950",
        110000: "gfx1100",
        120001: "gfx1201",
    }
    assert {version: counters.arch for version, counters in SETS.items()} == {
        version: arch_name(version) for version in SETS
    }


@pytest.fixture
def lonely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No ROCm but what the test makes."""
    for name in ("ROCM_PATH", "ROCM_HOME", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(libraries, "ROOT", str(tmp_path / "opt/rocm"))
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    return tmp_path


def placed(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_libraries_of_a_tree_a_wheel_and_a_named_root(lonely: Path, monkeypatch) -> None:
    assert "comes with ROCm 6.4 and newer" in str(find_libraries())
    both = ("librocprofiler-sdk.so.1", "libhsa-runtime64.so.1")
    placed(lonely / "opt/rocm/core-7.2/lib", *both)
    placed(lonely / "opt/rocm/core-10.0/lib", *both)
    core = placed(lonely / "opt/rocm/core-10.1/lib", *both)
    assert find_libraries() == Libraries(f"{core}/{both[0]}", f"{core}/{both[1]}")
    wheel = placed(lonely / "site/_rocm_sdk_core/lib", *both)
    assert find_libraries() == Libraries(f"{wheel}/{both[0]}", f"{wheel}/{both[1]}")
    older = placed(lonely / "older/lib", "librocprofiler-sdk.so.0", both[1])
    monkeypatch.setenv("ROCM_PATH", str(lonely / "older"))
    assert find_libraries() == Libraries(f"{older}/librocprofiler-sdk.so.0", f"{older}/{both[1]}")


def test_an_sdk_without_its_runtime(lonely: Path, monkeypatch) -> None:
    folder = placed(lonely / "half/lib", "librocprofiler-sdk.so.1")
    monkeypatch.setenv("ROCM_PATH", str(lonely / "half"))
    assert find_libraries() == (
        f"{folder} has rocprofiler-sdk, but no libhsa-runtime64.so.1 beside it"
    )
