"""The family `counters-exporter`: hardware counters that an exporter on this node publishes."""

from __future__ import annotations

from profharness.telemetry.sources import Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.amd.devices import find_dies, why_none
from profharness.telemetry.sources.amd.exporter.source import NAME, ExporterSource


def open_sources(target: Target) -> tuple[Source, ...]:
    """One source for all devices, or the reason why there is none."""
    dies = find_dies(target.sysfs)
    if not dies:
        return (AbsentSource(NAME, why_none(target.sysfs)),)
    return (ExporterSource(dies, target),)
