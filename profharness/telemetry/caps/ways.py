"""The three ways to read and set the power cap of a package: the file of the amdgpu driver, AMD's
package `amdsmi`, and NVIDIA's nvidia-ml-py. Used in a child process only (`child`), because a
vendor's library that does not fit its driver may abort the process that calls it.

hwmon and amdsmi have µW (Documentation/hwmon/sysfs-interface; amdsmi.h, amdsmi_set_power_cap),
NVML has mW (nvml.h, nvmlDeviceSetPowerManagementLimit) and forgets the limit with the driver.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from profharness.telemetry.caps.records import Cap, Sharing, is_same
from profharness.telemetry.sources.amd import smi_library
from profharness.telemetry.sources.amd.devices import Die, find_dies

SWITCH = "PROFHARNESS_POWER_CAPS"
_ROOT_ALONE = "root alone may set it"
_MILLI = 1000


class ForbiddenHereError(OSError):
    """PROFHARNESS_POWER_CAPS forbids it."""


class Way(Protocol):
    """One way. Its errors are whatever the system or the library raises."""

    name: str

    def caps(self) -> tuple[Cap, ...]:
        """The packages that it knows, with the caps that they have now."""

    def read(self, key: str) -> int:
        """The cap of a package in µW."""

    def write(self, key: str, cap_uw: int) -> None:
        """Set it."""


def _allow(is_emulated: bool, what: str) -> None:
    """Raises ForbiddenHereError where the switch forbids a change of this."""
    switch = os.environ.get(SWITCH, "")
    if switch == "off" or (switch == "emulated" and not is_emulated):
        raise ForbiddenHereError(f"{SWITCH}={switch} forbids to set the cap of {what}")


def switched_off() -> str:
    """Why no cap may be set on this node at all; empty where some may."""
    return f"{SWITCH}=off forbids it" if os.environ.get(SWITCH) == "off" else ""


class Hwmon:
    """`power1_cap` below the PCI device of the die that reports for its package."""

    name = "hwmon"

    def __init__(self, sysfs: str) -> None:
        self._dies = find_dies(sysfs)

    def caps(self) -> tuple[Cap, ...]:
        """Of each die that reports for its package, where the driver tells a cap."""
        found = []
        for die in self._dies:
            file = f"{die.hwmon}/power1_cap"
            now = _number(file) if die.reports_package and die.hwmon else 0
            if now:
                found.append(
                    Cap(
                        self.name,
                        die.address,
                        die.name,
                        now,
                        _number(f"{file}_min"),
                        _number(f"{file}_max"),
                        sharing(self._dies, die.address),
                        "" if os.access(file, os.W_OK) else f"this user may not write {file}",
                    )
                )
        return tuple(found)

    def read(self, key: str) -> int:
        with open(self._file(key), encoding="ascii") as file:  # noqa: PTH123  as its neighbours
            return int(file.read())

    def write(self, key: str, cap_uw: int) -> None:
        """Raises KeyError for a device that is not there, OSError as the driver does."""
        place = self._file(key)
        real = os.path.realpath(place)
        _allow(not real.startswith(("/sys/", "/proc/")), place)
        handle = os.open(place, os.O_WRONLY | os.O_CLOEXEC)  # never made: the driver has it
        try:
            os.write(handle, b"%d\n" % cap_uw)
        finally:
            os.close(handle)

    def _file(self, key: str) -> str:
        """Raises KeyError for a device that is not there."""
        die = next((one for one in self._dies if one.address == key and one.hwmon), None)
        if die is None:
            raise KeyError(f"no device {key}")
        return f"{die.hwmon}/power1_cap"


def sharing(dies: Sequence[Die], package: str) -> tuple[Sharing, ...]:
    """The dies and partitions of a package."""
    return tuple(
        Sharing(int(die.number), die.identity, "rocm") for die in dies if die.package == package
    )


class Amdsmi:
    """AMD's package; the first sensor is that of the whole socket."""

    name = "amdsmi"

    def __init__(self, library: ModuleType, sysfs: str, *, is_root: bool) -> None:
        self._library = library
        self._is_root = is_root
        self._dies = find_dies(sysfs)
        library.amdsmi_init()
        self._handles: dict[str, Any] = {
            str(library.amdsmi_get_gpu_device_bdf(handle)).lower(): handle
            for handle in library.amdsmi_get_processor_handles()
        }

    def caps(self) -> tuple[Cap, ...]:
        """Of each processor with a cap: the other die of a package has 0."""
        found = []
        for place, (address, handle) in enumerate(self._handles.items()):
            info = self._library.amdsmi_get_power_cap_info(handle)
            now = _whole(info.get("power_cap"))
            if not now:  # the other die of the package has it
                continue
            shared = sharing(self._dies, address) or (Sharing(place, address, "rocm"),)
            why_not = "" if self._is_root else _ROOT_ALONE
            low, high = (_whole(info.get(f"{end}_power_cap")) for end in ("min", "max"))
            found.append(Cap(self.name, address, "AMD GPU", now, low, high, shared, why_not))
        return tuple(found)

    def read(self, key: str) -> int:
        return _whole(self._library.amdsmi_get_power_cap_info(self._handles[key])["power_cap"])

    def write(self, key: str, cap_uw: int) -> None:
        """Raises what the library raises: AmdSmiLibraryException without permission."""
        _allow(hasattr(self._library, "STAND_IN"), key)
        self._library.amdsmi_set_power_cap(self._handles[key], 0, cap_uw)


class Nvml:
    """NVIDIA's package; the MIG instances of a device share its limit."""

    name = "nvml"

    def __init__(self, library: ModuleType, *, is_root: bool) -> None:
        self._library = library
        self._is_root = is_root
        library.nvmlInit()
        handles = map(library.nvmlDeviceGetHandleByIndex, range(library.nvmlDeviceGetCount()))
        self._handles = {_text(library.nvmlDeviceGetUUID(handle)): handle for handle in handles}

    def caps(self) -> tuple[Cap, ...]:
        """Of each device; a limit that cannot be read is an error of the library."""
        library, found = self._library, []
        for place, (uuid, handle) in enumerate(self._handles.items()):
            now = int(library.nvmlDeviceGetPowerManagementLimit(handle))
            low, high = library.nvmlDeviceGetPowerManagementLimitConstraints(handle)
            found.append(
                Cap(
                    self.name,
                    uuid,
                    _text(library.nvmlDeviceGetName(handle)),
                    now * _MILLI,
                    int(low) * _MILLI,
                    int(high) * _MILLI,
                    (Sharing(place, uuid, "cuda"),),
                    "" if self._is_root else _ROOT_ALONE,
                )
            )
        return tuple(found)

    def read(self, key: str) -> int:
        return int(self._library.nvmlDeviceGetPowerManagementLimit(self._handles[key])) * _MILLI

    def write(self, key: str, cap_uw: int) -> None:
        """Raises NVMLError as the library does."""
        _allow(hasattr(self._library, "STAND_IN"), key)
        self._library.nvmlDeviceSetPowerManagementLimit(self._handles[key], cap_uw // _MILLI)


def open_way(name: str, sysfs: str) -> Way:
    """Raises whatever a vendor's package raises, ImportError where it is not installed."""
    is_root = os.geteuid() == 0
    if name == Hwmon.name:
        return Hwmon(sysfs)
    if name == Amdsmi.name:
        return Amdsmi(smi_library.package(), sysfs, is_root=is_root)
    return Nvml(import_module("pynvml"), is_root=is_root)


NAMES = (Hwmon.name, Amdsmi.name, Nvml.name)
"""In the order in which they are tried."""


def caps_of(name: str, sysfs: str) -> tuple[tuple[Cap, ...], str]:
    """The caps of one way, or why it has none."""
    try:
        caps = open_way(name, sysfs).caps()
    except Exception as error:  # noqa: BLE001  what it says is the reason
        return (), smi_library.words_of(error) if name == Amdsmi.name else _said(error)
    return caps, "" if caps else "it has no device with a power cap"


def set_and_read(way: Way, key: str, cap_uw: int) -> None:
    """Set a cap and look whether it is there. Raises OSError where the device keeps another."""
    way.write(key, cap_uw)
    now = way.read(key)
    if not is_same(now, cap_uw):
        raise OSError(f"the device keeps {now / 1e6:g} W, not {cap_uw / 1e6:g} W")


def _said(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "nvidia-ml-py is not installed (extra `nvidia`)"
    return str(error) or type(error).__name__


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123  as its neighbours
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _whole(value: Any) -> int:
    """A value of amdsmi; 0 for 'N/A' and all ones."""
    return int(smi_library.number(value) or 0)


def _text(value: str | bytes) -> str:
    """Older versions of the package give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
