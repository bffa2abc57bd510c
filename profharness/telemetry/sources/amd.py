"""AMD devices by our own reading of sysfs: no library, no privileges, a few microseconds per device and read."""

from __future__ import annotations

from profharness.telemetry.sources import Column, Missing, SampledDevice, Source, Target
from profharness.telemetry.sources.amd_devices import Die, find_dies, why_none
from profharness.telemetry.sources.amd_files import AmdFallbackSource, AmdSlowSource, fallback_metrics
from profharness.telemetry.sources.amd_metrics import AmdMetricsSource
from profharness.telemetry.sources.amd_waves import AmdWavesSource


class NoDevice:
    """Stands for a family without a device here: gives its reason."""

    max_hz = 1.0
    columns: tuple[Column, ...] = ()
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self._why = why

    def probe(self) -> tuple[Missing, ...]:
        return (Missing(self.name, self._why),)

    def read(self, row: list[int | float], at: int) -> None:
        raise AssertionError("a source without columns is never read")


class AmdPackageSource(AmdMetricsSource):
    """`gpu_metrics`, and hwmon for what it does not give."""


def open_sources(target: Target) -> tuple[Source, ...]:
    """One source per PCI device, so that one that fails harms no other; what they share comes after."""
    dies = tuple(find_dies(target.sysfs))
    if not dies:
        return (NoDevice("amd", why_none(target.sysfs)),)
    packages: dict[str, list[Die]] = {}
    for die in dies:
        packages.setdefault(die.address, []).append(die)
    sources: list[Source] = []
    for group in packages.values():
        metrics = AmdMetricsSource(tuple(group))
        sources += [metrics, AmdFallbackSource(group[0], fallback_metrics())]
    return (*sources, AmdSlowSource(dies), AmdWavesSource(dies, target.sysfs))
