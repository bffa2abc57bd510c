"""Releases whose driver stamps wrong times on what ran on a device (MI300X, ROCm 6.3.0 to 6.4.1).

Told only where the file, or the run, says both the device and the release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from profharness.analysis.time.device_work import Work
from profharness.findings import Finding, finding
from profharness.trace.model import Trace

_DEVICE = "MI300X"
_FIRST, _LAST = (6, 3, 0), (6, 4, 1)
_LAST_HIP = 43483  # the build of HIP that came with ROCm 6.4.1, which counts builds as patches
_MOST_PATCHES = 9999  # of ROCm; HIP's builds count from 10,000 on
_STATED = ("hip_runtime_version", "rocm_version")
_CODED = re.compile(r"(\d{1,2})(\d\d)(\d{5})\Z")  # major, minor and build of HIP_VERSION
_DOTTED = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def faulty_times(trace: Trace, work: Work) -> Sequence[Finding]:  # noqa: ARG001  a check's form
    """By what the sources say of the release that they were recorded under."""
    stated = (text for source in trace.sources for name, text in source.details if name in _STATED)
    return of_releases(trace, stated)


def of_releases(trace: Trace, releases: Iterable[str]) -> tuple[Finding, ...]:
    """The finding, where any of the releases has the fault and such a device worked."""
    names = [device.name for device in trace.devices if _DEVICE in device.name]
    if not names or not len(trace.kernels):
        return ()
    faulty = next((text for text in releases if _has_fault(text)), None)
    if faulty is None:
        return ()
    said = finding(
        "known-fault",
        f"{names[0]} under {_named(_version(faulty))}: ROCm 6.3.0 to 6.4.1 stamps "
        "wrong times on what runs on this device, so that lengths and idle time may be wrong",
    )
    advice = "record again under ROCm 6.4.2 or newer; counts and orders hold"
    return (msgspec.structs.replace(said, advice=advice),)


def _has_fault(text: str) -> bool:
    version = _version(text)
    if _is_of_hip(version):
        return version >= _FIRST and version <= (*_LAST[:2], _LAST_HIP)
    return _FIRST <= (*version, 0, 0)[:3] <= _LAST if version else False


def _is_of_hip(version: tuple[int, ...]) -> bool:
    return len(version) == 3 and version[2] > _MOST_PATCHES


def _named(version: tuple[int, ...]) -> str:
    return f"{'HIP' if _is_of_hip(version) else 'ROCm'} {'.'.join(map(str, version))}"


def _version(text: str) -> tuple[int, ...]:
    """`6.4.1`, `6.4.43483-a187df25c` or `60443483`, as Kineto writes HIP's; empty for others."""
    match = _CODED.match(text.strip()) or _DOTTED.match(text.strip())
    return tuple(int(part) for part in match.groups() if part is not None) if match else ()
