"""Whatever accelerator there is: our own AMD reader where sysfs lists AMD devices, else NVIDIA's
library.
"""

from __future__ import annotations

from profharness.telemetry.sources import Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.amd import devices as amd_devices
from profharness.telemetry.sources.amd import family as amd


def open_sources(target: Target) -> tuple[Source, ...]:
    """The vendor's sources, or the reasons of both in one."""
    if amd_devices.find_dies(target.sysfs):
        return amd.open_sources(target)
    from profharness.telemetry.sources.nvidia import family as nvml

    nvidia = nvml.open_sources(target)
    if len(nvidia) == 1 and isinstance(nvidia[0], AbsentSource):
        return (AbsentSource("gpu", f"{amd_devices.why_none(target.sysfs)}; {nvidia[0].why}"),)
    return nvidia
