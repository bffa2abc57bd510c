"""AMD devices by our own reading of sysfs: no library, no privileges, a few microseconds per device
and read.
"""

from __future__ import annotations

from profharness.telemetry.sources import Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.amd.devices import Die, find_dies, why_none
from profharness.telemetry.sources.amd.files import AmdFallbackSource, AmdSlowSource
from profharness.telemetry.sources.amd.metrics import AmdMetricsSource
from profharness.telemetry.sources.amd.waves import AmdWavesSource


def open_sources(target: Target) -> tuple[Source, ...]:
    """One source per PCI device, so that one that fails harms no other; what they share comes
    after.
    """
    dies = tuple(find_dies(target.sysfs))
    if not dies:
        return (AbsentSource("amd", why_none(target.sysfs)),)
    packages: dict[str, list[Die]] = {}
    for die in dies:
        packages.setdefault(die.address, []).append(die)
    sources: list[Source] = []
    for group in packages.values():
        metrics = AmdMetricsSource(tuple(group))
        sources += [metrics, AmdFallbackSource(group[0], metrics)]
    return (*sources, AmdSlowSource(dies), AmdWavesSource(dies, target.sysfs, target.roots_file))
