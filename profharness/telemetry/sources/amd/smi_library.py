"""AMD's Python package `amdsmi` and the library below it: imported in the sampler's child only
(`smi_child`).

One call per device and read. Energy is taken at 2^-16 J per count, since the resolution that the
library states is rounded (15.3 µJ, 0.27 % too much).
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from profharness.telemetry.sources import STALE_NS, Column, Missing, SampledDevice
from profharness.telemetry.sources.amd.metrics import JOULES_PER_COUNT
from profharness.telemetry.sources.cost import affordable_hz

MAX_HZ = 10.0
_UNSET = frozenset(
    {0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF}
)  # the package compares with one width only: the others leak through
# metric, unit, form, scale, keys of amdsmi_get_gpu_metrics_info in order of preference; lists give
# the mean of what is set
_WANTED: tuple[tuple[str, str, str, float, tuple[str, ...]], ...] = (
    ("gpu_percent", "%", "instant", 1.0, ("average_gfx_activity",)),
    ("memory_activity", "share", "instant", 0.01, ("average_umc_activity",)),
    ("power_w", "W", "instant", 1.0, ("current_socket_power", "average_socket_power")),
    ("power_energy", "W", "counter", JOULES_PER_COUNT, ("energy_accumulator",)),
    ("clock_gpu", "MHz", "instant", 1.0, ("current_gfxclks", "current_gfxclk")),
    ("clock_memory", "MHz", "instant", 1.0, ("current_uclk",)),
    ("temperature_edge", "°C", "instant", 1.0, ("temperature_edge",)),
    ("temperature_hotspot", "°C", "instant", 1.0, ("temperature_hotspot",)),
    ("temperature_memory", "°C", "instant", 1.0, ("temperature_mem",)),
)
_ZERO_IS_UNSET = frozenset({"temperature_edge", "temperature_hotspot", "temperature_memory"})
_STAMP = "system_clock_counter"
_LIBRARY = "libamd_smi.so"
_SONAMES = (27, 26, 25, 24, 23)  # ROCm 10 has 27, 7 has 26


class _Field(NamedTuple):
    column: Column
    key: str


def number(value: Any, *, zero_unset: bool = False) -> float | None:
    """One value of the package's answer; None for 'N/A', all ones of any width, and what is no
    number.
    """
    if isinstance(value, (list, tuple)):
        numbers = [
            part_value
            for part_value in (number(part, zero_unset=zero_unset) for part in value)
            if part_value is not None
        ]
        return sum(numbers) / len(numbers) if numbers else None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or value in _UNSET
        or (zero_unset and not value)
    ):
        return None
    return value


class AmdsmiSource:
    """One device. A secondary die answers 0 for power and energy, which are then left out."""

    def __init__(self, library: ModuleType, handle: Any, device: SampledDevice) -> None:
        self.name = f"amdsmi{device.number}"
        self.max_hz = MAX_HZ
        self.devices: tuple[SampledDevice, ...] = (device,)
        self.columns: tuple[Column, ...] = ()
        self._library = library
        self._handle = handle
        self._fields: tuple[_Field, ...] = ()

    def probe(self) -> tuple[Missing, ...]:
        """Ask the library once: metrics that it answers with a number become columns, the others
        come back with its reason.
        """
        who = self.devices[0].identity
        try:
            answer = self._ask()
        except Exception as error:  # noqa: BLE001  its word is the reason
            # AmdSmiLibraryException and more: what it says is the reason
            return tuple(Missing(metric, f"{who}: {error}") for metric, *_ in _WANTED)
        fields = [_Field(Column("", "ns", "instant", device=0, role="stamp"), _STAMP)]
        missing = []
        for metric, unit, form, scale, keys in _WANTED:
            key = next(
                (
                    key
                    for key in keys
                    if number(answer.get(key), zero_unset=metric in _ZERO_IS_UNSET) is not None
                ),
                None,
            )
            if key is None:
                missing.append(
                    Missing(metric, f"{who}: the library answers {answer.get(keys[0], 'nothing')}")
                )
            elif metric in ("power_w", "power_energy") and not number(answer.get(key)):
                missing.append(
                    Missing(
                        metric,
                        f"{who}: the library answers 0: the other die of the package reports it",
                    )
                )
            else:
                column = Column(
                    metric,
                    unit,
                    "counter" if form == "counter" else "instant",
                    scale,
                    "q" if form == "counter" else "d",
                    0,
                )
                fields.append(_Field(column, key))
        self._fields = tuple(fields)
        self.columns = tuple(field.column for field in fields) if len(fields) > 1 else ()
        self.max_hz = affordable_hz(self, MAX_HZ)
        return tuple(missing)

    def read(self, row: list[int | float], at: int) -> None:
        """Fill the row with one answer of the library, stamped by the device's own clock where that
        is CLOCK_BOOTTIME.
        """
        answer = self._ask()
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        stamp = number(answer.get(_STAMP)) or 0
        row[at] = int(stamp) if abs(now - stamp) < STALE_NS else now
        for place, (column, key) in enumerate(self._fields[1:], at + 1):
            value = number(answer.get(key), zero_unset=column.metric in _ZERO_IS_UNSET)
            if value is not None:
                row[place] = int(value) if column.type == "q" else float(value)

    def _ask(self) -> Mapping[str, Any]:
        metrics: Mapping[str, Any] = self._library.amdsmi_get_gpu_metrics_info(self._handle)
        return metrics


def load() -> tuple[AmdsmiSource, ...]:
    """One source per device. Raises whatever the package raises."""
    library = package()
    library.amdsmi_init()
    handles: Sequence[Any] = library.amdsmi_get_processor_handles()
    return tuple(
        AmdsmiSource(library, handle, _device(library, handle, place))
        for place, handle in enumerate(handles)
    )


def package() -> ModuleType:
    """The copy that ROCm brings along fits its library; else the installed one."""
    for root in roots():
        beside = f"{root}/share/amd_smi"
        if os.path.isdir(f"{beside}/amdsmi"):  # noqa: PTH112 - no pathlib in the sampler
            sys.path.insert(0, beside)
            break
    with versioned_library():
        return import_module("amdsmi")


def roots() -> tuple[str, ...]:
    """Where ROCm may lie, the first choice first: as the environment says, where packages put it,
    and in wheels (`_rocm_sdk_core`, the name perhaps with a suffix).
    """
    wheels = (
        f"{folder}/{name}"
        for folder in sys.path
        if os.path.isdir(folder)  # noqa: PTH112 - no pathlib in the sampler
        for name in sorted(os.listdir(folder))  # noqa: PTH208 - no pathlib in the sampler
        if name.startswith("_rocm_sdk_core")
    )
    return (os.environ.get("ROCM_PATH") or "/opt/rocm", "/opt/rocm/core", *wheels)


@contextmanager
def versioned_library() -> Iterator[None]:
    """While this is open, a load of `libamd_smi.so` that fails takes the newest version that is
    there: an installation to run programs with has `libamd_smi.so.27` alone, and the package asks
    for the name that comes with the files to build programs with.
    """
    load = ctypes.CDLL

    def loaded(name: str | None, *arguments: Any, **options: Any) -> ctypes.CDLL:
        try:
            return load(name, *arguments, **options)
        except OSError:
            if not str(name).endswith(_LIBRARY):
                raise
            for candidate in _versions(str(name)):
                with suppress(OSError):
                    return load(candidate, *arguments, **options)
            raise

    ctypes.CDLL = loaded  # type: ignore[assignment,misc]  # put back below
    try:
        yield
    finally:
        ctypes.CDLL = load  # type: ignore[misc]  # what it was


def _versions(asked: str) -> Iterator[str]:
    """Names with a version, the newest first: in the folder that was asked for, on the loader's
    path, and in each ROCm.
    """
    for version in _SONAMES:
        yield f"{asked}.{version}"
        yield f"{_LIBRARY}.{version}"
        for root in roots():
            yield f"{root}/lib/{_LIBRARY}.{version}"


def _device(library: ModuleType, handle: Any, place: int) -> SampledDevice:
    address = str(library.amdsmi_get_gpu_device_bdf(handle)).lower()
    return SampledDevice(
        str(place), address, "AMD GPU", "amd", address, "as the library reports it"
    )


def words_of(error: Exception) -> str:
    """What an error of the package means."""
    if isinstance(error, ModuleNotFoundError):
        return "the amdsmi package is not installed (extra `amd`)"
    if isinstance(error, KeyError):
        return f"the amdsmi package does not find AMD's library ({error})"
    if isinstance(error, AttributeError):
        return f"the amdsmi package does not fit AMD's library ({error})"
    return f"{type(error).__name__}: {error}"
