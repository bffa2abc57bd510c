"""Single values of AMD devices that have a sysfs file of their own: memory, caps, and hwmon where
`gpu_metrics` cannot be used.

hwmon gives µW, thousandths of a degree and Hz (Documentation/hwmon/sysfs-interface and the amdgpu
chapter in the kernel tree).
"""

from __future__ import annotations

import abc
import os
from collections.abc import Iterator, Sequence

from profharness.telemetry.sources import Column, Missing
from profharness.telemetry.sources.amd.devices import Die
from profharness.telemetry.sources.amd.metrics import (
    MAX_HZ,
    PACKAGE_METRICS,
    AmdMetricsSource,
    sampled,
)
from profharness.telemetry.sources.host import procfs

_MEMORY = (("gpu_memory_used", "mem_info_vram_used"), ("gpu_memory_total", "mem_info_vram_total"))
# For the metrics of amd_metrics.FALLBACKS: metric, unit, scale, files below the PCI device, of
# which the first that works counts. {hwmon} stands for its hwmon folder, and temp:edge for the
# temp*_input whose temp*_label says edge.
_WITHOUT_METRICS: tuple[tuple[str, str, float, tuple[str, ...]], ...] = (
    ("gpu_percent", "%", 1.0, ("gpu_busy_percent",)),
    ("memory_activity", "share", 0.01, ("mem_busy_percent",)),
    ("power_w", "W", 1e-6, ("{hwmon}/power1_input", "{hwmon}/power1_average")),
    ("clock_gpu", "MHz", 1e-6, ("{hwmon}/freq:sclk",)),
    ("clock_memory", "MHz", 1e-6, ("{hwmon}/freq:mclk",)),
    ("temperature_edge", "°C", 1e-3, ("{hwmon}/temp:edge",)),
    ("temperature_hotspot", "°C", 1e-3, ("{hwmon}/temp:junction",)),
    ("temperature_memory", "°C", 1e-3, ("{hwmon}/temp:mem",)),
)

MEMORY_HZ = 2.0
_SENSORS = 8  # numbers that hwmon may give to one kind


class AmdFilesSource(abc.ABC):
    """Files with one whole number each. A file that once read as nothing is left out, with its
    reason.
    """

    def __init__(self, name: str, dies: Sequence[Die], max_hz: float) -> None:
        self.name = name
        self.max_hz = max_hz
        self.columns: tuple[Column, ...] = ()
        self.devices = tuple(sampled(die) for die in dies)
        self._dies = dies
        self._handles: list[int] = []
        self._missing: list[Missing] = []

    def probe(self) -> tuple[Missing, ...]:
        """Open the device's files; what cannot be read, with the reason."""
        self.columns = tuple(self._opened())
        return tuple(self._missing)

    def read(self, row: list[int | float], at: int) -> None:
        for place, handle in enumerate(self._handles, at):
            row[place] = int(os.pread(handle, 64, 0))

    @abc.abstractmethod
    def _opened(self) -> Iterator[Column]:
        """Columns of the files that work; to be filled by the kinds below."""

    def _try(
        self, column: Column, paths: Sequence[str], *, zero_is_missing: bool = False
    ) -> Iterator[Column]:
        """The first of the files that holds a number."""
        why = ""
        for path in paths:
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                value = int(os.pread(handle, 64, 0))
            except (
                OSError,
                ValueError,
                # EOPNOTSUPP and EINVAL for values that this part does not have; "N/A" on others
            ) as error:
                why = f"{path}: {getattr(error, 'strerror', None) or 'no number in it'}"
                continue
            if value or not zero_is_missing:
                self._handles.append(handle)
                yield column
                return
            why = f"{path} is 0: the other die of the package reports it"
        self._missing.append(Missing(column.metric, why or "no such file"))


class AmdSlowSource(AmdFilesSource):
    """Memory and power caps of all devices. Partitions of a package share them, and the first one
    carries them.
    """

    def __init__(self, dies: Sequence[Die]) -> None:
        super().__init__("amd_slow", dies, MEMORY_HZ)

    def _opened(self) -> Iterator[Column]:
        for place, die in enumerate(self._dies):
            if die.partition:
                continue
            for metric, file in _MEMORY:
                yield from self._try(
                    Column(metric, "B", "instant", device=place), (f"{die.folder}/{file}",)
                )
            if die.reports_package:
                yield from self._try(
                    Column("power_limit", "W", "instant", 1e-6, device=place),
                    (f"{die.hwmon}/power1_cap",),
                    zero_is_missing=True,
                )


class AmdFallbackSource(AmdFilesSource):
    """What `gpu_metrics` leaves out for one PCI device, from sysfs and hwmon; to be probed after
    it.
    """

    def __init__(self, die: Die, metrics: AmdMetricsSource) -> None:
        super().__init__(f"amd_hwmon{die.number}", (die,), MAX_HZ)
        self._metrics = metrics

    def _opened(self) -> Iterator[Column]:
        die, left = self._dies[0], self._metrics.left
        for metric, unit, scale, files in _WITHOUT_METRICS:
            if metric not in left:
                continue
            if metric in PACKAGE_METRICS and not die.reports_package:
                self._missing.append(Missing(metric, left[metric]))
                continue
            already = len(self._missing)
            paths = [_place(die, file) for file in files]
            yield from self._try(Column(metric, unit, "instant", scale, device=0), paths)
            self._missing[already:] = [
                Missing(metric, f"{left[metric]}; {absent.why}")
                for absent in self._missing[already:]
            ]


def _place(die: Die, file: str) -> str:
    """The path that stands for `file`."""
    if "{" not in file:
        return f"{die.folder}/{file}"
    kind, colon, label = file.removeprefix("{hwmon}/").partition(":")
    if not colon:
        return f"{die.hwmon}/{kind}"
    for number in range(1, _SENSORS + 1):
        try:
            if procfs.read_once(f"{die.hwmon}/{kind}{number}_label").decode().strip() == label:
                return f"{die.hwmon}/{kind}{number}_input"
        except OSError:
            continue  # numbers need not be without gaps
    return f"{die.hwmon}/{kind}N_input labelled {label}"
