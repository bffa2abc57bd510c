"""Telemetry metrics as time series of OpenMetrics: Omnistat's name where the meaning is the same,
else `profharness_telemetry_NAME_UNIT`.

Omnistat's names are those of its collectors (github.com/ROCm/omnistat: `collector_smi.py`,
`collector_amdsmi.py`, `collector_network.py`, `collector_pm_counters.py`, `collector_host.py`). All
of them are gauges there, also what only grows, and so they are here. What is measured as a rate
(bytes per second, watts between two readings of an energy counter, cores) becomes the amount since
the sampling began, of which a reader takes the rate over any time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from profharness.trace.places import Device
from profharness.trace.sample_metrics import SAMPLE_METRICS, SampleMetric, metric_of

PREFIX = "profharness_telemetry_"
_UNITS = {
    "%": "percent",
    "share": "ratio",
    "°C": "celsius",
    "MHz": "megahertz",
    "W": "watts",
    "B": "bytes",
    "cores": "cores",
}
_AMOUNTS = {
    "B/s": "bytes",
    "W": "joules",
    "cores": "seconds",
    "calls/s": "calls",
    "events/s": "events",
}
"""What a mean over an interval, multiplied by its seconds, is an amount of."""
_AMOUNT_WORDS = {
    "B/s": "bytes",
    "W": "joules",
    "cores": "core-seconds",
    "calls/s": "calls",
    "events/s": "events",
}
_SUFFIXES = ("watts", "joules", "bytes", "celsius")
_NOT_SERIES = ("throughput", "counter_rate")
_KILO = 1 / 1024


@dataclass(frozen=True)
class Series:
    """One family of time series. A sample's value is `scale` times the metric's value, or, where it
    is `summed`, times the sum of value × seconds since the sampling began. A counter's samples have
    the family's name with `_total` behind.
    """

    family: str
    kind: Literal["gauge", "counter"]
    unit: str
    help: str
    scale: float = 1.0
    summed: bool = False
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def sample(self) -> str:
        """The name in the lines of samples."""
        return f"{self.family}_total" if self.kind == "counter" else self.family


@dataclass(frozen=True)
class Known:
    """A name of Omnistat's for one of our metrics, and where its meaning differs, in words."""

    name: str
    scale: float = 1.0
    summed: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    differs: str = ""
    help: str = ""  # of a name that several metrics share


_SINCE = "counts from the begin of the sampling, not of the driver"
_CRAY = (("vendor", "cray"),)
_PLACE = "temperature of the device at its edge, or the highest of its die (junction)"
_BYTES = {
    "received": "bytes received by one interface, port or NIC, whoever used it",
    "sent": "bytes sent by one interface, port or NIC, whoever used it",
}
OF_AMD_DEVICES: dict[str, Known] = {
    "gpu_percent": Known("rocm_utilization_percentage"),
    "memory_activity": Known("rocm_vram_busy_percentage", 100.0),
    "power_w": Known(
        "rocm_average_socket_power_watts",
        differs="a die that reports no power for its package has no series, instead of 0",
    ),
    "power_energy": Known("rocm_energy_joules", summed=True, differs=_SINCE),
    "power_limit": Known("rocm_power_cap_watts"),
    "clock_gpu": Known(
        "rocm_sclk_clock_mhz", differs="the mean over the compute dies of the device"
    ),
    "clock_memory": Known("rocm_mclk_clock_mhz"),
    "temperature_edge": Known(
        "rocm_temperature_celsius", labels=(("location", "edge"),), help=_PLACE
    ),
    "temperature_hotspot": Known(
        "rocm_temperature_celsius",
        labels=(("location", "junction"),),
        differs="beside the edge's, where the device has both; Omnistat takes the first of them",
        help=_PLACE,
    ),
    "temperature_memory": Known(
        "rocm_temperature_memory_celsius",
        labels=(("location", "hottest"),),
        differs="the hottest stack; Omnistat takes the first one that answers",
    ),
    "gpu_memory_total": Known("rocm_vram_total_bytes"),
    "xgmi_read": Known("rocm_xgmi_total_read_kilobytes", _KILO, summed=True, differs=_SINCE),
    "xgmi_written": Known("rocm_xgmi_total_write_kilobytes", _KILO, summed=True, differs=_SINCE),
}
OF_THE_NODE: dict[str, Known] = {
    "cpu_node": Known(
        "omnistat_host_cpu_aggregate_core_utilization",
        differs="the mean between two samples; Omnistat's is over 50 ms",
    ),
    "power_node": Known("omnistat_vendor_power_watts", labels=_CRAY),
    "power_node_energy": Known(
        "omnistat_vendor_energy_joules", summed=True, labels=_CRAY, differs=_SINCE
    ),
    "power_cpu_energy": Known(
        "omnistat_vendor_cpu_energy_joules", summed=True, labels=_CRAY, differs=_SINCE
    ),
    "power_memory_energy": Known(
        "omnistat_vendor_memory_energy_joules", summed=True, labels=_CRAY, differs=_SINCE
    ),
}
_CXI = f"{_SINCE}; octets of the NIC, of which Omnistat's sum of frames by size is a lower bound"
OF_PARTS: dict[str, Known] = {
    "power_module": Known("omnistat_vendor_accel_power_watts", labels=_CRAY),
    "power_module_energy": Known(
        "omnistat_vendor_accel_energy_joules", summed=True, labels=_CRAY, differs=_SINCE
    ),
    **{
        f"{source}_{ours}": Known(
            f"omnistat_network_{theirs}_bytes",
            summed=True,
            differs=_CXI if source == "slingshot" else _SINCE,
            help=_BYTES[ours],
        )
        for source in ("network", "rdma", "slingshot")
        for ours, theirs in (("received", "rx"), ("sent", "tx"))
    },
    **{
        f"slingshot_{ours}_least": Known(
            f"omnistat_network_{theirs}_bytes", summed=True, differs=_SINCE, help=_BYTES[ours]
        )
        for ours, theirs in (("received", "rx"), ("sent", "tx"))
    },
}
"""Of `METRIC:PART`: one interface, port, NIC or accelerator module."""
_CLASSES = {"network": "net", "slingshot": "cxi"}
_DRIVERS = ("ionic", "bnxt_re")


@functools.cache
def series_of(metric: str, vendor: str = "") -> Series | None:
    """The series of a sampled metric; `vendor` is that of the device, empty for the host. None for
    what is no telemetry of its own (`counter_rate:...`, throughput).
    """
    name, _, part = metric.partition(":")
    if name in _NOT_SERIES:
        return None
    known = (
        OF_PARTS.get(name)
        if part
        else OF_AMD_DEVICES.get(name)
        if vendor == "amd"
        else None
        if vendor
        else OF_THE_NODE.get(name)
    )
    described = metric_of(name)
    meaning = described.meaning if described is not None else "of another package's source"
    if known is None:
        return _own(name, part, described, meaning)
    labels = (*known.labels, *_part_labels(name, part))
    unit = next((one for one in _SUFFIXES if known.name.endswith(f"_{one}")), "")
    text = known.help or meaning
    text += ", since the sampling began" if known.summed else ""
    return Series(known.name, "gauge", unit, text, known.scale, known.summed, labels)


def _own(name: str, part: str, described: SampleMetric | None, meaning: str) -> Series:
    unit = "" if described is None else described.unit
    summed = described is not None and described.stamp == "interval" and unit in _AMOUNTS
    stem = re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_") or "unnamed"
    if summed:
        if unit == "W":  # power between two readings of an energy counter
            stem = "energy" + stem.removeprefix("power").removesuffix("_energy")
        ending = _AMOUNTS[unit]
        stem = stem.removesuffix("_calls")
    else:
        ending = _UNITS.get(unit, "")
        stem = stem.removesuffix("_percent").removesuffix("_w")
    family = f"{PREFIX}{stem}_{ending}" if ending else f"{PREFIX}{stem}"
    text = f"{_AMOUNT_WORDS[unit]} since the sampling began, of: {meaning}" if summed else meaning
    labels = _part_labels(name, part)
    return Series(family, "counter" if summed else "gauge", ending, text, 1.0, summed, labels)


def _part_labels(name: str, part: str) -> tuple[tuple[str, str], ...]:
    """The labels of one interface, port, module or file system, as Omnistat has them."""
    if not part:
        return ()
    source = name.partition("_")[0]
    if name.startswith("power_module"):
        return (("accel", part.removeprefix("accel")),)
    if source in _CLASSES:
        return (("device_class", _CLASSES[source]), ("interface", part))
    if source == "rdma":
        driver = next((one for one in _DRIVERS if part.startswith(one)), "infiniband")
        return (("device_class", driver), ("interface", part.replace("/", ":")))
    return (("file_system" if source == "lustre" else "part", part),)


def device_labels(device: Device | None) -> dict[str, str]:
    """`device` is what stays with a device (PCI address or uuid), `card` its number on the node, as
    Omnistat calls it. None is the host, which has neither.
    """
    if device is None:
        return {}
    return {"device": device.identity or device.index, "card": device.index}


def listed() -> Iterator[tuple[str, Series, str]]:
    """Our metric, its series and how that differs from Omnistat's of the same name, of everything
    that can be sampled; an interface or module stands as `PART`.
    """
    for metric in SAMPLE_METRICS:
        if metric.name in _NOT_SERIES:
            continue
        for vendor, known in (("amd", OF_AMD_DEVICES), ("", OF_THE_NODE)):
            if metric.name in known:
                series = series_of(metric.name, vendor)
                assert series is not None
                yield metric.name, series, known[metric.name].differs
        if metric.name in OF_PARTS:
            series = series_of(f"{metric.name}:PART")
            assert series is not None
            yield f"{metric.name}:PART", series, OF_PARTS[metric.name].differs
        if metric.name not in OF_THE_NODE:  # of other vendors' devices, or the whole node's
            series = series_of(metric.name, "other")
            assert series is not None
            yield metric.name, series, ""


@functools.cache
def sample_names() -> frozenset[str]:
    """Every name that a sample may have, with those of `info`."""
    return frozenset({series.sample for _, series, _ in listed()} | {INFO_SAMPLE, DEVICE_SAMPLE})


INFO, DEVICE_INFO = f"{PREFIX}sampler", f"{PREFIX}device"
INFO_SAMPLE, DEVICE_SAMPLE = f"{INFO}_info", f"{DEVICE_INFO}_info"
