"""Power of the CPU packages from the kernel's energy counters (RAPL; on AMD CPUs too):
/sys/class/powercap.

Only packages are read: cores and uncore are parts of them, and would be counted twice. The counters
wrap (Documentation/power/powercap in the kernel tree); since 2020 only root may read them.
"""

from __future__ import annotations

import os

from profharness.telemetry.sources import COUNTER_HZ, Column, Missing, SampledDevice
from profharness.telemetry.sources.host import procfs

METRIC = "power_cpu"


class _Counter:
    """One package's energy_uj, continued over its wraps."""

    __slots__ = ("_handle", "_last", "_range", "total")

    def __init__(self, handle: int, wraps_at: int) -> None:
        self._handle = handle
        self._range = wraps_at
        self._last = int(os.pread(handle, 32, 0))
        self.total = 0

    def read(self) -> None:
        now = int(os.pread(self._handle, 32, 0))
        grown = now - self._last
        self.total += grown if grown >= 0 else grown + self._range
        self._last = now


class RaplSource:
    """The sum over all packages of the node, in µJ since the sampler started."""

    name = "rapl"
    max_hz = COUNTER_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, sysfs: str = "/sys") -> None:
        self.columns: tuple[Column, ...] = ()
        self._folder = f"{sysfs}/class/powercap"
        self._counters: list[_Counter] = []

    def probe(self) -> tuple[Missing, ...]:
        """Open the energy counter of each CPU package; most systems let only root read it."""
        try:
            zones = [
                name
                for name in sorted(os.listdir(self._folder))  # noqa: PTH208  no pathlib here
                if _is_package(self._folder, name)
            ]
        except OSError:
            return (
                Missing(
                    METRIC,
                    f"{self._folder} is absent: the kernel offers no RAPL counters here "
                    "(virtual machines rarely do)",
                ),
            )
        if not zones:
            return (Missing(METRIC, f"{self._folder} holds no CPU package"),)
        for zone in zones:
            path = f"{self._folder}/{zone}"
            try:
                handle = os.open(f"{path}/energy_uj", os.O_RDONLY | os.O_CLOEXEC)
                self._counters.append(
                    _Counter(handle, int(procfs.read_once(f"{path}/max_energy_range_uj")))
                )
            except (OSError, ValueError) as error:
                self._counters.clear()
                return (
                    Missing(
                        METRIC,
                        f"{path}/energy_uj cannot be read "
                        f"({getattr(error, 'strerror', None) or error}); "
                        "it is root's since Linux 5.10",
                    ),
                )
        self.columns = (Column(METRIC, "W", "counter", 1e-6),)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """Energy of all packages since the first read, in µJ, over the counters' wraps."""
        for counter in self._counters:
            counter.read()
        row[at] = sum(counter.total for counter in self._counters)


def _is_package(folder: str, zone: str) -> bool:
    """`intel-rapl:0` is a package where its name says so; `intel-rapl:0:0` is a part of one, `psys`
    a whole machine.
    """
    if zone.count(":") != 1:
        return False
    try:
        return procfs.read_once(f"{folder}/{zone}/name").startswith(b"package")
    except OSError:
        return False
