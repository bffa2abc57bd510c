"""NVIDIA's GPM samples (Hopper and newer): how much of the device works, not only whether anything
runs.

The library keeps counters in a sample; two samples give means over the time between them, which
should be at least 100 ms. Percentages are 0 to 100, rates are MiB/s (nvml.h, "GPM Metric
Identifiers"). No privileges are needed.
"""

from __future__ import annotations

import math
import time
from typing import Any

from profharness.telemetry.sources import Column, Missing, SampledDevice
from profharness.telemetry.sources.nvidia.calls import Device
from profharness.telemetry.sources.shares import ShareClock

MAX_HZ = 5.0
_MIB = 1024 * 1024.0
# metric, unit, GPM's number, factor
_METRICS: tuple[tuple[str, str, int, float], ...] = (
    ("sm_activity", "share", 2, 0.01),
    ("sm_occupancy", "share", 3, 0.01),
    ("tensor_activity", "share", 5, 0.01),
    ("dram_activity", "share", 10, 0.01),
    ("fp64_activity", "share", 11, 0.01),
    ("fp32_activity", "share", 12, 0.01),
    ("fp16_activity", "share", 13, 0.01),
    ("pcie_sent", "B/s", 20, _MIB),
    ("pcie_received", "B/s", 21, _MIB),
    ("nvlink_received", "B/s", 60, _MIB),
    ("nvlink_sent", "B/s", 61, _MIB),
)


class NvmlGpmSource:
    """Two samples in turn: the newer one of a read is the older one of the next."""

    max_hz = MAX_HZ

    def __init__(self, device: Device) -> None:
        self.name = f"nvml{device.sampled.number}_gpm"
        self.devices: tuple[SampledDevice, ...] = (device.sampled,)
        self.columns: tuple[Column, ...] = ()
        self._device = device
        self._older: Any = None
        self._newer: Any = None
        self._clocks = [ShareClock() for _ in _METRICS]
        self._taken = False

    def probe(self) -> tuple[Missing, ...]:
        """Whether the device has GPM (Hopper and newer) and the library lets this user ask."""
        why = self._open()
        if why:
            return tuple(
                Missing(metric, f"{self.devices[0].identity}: {why}") for metric, *_ in _METRICS
            )
        self.columns = (
            Column("", "ns", "instant", device=0, role="stamp"),
            *(Column(metric, unit, "counter", 1e-9, "d", 0) for metric, unit, *_ in _METRICS),
        )
        return ()

    def _open(self) -> str:
        library = self._device.library
        try:
            asked = (
                self._device.handle if self._device.parent is None else self._device.parent.handle
            )
            if not library.nvmlGpmQueryDeviceSupport(asked).isSupportedDevice:
                return "GPM needs Hopper or newer"
            self._older, self._newer = library.nvmlGpmSampleAlloc(), library.nvmlGpmSampleAlloc()
            self._sample()  # a device in MIG mode has samples of its instances only
        except Exception as error:  # noqa: BLE001  whatever is said is the reason
            return f"no GPM here ({error})"
        return ""

    def _sample(self) -> None:
        """Put the counters into the newer sample."""
        parent = self._device.parent
        if parent is None:
            self._device.call("nvmlGpmSampleGet", self._newer)
        else:
            self._device.library.nvmlGpmMigSampleGet(parent.handle, parent.instance, self._newer)

    def read(self, row: list[int | float], at: int) -> None:
        """A metric that this device lacks stays unread."""
        self._older, self._newer = self._newer, self._older
        self._sample()
        now = row[at] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if not self._taken:
            self._taken = True
            for place, clock in enumerate(self._clocks, at + 1):
                clock.advance(int(now), 0.0)
                row[place] = 0.0
            return
        for place, (clock, value) in enumerate(
            zip(self._clocks, self._means(), strict=True), at + 1
        ):
            if value is not None:
                clock.advance(int(now), value)
                row[place] = clock.total

    def _means(self) -> list[float | None]:
        library = self._device.library
        wanted = library.c_nvmlGpmMetricsGet_t()
        wanted.version = library.NVML_GPM_METRICS_GET_VERSION
        wanted.numMetrics = len(_METRICS)
        wanted.sample1, wanted.sample2 = self._older, self._newer
        for place, (_, _, number, _) in enumerate(_METRICS):
            wanted.metrics[place].metricId = number
        library.nvmlGpmMetricsGet(wanted)
        return [
            wanted.metrics[place].value * factor if _is_there(wanted.metrics[place]) else None
            for place, (_, _, _, factor) in enumerate(_METRICS)
        ]


def _is_there(metric: Any) -> bool:
    """The device has it, and the value is a number."""
    return metric.nvmlReturn == 0 and math.isfinite(metric.value)
