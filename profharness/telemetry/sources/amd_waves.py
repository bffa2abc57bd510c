"""How full the compute units are, without a profiler: KFD's cu_occupancy of every process on the device.

The kernel reads each queue's wave counts from the hardware and gives them in units of completely filled compute
units, rounded up per process (kfd_get_cu_occupancy in drivers/gpu/drm/amd/amdkfd/kfd_process.c); only GFX9 parts
(Instinct) have it. The read stops nothing, but it walks hardware registers: five times a second, and less often
where it is dear.
"""

from __future__ import annotations

import os
import time

from profharness.telemetry.sources import Column, Missing
from profharness.telemetry.sources.amd_devices import Die
from profharness.telemetry.sources.amd_metrics import sampled
from profharness.telemetry.sources.cost import affordable_hz

MAX_HZ = 5.0
LIST_NS = 1_000_000_000
_FILES = 2  # per process and device


class AmdWavesSource:
    """All devices in one read; a process that comes is seen at the next one."""

    name = "amd_waves"

    def __init__(self, dies: tuple[Die, ...], sysfs: str) -> None:
        self.max_hz = MAX_HZ
        self.columns: tuple[Column, ...] = ()
        self.devices = tuple(sampled(die) for die in dies)
        self._dies = dies
        self._folder = f"{sysfs}/class/kfd/kfd/proc"
        self._open: dict[tuple[str, int], tuple[int, ...]] = {}
        self._pids: list[str] = []
        self._links = -1
        self._list_next_ns = 0

    def probe(self) -> tuple[Missing, ...]:
        usable = [die for die in self._dies if die.gpu_id and die.compute_units]
        if not usable:
            return (Missing("wave_fill", "KFD, the compute driver, lists no device here"),)
        if not os.path.isdir(self._folder):  # noqa: PTH112 - no pathlib in the sampler
            return (Missing("wave_fill", f"{self._folder} is absent: this kernel does not show KFD's processes"),)
        self.columns = tuple(column for place, die in enumerate(self._dies) if die in usable for column in (
            Column("wave_fill", "share", "instant", 1 / die.compute_units, "d", place), Column("gpu_processes", "processes", "instant", device=place)))
        self._dies = tuple(usable)
        self.max_hz = affordable_hz(self, MAX_HZ)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """A device whose kernel offers no cu_occupancy has no wave_fill, though processes use it."""
        pids = self._processes()
        for place, die in enumerate(self._dies):
            found = [self._occupancy(pid, die.gpu_id) for pid in pids]
            users = [waves for waves in found if waves is not None]
            if len(users) == 0 or any(waves >= 0 for waves in users):
                row[at + 2 * place] = float(min(sum(max(waves, 0) for waves in users), die.compute_units))
            row[at + 2 * place + 1] = len(users)

    def _processes(self) -> list[str]:
        """Listed anew when their number changed (a folder counts its folders as links), one of them failed, or a second passed."""
        now = time.monotonic_ns()
        links = os.stat(self._folder).st_nlink  # noqa: PTH116 - five times a second: no objects for it
        if links != self._links or now >= self._list_next_ns:
            self._links, self._list_next_ns = links, now + LIST_NS
            self._pids = os.listdir(self._folder)  # noqa: PTH208 - as above
            present = {(pid, die.gpu_id) for pid in self._pids for die in self._dies}
            for key in [key for key, handles in self._open.items() if key not in present or len(handles) < _FILES]:
                self._close(key)  # what was not there yet when the process was new is tried again
        return self._pids

    def _occupancy(self, pid: str, gpu_id: int) -> int | None:
        """Filled compute units; None for a process that does not use the device, -1 where the kernel does not say."""
        handles = self._open.get((pid, gpu_id))
        if handles is None:
            handles = self._open[pid, gpu_id] = self._opened(pid, gpu_id)
        try:
            if len(handles) < _FILES:
                return -1 if handles and int(os.pread(handles[0], 32, 0)) else None
            uses = int(os.pread(handles[0], 32, 0)) > 0
        except (OSError, ValueError):  # the process ended
            self._close((pid, gpu_id))
            self._list_next_ns = 0
            return None
        try:
            filled = int(os.pread(handles[1], 32, 0))
        except (OSError, ValueError):  # EINVAL on parts without wave counters
            return -1 if uses else None
        return filled if uses or filled else None

    def _opened(self, pid: str, gpu_id: int) -> tuple[int, ...]:
        """The process's memory figure and its cu_occupancy, as far as they are there."""
        handles: list[int] = []
        for file in (f"vram_{gpu_id}", f"stats_{gpu_id}/cu_occupancy"):
            try:
                handles.append(os.open(f"{self._folder}/{pid}/{file}", os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                break
        return tuple(handles)

    def _close(self, key: tuple[str, int]) -> None:
        for handle in self._open.pop(key, ()):
            os.close(handle)
