"""The exporters that are known, and what each of their numbers is.

omnistat publishes raw totals of counters, summed over a device's instances (the compute dies too):
our own formulas apply. Its `card` counts the devices as AMD's profiler lists them, in the compute
driver's order.

AMD's Device Metrics Exporter publishes finished figures, each of a window of about 1 ms that may be
10 s old. They keep names of their own: VALUBusy, which it calls `sm_active`, is no share of active
compute units, and MfmaUtil and OccupancyPercent divide by the cycles in which the device was busy.
Its `gpu_id` counts the devices by PCI address, then partition. RDC's own `rdci` gives the same
figures (`rdci`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from profharness.telemetry.sources.amd.counting.preflight import Countable
from profharness.telemetry.sources.amd.counting.sets import BUSY, CYCLES
from profharness.telemetry.sources.amd.devices import Die
from profharness.telemetry.sources.amd.exporter.answer import ExporterError, series_of

OMNISTAT, DME, RDC = "omnistat", "AMD's Device Metrics Exporter", "RDC"
_TOTALS = "omnistat_hardware_counter"
_GAUGES = "gpu_prof_"
GAUGES: dict[str, tuple[str, float]] = {
    "gpu_prof_sm_active": ("exporter_valu_busy", 0.01),
    "gpu_prof_tensor_active_percent": ("exporter_mfma_util", 0.01),
    "gpu_prof_occupancy_percent": ("exporter_occupancy", 0.01),
    "gpu_prof_simd_utilization": ("exporter_simd_utilization", 1.0),
    "gpu_prof_gui_util_percent": ("exporter_gpu_util", 0.01),
}
"""Metric and scale of each gauge; a prefix of the exporter's own configuration may stand before its
name.
"""
_LARGEST = float(1 << 62)


class Published(NamedTuple):
    """What an exporter says: by the device's number there, each counter's or gauge's value."""

    kind: str
    values: Mapping[int, Mapping[str, float]]


def published(text: str, place: str) -> Published:
    """Raises ExporterError for an answer that holds no known name."""
    totals: dict[int, dict[str, float]] = {}
    for one in series_of(text, _TOTALS):
        card, name = one.labels.get("card", ""), one.labels.get("name", "")
        if one.name == _TOTALS and card.isdecimal() and 0 <= one.value < _LARGEST:
            totals.setdefault(int(card), {})[name] = one.value
    if totals:
        return Published(OMNISTAT, totals)
    gauges: dict[int, dict[str, float]] = {}
    for one in series_of(text, _GAUGES):
        name = one.name[one.name.index(_GAUGES) :]
        number = one.labels.get("gpu_id", "")
        if name in GAUGES and number.isdecimal() and "serial_number" in one.labels:
            gauges.setdefault(int(number), {})[name] = one.value
    if gauges:
        return Published(DME, gauges)
    raise ExporterError(
        f"{place} publishes no hardware counter: neither {_TOTALS} of omnistat nor {_GAUGES}* of "
        f"{DME}, which are off until its configuration names them"
    )


def in_order(found: Published, dies: Iterable[Die], place: str) -> list[Die]:
    """The devices as the exporter counts them. Raises ExporterError where it sees others."""
    ordered = list(dies)
    if found.kind in (DME, RDC):
        ordered.sort(key=lambda die: (die.address, die.partition))
    if sorted(found.values) != list(range(len(ordered))):
        raise ExporterError(
            f"{found.kind} at {place} names device {', '.join(map(str, sorted(found.values)))}, "
            f"and this node has {len(ordered)} AMD device{'' if len(ordered) == 1 else 's'}: "
            "which is which is not known"
        )
    return ordered


def usable(device: Countable, totals: Mapping[str, float]) -> tuple[str, ...]:
    """The counters of omnistat's that formulas of this device take; none without the cycles, or
    without anything beside them.
    """
    wanted = [name for block in device.counters.blocks for name in block if name in totals]
    alone = set(wanted) <= {CYCLES, BUSY}
    return () if alone or not {CYCLES, BUSY} <= set(wanted) else tuple(wanted)
