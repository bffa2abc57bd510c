"""The family `device-counters`: AMD's hardware counters of whole devices, in a process of its own.

Tests put another device file in the place of /dev/kfd by PROFHARNESS_KFD.
"""

from __future__ import annotations

import os

from profharness.telemetry.sources import Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.amd.counting.preflight import preflight
from profharness.telemetry.sources.amd.counting.source import NAME, DeviceCountersSource
from profharness.telemetry.sources.amd.devices import find_dies, why_none


def open_sources(target: Target) -> tuple[Source, ...]:
    """One source for all devices, or the reason why there is none."""
    dies = find_dies(target.sysfs)
    if not dies:
        return (AbsentSource(NAME, why_none(target.sysfs)),)
    kfd = os.environ.get("PROFHARNESS_KFD", "/dev/kfd")
    return (DeviceCountersSource(preflight(dies, target.sysfs, kfd=kfd), target),)
