"""What counting on a whole device will show, found out before anything is loaded: the devices from
KFD's topology, this process's capabilities, and whether the kernel driver knows the profiler
interface.

Counters of the graphics block and of the L2 cache see the work of every process. Those of the
shaders see a process's waves only where the driver has set a bit on its queues, which it does for a
profiler with CAP_PERFMON or CAP_SYS_ADMIN ("kfd_ioctl_profiler" in the amdgpu driver; KFD 1.23 and
newer upstream, and AMD's own driver of ROCm 7 and newer).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from typing import Literal, NamedTuple

from profharness.telemetry.sources.amd.counting.sets import SETS, CounterSet, arch_name
from profharness.telemetry.sources.amd.devices import Die, kfd_facts
from profharness.telemetry.sources.host import procfs

Level = Literal["full", "fabric-only", "none"]
Ioctl = Callable[[int, int, bytes], bytes]

KFD_VERSION = 0x80084B01  # AMDKFD_IOC_GET_VERSION: major and minor, u32 each
UPSTREAM, UPSTREAM_BYTES = 0xC0104B28, 16
OUT_OF_TREE, OUT_OF_TREE_BYTES = 0xC0284B86, 40
ASK_VERSION = 2  # the operation that only answers: nothing is locked or switched
UPSTREAM_SINCE = (1, 23)
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38
GUESTS = frozenset({"0x7410", "0x74b5", "0x74b6", "0x74b9", "0x75b0", "0x75b3"})
"""Device ids of virtual functions (libdrm's amdgpu.ids)."""


class Countable(NamedTuple):
    """A device that can be counted on, and what formulas need to know of it, from KFD's topology.

    `waves` is how many waves one compute unit holds at most.
    """

    die: Die
    counters: CounterSet
    compute_units: int
    simds: int
    waves: int
    dies: int


class Preflight(NamedTuple):
    """What to expect, and why it is not more; the devices, and the others with their reasons."""

    level: Level
    why: str
    devices: tuple[Countable, ...]
    refused: tuple[tuple[str, str], ...] = ()


def preflight(
    dies: list[Die],
    sysfs: str,
    *,
    kfd: str = "/dev/kfd",
    status: str = "/proc/self/status",
    ioctl: Ioctl | None = None,
) -> Preflight:
    """Look at the devices, then at the driver; `ioctl` (handle, number, argument) stands in for the
    kernel's in tests.
    """
    devices, refused = [], []
    for die in dies:
        found = countable(die, sysfs)
        if isinstance(found, str):
            refused.append((die.identity, found))
        else:
            devices.append(found)
    if not devices:
        why = "; ".join(dict.fromkeys(why for _, why in refused)) or "there is no AMD device"
        return Preflight("none", why, (), tuple(refused))
    level, why = _access(kfd, status, ioctl or _ioctl)
    return Preflight(level, why, tuple(devices), tuple(refused))


def countable(die: Die, sysfs: str) -> Countable | str:
    """What formulas need to know of a device, or why it has no counters that they fit."""
    facts = kfd_facts(die, sysfs)
    if not facts:
        return "KFD, the compute driver, does not list it"
    version = facts.get("gfx_target_version", 0)
    counters = SETS.get(version)
    if counters is None:
        return (
            f"{arch_name(version)} has no counters that count a whole device exactly: "
            "only MI200, MI300 and MI350 do (gfx90a, gfx942, gfx950)"
        )
    if _is_guest(die.folder):
        return "it is a virtual function (SR-IOV), whose counters belong to the host"
    simds, per_unit = facts.get("simd_count", 0), max(facts.get("simd_per_cu", 4), 1)
    return Countable(
        die,
        counters,
        simds // per_unit,
        simds,
        facts.get("max_waves_per_simd", 8) * per_unit,
        max(facts.get("num_xcc", 1), 1),
    )


def _is_guest(folder: str) -> bool:
    if os.path.exists(f"{folder}/physfn"):  # noqa: PTH110 - no pathlib in the sampler
        return True
    try:
        return procfs.read_once(f"{folder}/device").decode(errors="replace").strip() in GUESTS
    except OSError:
        return False


def _access(kfd: str, status: str, ioctl: Ioctl) -> tuple[Level, str]:
    try:
        handle = os.open(kfd, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        words = {
            errno.ENOENT: f"{kfd} is absent: the compute driver is not here, or not in this "
            "container",
            errno.EACCES: f"this user may not open {kfd} (it belongs to the group render or video)",
            errno.EPERM: f"this job's control group forbids {kfd}",
        }
        return "none", words.get(error.errno or 0, f"{kfd} cannot be opened ({error.strerror})")
    try:
        version = _kfd_version(handle, ioctl)
        knows = _knows_profiler(handle, ioctl, version)
    finally:
        os.close(handle)
    if not knows:
        return (
            "fabric-only",
            (
                f"the amdgpu driver (KFD {version[0]}.{version[1]}) has no profiler interface: "
                "shader counters see no other process; AMD's driver of ROCm 7 or newer has it"
            ),
        )
    if not may_profile(status):
        return (
            "fabric-only",
            (
                "this process lacks CAP_PERFMON: shader counters see no other process; "
                "root has it, docker --cap-add=PERFMON gives it, an administrator can (setcap)"
            ),
        )
    return "full", ""


def may_profile(status: str = "/proc/self/status") -> bool:
    """Whether the kernel's perfmon_capable() holds: bit 38 or 21 of the effective capabilities."""
    try:
        text = procfs.read_once(status).decode(errors="replace")
    except OSError:
        return False
    line = next((line for line in text.split("\n") if line.startswith("CapEff:")), "CapEff: 0")
    held = int(line.split()[1], 16)
    return bool(held >> CAP_PERFMON & 1 or held >> CAP_SYS_ADMIN & 1)


def _kfd_version(handle: int, ioctl: Ioctl) -> tuple[int, int]:
    try:
        major, minor = struct.unpack("<II", ioctl(handle, KFD_VERSION, bytes(8)))
    except OSError:
        return 0, 0
    return major, minor


def _knows_profiler(handle: int, ioctl: Ioctl, version: tuple[int, int]) -> bool:
    """Whether either form of the interface answers for its version. Who may not ask knows at least
    that it is there.
    """
    forms = [(OUT_OF_TREE, OUT_OF_TREE_BYTES)]
    if version >= UPSTREAM_SINCE:  # before, the number was free for something else
        forms.insert(0, (UPSTREAM, UPSTREAM_BYTES))
    for number, size in forms:
        try:
            ioctl(handle, number, struct.pack("<I", ASK_VERSION).ljust(size, b"\0"))
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EACCES):
                return True
            continue
        return True
    return False


def _ioctl(handle: int, number: int, argument: bytes) -> bytes:
    return fcntl.ioctl(handle, number, argument)
