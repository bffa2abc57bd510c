"""What NVIDIA's library says of one device, by one call per value; imported in the sampler's
process only.

`nvmlDeviceGetPowerUsage` is an average over one second on Ampere (except GA100) and newer, so power
comes from the field values 186 (instant) and 185 (average); 83 is the energy in mJ since the driver
was loaded, 74 and 75 count the ns for which the power and the thermal policy held the clock down
(nvml.h).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from profharness.telemetry.sources import Column, Missing, SampledDevice
from profharness.telemetry.sources.cost import affordable_hz
from profharness.telemetry.sources.ownership import Ownership
from profharness.telemetry.sources.shares import ShareClock

STATE_HZ = 10.0
FIELDS_HZ = 100.0
AMPERE = 7  # NVML_DEVICE_ARCH_AMPERE
_INSTANT, _AVERAGE, _ENERGY, _POWER_POLICY, _THERMAL_POLICY = 186, 185, 83, 74, 75
_MEMBERS = (
    "dVal",
    "uiVal",
    "ulVal",
    "ullVal",
    "sllVal",
    "siVal",
    "usVal",
)  # of the value's union, by its type
_STALE_US = 10_000_000
_POWER_BITS, _THERMAL_BITS, _EXTERNAL_BITS = 0x04, 0x20 | 0x40, 0x80  # nvmlClocksEventReason*

# metric, unit, form, scale, field
_FIELDS: tuple[tuple[str, str, str, float, int], ...] = (
    ("power_w", "W", "instant", 1e-3, _INSTANT),
    ("power_average", "W", "instant", 1e-3, _AVERAGE),
    ("power_energy", "W", "counter", 1e-3, _ENERGY),
    ("throttle_power", "share", "counter", 1e-9, _POWER_POLICY),
    ("throttle_thermal", "share", "counter", 1e-9, _THERMAL_POLICY),
)


class Parent(NamedTuple):
    """The device that a MIG instance is a part of, and its number there."""

    handle: Any
    instance: int


class Device(NamedTuple):
    """A device of the library, or a MIG instance of one, and how the files name it."""

    library: ModuleType
    handle: Any
    sampled: SampledDevice
    parent: Parent | None = None

    def call(self, name: str, *arguments: Any) -> Any:
        """One function of the library on this device. Raises its NVMLError."""
        return getattr(self.library, name)(self.handle, *arguments)


class NvmlFieldsSource:
    """Power, energy and throttling in one call, with the driver's own stamp (µs of the wall
    clock).
    """

    max_hz = FIELDS_HZ

    def __init__(self, device: Device) -> None:
        self.name = f"nvml{device.sampled.number}"
        self.devices: tuple[SampledDevice, ...] = (device.sampled,)
        self.columns: tuple[Column, ...] = ()
        self._device = device
        self._fields: list[int] = []
        self._usage = False

    def probe(self) -> tuple[Missing, ...]:
        """Ask for all fields at once; those that the device answers become columns."""
        missing = []
        columns = [Column("", "ns", "instant", device=0, role="stamp")]
        answers = self._ask([field for *_, field in _FIELDS])
        for (metric, unit, form, scale, field), answer in zip(_FIELDS, answers, strict=True):
            if isinstance(answer, str):
                missing.append(Missing(metric, f"{self.devices[0].identity}: {answer}"))
            else:
                self._fields.append(field)
                columns.append(
                    Column(
                        metric, unit, "counter" if form == "counter" else "instant", scale, device=0
                    )
                )
        if _INSTANT not in self._fields:
            missing = self._with_usage(columns, missing)
        self.columns = tuple(columns) if len(columns) > 1 else ()
        return tuple(missing)

    def read(self, row: list[int | float], at: int) -> None:
        """Fill the row by one call for all fields, stamped by the driver where it tells the
        time.
        """
        values = self._device.call("nvmlDeviceGetFieldValues", self._fields) if self._fields else ()
        stamp_us = 0
        for place, value in enumerate(values, at + 1):
            if value.nvmlReturn == 0:
                row[place] = _number(value)
                stamp_us = stamp_us or int(value.timestamp)
        if self._usage:
            row[at + 1 + len(self._fields)] = self._device.call("nvmlDeviceGetPowerUsage")
        boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        age_us = time.time_ns() // 1000 - stamp_us
        row[at] = boot - age_us * 1000 if 0 <= age_us < _STALE_US else boot

    def _ask(self, fields: Sequence[int]) -> list[float | str]:
        """Each field's value, or why it has none."""
        try:
            values = self._device.call("nvmlDeviceGetFieldValues", list(fields))
        except Exception as error:  # noqa: BLE001  whatever it says is the reason
            return [str(error)] * len(fields)
        return [
            _number(value)
            if value.nvmlReturn == 0
            else _error_text(self._device.library, value.nvmlReturn)
            for value in values
        ]

    def _with_usage(self, columns: list[Column], missing: list[Missing]) -> list[Missing]:
        """Without the instant field: the older call, which is an average on newer parts."""
        try:
            self._device.call("nvmlDeviceGetPowerUsage")
        except Exception:  # noqa: BLE001  no older call either: the field's reason stands
            return missing
        metric = "power_average" if self._averages() else "power_w"
        if metric == "power_average" and _AVERAGE in self._fields:
            return missing
        self._usage = True
        columns.append(Column(metric, "W", "instant", 1e-3, device=0))
        return [absent for absent in missing if absent.metric != metric]

    def _averages(self) -> bool:
        try:
            architecture = int(self._device.call("nvmlDeviceGetArchitecture"))
        except Exception:  # noqa: BLE001  an older driver
            # a driver that does not know the question is older than Ampere
            return False
        return architecture > AMPERE or (
            architecture == AMPERE
            and not any(part in self.devices[0].name for part in ("A100", "A30"))
        )


def _number(value: Any) -> int | float:
    number = getattr(value.value, _MEMBERS[value.valueType])
    return number if isinstance(number, int) else float(number)


def _error_text(library: ModuleType, status: int) -> str:
    try:
        return str(library.nvmlErrorString(status))
    except Exception:  # noqa: BLE001 - only the text is missing then
        return f"the library answers {status}"


class _Call(NamedTuple):
    column: Column
    take: Callable[[], int | float]


class NvmlStateSource:
    """Utilisation, clocks, temperature, memory, limits and processes: one call each, as often as
    their cost allows.
    """

    def __init__(self, device: Device, roots_file: str = "") -> None:
        self._ownership = Ownership(roots_file)
        self.name = f"nvml{device.sampled.number}_state"
        self.max_hz = STATE_HZ
        self.devices: tuple[SampledDevice, ...] = (device.sampled,)
        self.columns: tuple[Column, ...] = ()
        self._device = device
        self._calls: tuple[_Call, ...] = ()

    def probe(self) -> tuple[Missing, ...]:
        """Try each call once; what the library refuses is missing, with its words."""
        missing = []
        usable = []
        for call in self._wanted():
            try:
                call.take()
                usable.append(call)
            except Exception as error:  # noqa: BLE001 - whatever the library says is the reason
                missing.append(Missing(call.column.metric, f"{self.devices[0].identity}: {error}"))
        self._calls = tuple(usable)
        self.columns = tuple(call.column for call in usable)
        if usable:
            self.max_hz = max(affordable_hz(self, STATE_HZ), 1.0)
        return tuple(missing)

    def read(self, row: list[int | float], at: int) -> None:
        """One call that fails leaves its value out; raises the last error when none succeeds."""
        failed: Exception | None = None
        for place, call in enumerate(self._calls, at):
            try:
                row[place] = call.take()
            except Exception as error:  # noqa: BLE001  whatever it says, only this value is missing
                failed = error
                continue
        if failed is not None and all(
            row[place] == -1 for place in range(at, at + len(self._calls))
        ):
            raise failed

    def _wanted(self) -> tuple[_Call, ...]:
        ask, library = self._device.call, self._device.library
        external = ShareClock()

        def throttled() -> float:
            external.advance(
                time.clock_gettime_ns(time.CLOCK_BOOTTIME),
                1.0 if reasons(self._device) & _EXTERNAL_BITS else 0.0,
            )
            return external.total

        def instant(metric: str, unit: str, take: Callable[[], int], scale: float = 1.0) -> _Call:
            return _Call(Column(metric, unit, "instant", scale, device=0), take)

        return (
            instant("gpu_percent", "%", lambda: int(ask("nvmlDeviceGetUtilizationRates").gpu)),
            instant(
                "memory_activity",
                "share",
                lambda: int(ask("nvmlDeviceGetUtilizationRates").memory),
                0.01,
            ),
            instant(
                "clock_gpu",
                "MHz",
                lambda: int(ask("nvmlDeviceGetClockInfo", library.NVML_CLOCK_SM)),
            ),
            instant(
                "clock_memory",
                "MHz",
                lambda: int(ask("nvmlDeviceGetClockInfo", library.NVML_CLOCK_MEM)),
            ),
            instant(
                "temperature_edge",
                "°C",
                lambda: int(ask("nvmlDeviceGetTemperature", library.NVML_TEMPERATURE_GPU)),
            ),
            instant("gpu_memory_used", "B", lambda: int(ask("nvmlDeviceGetMemoryInfo").used)),
            instant("gpu_memory_total", "B", lambda: int(ask("nvmlDeviceGetMemoryInfo").total)),
            instant("power_limit", "W", lambda: int(ask("nvmlDeviceGetEnforcedPowerLimit")), 1e-3),
            instant(
                "gpu_processes",
                "processes",
                lambda: len(ask("nvmlDeviceGetComputeRunningProcesses")),
            ),
            *(
                [
                    instant(
                        "gpu_processes_other",
                        "processes",
                        lambda: self._ownership.strangers(
                            int(user.pid) for user in ask("nvmlDeviceGetComputeRunningProcesses")
                        ),
                    )
                ]
                if self._ownership.knows
                else []
            ),
            _Call(Column("throttle_external", "share", "counter", 1e-9, "d", 0), throttled),
        )


def reasons(device: Device) -> int:
    """Why the clock is held down, as bits; the call was renamed with driver 535."""
    name = "nvmlDeviceGetCurrentClocksEventReasons"
    if not hasattr(device.library, name):
        name = "nvmlDeviceGetCurrentClocksThrottleReasons"
    return int(device.call(name))
