"""How full the compute units are, without a profiler: KFD's cu_occupancy of every process on the
device.

The kernel reads each queue's wave counts from the hardware and gives them in units of completely
filled compute units, rounded up per process (kfd_get_cu_occupancy in
drivers/gpu/drm/amd/amdkfd/kfd_process.c); only GFX9 parts (Instinct) have it. The read stops
nothing, but it walks hardware registers: twice a second, and less often where it is dear.
"""

from __future__ import annotations

import errno
import os
import time

from profharness.telemetry.sources import Column, Missing
from profharness.telemetry.sources.amd.devices import Die
from profharness.telemetry.sources.amd.metrics import sampled
from profharness.telemetry.sources.cost import affordable_hz
from profharness.telemetry.sources.host import procfs
from profharness.telemetry.sources.ownership import Ownership

MAX_HZ = 2.0
LIST_NS = 1_000_000_000


class _Use:
    """A process on a device: whether it holds memory there, and its wave counts where the kernel
    has such a figure.
    """

    __slots__ = ("_memory", "_waves", "_waves_path", "holds")

    def __init__(self, folder: str, gpu_id: int) -> None:
        """Raises OSError or ValueError where the process does not know the device, or has ended."""
        self.holds = False
        self._waves: int | None = None
        self._waves_path = f"{folder}/stats_{gpu_id}/cu_occupancy"
        self._memory = os.open(f"{folder}/vram_{gpu_id}", os.O_RDONLY | os.O_CLOEXEC)

    def look(self) -> None:
        """What changes seldom; what was not there yet when the process was new is tried again.
        Raises OSError or ValueError after its end.
        """
        self.holds = int(os.pread(self._memory, 32, 0)) > 0
        if self._waves is None:
            self._waves = procfs.open_or_none(self._waves_path)

    def filled(self) -> int | None:
        """Filled compute units; None for a process that does not use the device, -1 where the
        kernel does not say. Raises OSError after its end.
        """
        try:
            waves = -1 if self._waves is None else int(os.pread(self._waves, 32, 0))
        except ValueError:
            waves = -1
        except OSError as error:
            if error.errno != errno.EINVAL:  # what parts without wave counters answer
                raise
            waves = -1
        return waves if self.holds or waves > 0 else None

    def close(self) -> None:
        for handle in (self._memory, self._waves):
            if handle is not None:
                os.close(handle)


class AmdWavesSource:
    """All devices in one read; a process that comes is seen at the next one, memory that it takes
    or frees within a second.
    """

    name = "amd_waves"

    def __init__(self, dies: tuple[Die, ...], sysfs: str, roots_file: str = "") -> None:
        self.max_hz = MAX_HZ
        self.columns: tuple[Column, ...] = ()
        self.devices = tuple(sampled(die) for die in dies)
        self._dies = dies
        self._ownership = Ownership(roots_file)
        self._folder = f"{sysfs}/class/kfd/kfd/proc"
        self._uses: dict[int, dict[str, _Use]] = {}  # by device, then process
        self._strangers: dict[int, int] = {}
        self._handle = -1
        self._links = -1
        self._list_next_ns = 0

    def probe(self) -> tuple[Missing, ...]:
        """Find the devices whose occupancy KFD tells; why not, where it tells none."""
        usable = [die for die in self._dies if die.gpu_id and die.compute_units]
        if not usable:
            return (Missing("wave_fill", "KFD, the compute driver, lists no device here"),)
        try:
            self._handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return (
                Missing(
                    "wave_fill",
                    f"{self._folder} is absent: this kernel does not show KFD's processes",
                ),
            )
        self.columns = tuple(
            column
            for place, die in enumerate(self._dies)
            if die in usable
            for column in (
                Column("wave_fill", "share", "instant", 1 / die.compute_units, "d", place),
                Column("gpu_processes", "processes", "instant", device=place),
                *(
                    [Column("gpu_processes_other", "processes", "instant", device=place)]
                    if self._ownership.knows
                    else []
                ),
            )
        )
        self._dies = tuple(usable)
        self.max_hz = affordable_hz(self, MAX_HZ)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """A device whose kernel offers no cu_occupancy has no wave_fill, though processes use
        it.
        """
        links = os.fstat(self._handle).st_nlink
        now = time.monotonic_ns()
        listed = (
            links != self._links or now >= self._list_next_ns
        )  # a folder counts its folders as links
        if listed:
            self._links, self._list_next_ns = links, now + LIST_NS
            self._list()
        width = len(self.columns) // len(self._dies)
        for first, die in zip(
            range(at, at + width * len(self._dies), width), self._dies, strict=True
        ):
            filled = self._filled(die.gpu_id)
            counted = [waves for waves in filled.values() if waves >= 0]
            if counted or not filled:
                row[first] = float(min(sum(counted), die.compute_units))
            row[first + 1] = len(filled)
            if self._ownership.knows:
                if listed:
                    self._strangers[die.gpu_id] = self._ownership.strangers(
                        int(pid) for pid in filled if pid.isdigit()
                    )
                row[first + 2] = self._strangers[die.gpu_id]

    def _list(self) -> None:
        """The processes that there are now, and what they hold."""
        pids = os.listdir(self._handle)  # noqa: PTH208 - once per second: no objects for it
        for die in self._dies:
            uses = self._uses.setdefault(die.gpu_id, {})
            for pid in uses.keys() - pids:
                uses.pop(pid).close()
            for pid in pids:
                try:
                    if pid not in uses:
                        uses[pid] = _Use(f"{self._folder}/{pid}", die.gpu_id)
                    uses[pid].look()
                except (OSError, ValueError):
                    if pid in uses:
                        uses.pop(pid).close()

    def _filled(self, gpu_id: int) -> dict[str, int]:
        """Filled compute units of each process on the device, -1 where the kernel does not say."""
        filled: dict[str, int] = {}
        for pid, use in self._uses[gpu_id].items():
            try:
                waves = use.filled()
            except OSError:  # the process ended
                self._list_next_ns = 0
                continue
            if waves is not None:
                filled[pid] = waves
        return filled
