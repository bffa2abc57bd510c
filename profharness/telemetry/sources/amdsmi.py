"""AMD devices through AMD's own library and its Python package (extra `amd`): a second opinion, asked for by name.

A package that does not fit the driver's library fails at import with KeyError or AttributeError, prints to stdout, or
aborts the process inside a call. So everything is first tried in a process of its own, and only what survived that
is loaded here. One call per device and read; energy is taken at 2^-16 J per count, since the resolution that the
library states is rounded (15.3 µJ, 0.27 % too much).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from profharness.telemetry.sources import Column, Missing, SampledDevice, Source, Target
from profharness.telemetry.sources.absent import AbsentSource
from profharness.telemetry.sources.amd_metrics import JOULES_PER_COUNT
from profharness.telemetry.sources.cost import affordable_hz

MAX_HZ = 10.0
TRIAL_S = 20.0
_UNSET = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})  # the package compares with one width only: the others leak through
# metric, unit, form, scale, keys of amdsmi_get_gpu_metrics_info in order of preference; lists give the mean of what is set
_WANTED: tuple[tuple[str, str, str, float, tuple[str, ...]], ...] = (
    ("gpu_percent", "%", "instant", 1.0, ("average_gfx_activity",)),
    ("memory_activity", "share", "instant", 0.01, ("average_umc_activity",)),
    ("power_w", "W", "instant", 1.0, ("current_socket_power", "average_socket_power")),
    ("power_energy", "W", "counter", JOULES_PER_COUNT, ("energy_accumulator",)),
    ("clock_gpu", "MHz", "instant", 1.0, ("current_gfxclks", "current_gfxclk")),
    ("clock_memory", "MHz", "instant", 1.0, ("current_uclk",)),
    ("temperature_edge", "°C", "instant", 1.0, ("temperature_edge",)),
    ("temperature_hotspot", "°C", "instant", 1.0, ("temperature_hotspot",)),
    ("temperature_memory", "°C", "instant", 1.0, ("temperature_mem",)))
_ZERO_IS_UNSET = frozenset({"temperature_edge", "temperature_hotspot", "temperature_memory"})
_STAMP = "system_clock_counter"


class _Field(NamedTuple):
    column: Column
    key: str


def number(value: Any, *, zero_unset: bool = False) -> float | None:
    """One value of the package's answer; None for 'N/A', all ones of any width, and what is no number."""
    if isinstance(value, (list, tuple)):
        found = [one for one in (number(part, zero_unset=zero_unset) for part in value) if one is not None]
        return sum(found) / len(found) if found else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value in _UNSET or (zero_unset and not value):
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
        who = self.devices[0].identity
        try:
            answer = self._ask()
        except Exception as error:  # noqa: BLE001 - AmdSmiLibraryException and more: what it says is the reason
            return tuple(Missing(metric, f"{who}: {error}") for metric, *_ in _WANTED)
        fields = [_Field(Column("", "ns", "instant", device=0, role="stamp"), _STAMP)] if number(answer.get(_STAMP)) else []
        missing = []
        for metric, unit, form, scale, keys in _WANTED:
            key = next((key for key in keys if number(answer.get(key), zero_unset=metric in _ZERO_IS_UNSET) is not None), None)
            if key is None:
                missing.append(Missing(metric, f"{who}: the library answers {answer.get(keys[0], 'nothing')}"))
            elif metric in ("power_w", "power_energy") and not number(answer.get(key)):
                missing.append(Missing(metric, f"{who}: the library answers 0: the other die of the package reports it"))
            else:
                column = Column(metric, unit, "counter" if form == "counter" else "instant", scale, "q" if form == "counter" else "d", 0)
                fields.append(_Field(column, key))
        self._fields = tuple(fields)
        self.columns = tuple(field.column for field in fields)
        self.max_hz = affordable_hz(self, MAX_HZ)
        return tuple(missing)

    def read(self, row: list[int | float], at: int) -> None:
        answer = self._ask()
        for place, (column, key) in enumerate(self._fields, at):
            value = number(answer.get(key), zero_unset=column.metric in _ZERO_IS_UNSET)
            if value is not None:
                row[place] = int(value) if column.type == "q" else float(value)

    def _ask(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._library.amdsmi_get_gpu_metrics_info(self._handle)
        return found


def open_sources(target: Target) -> tuple[Source, ...]:  # noqa: ARG001 - part of the contract; the library finds its devices itself
    """One source per device, after a trial in another process; or the reason why there is none."""
    if why := _trial():
        return (AbsentSource("amdsmi", why),)
    try:
        sources = _load()
    except Exception as error:  # noqa: BLE001 - as in the trial: KeyError and AttributeError are common
        return (AbsentSource("amdsmi", _words(error)),)
    return sources or (AbsentSource("amdsmi", "AMD's library finds no device"),)


def _trial() -> str:
    """Load and read everything once in another process: why that failed, or nothing."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100,PTH120 - no pathlib in the sampler
    code = f"import sys; sys.path.insert(0, {root!r}); from profharness.telemetry.sources.amdsmi import trial_main; sys.exit(trial_main())"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=TRIAL_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"AMD's library did not answer within {TRIAL_S:g} s"
    if done.returncode < 0:
        return f"AMD's library ended the process that tried it (signal {-done.returncode}): it does not fit this driver"
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else words[-1] if words else f"the trial ended with status {done.returncode}"


def trial_main() -> int:
    """The trial's side: says why not on stderr."""
    try:
        for source in _load():
            source.probe()
            if source.columns:
                source.read([0] * len(source.columns), 0)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        sys.stderr.write(_words(error) + "\n")
        return 1
    return 0


def _load() -> tuple[Source, ...]:
    """Raises whatever the package raises."""
    with _quiet():
        library = _package()
        library.amdsmi_init()
        handles: Sequence[Any] = library.amdsmi_get_processor_handles()
        return tuple(AmdsmiSource(library, handle, _device(library, handle, place)) for place, handle in enumerate(handles))


def _package() -> ModuleType:
    """The copy that ROCm brings along fits its library; else the installed one."""
    beside = f"{os.environ.get('ROCM_PATH') or '/opt/rocm'}/share/amd_smi"
    if os.path.isdir(f"{beside}/amdsmi"):  # noqa: PTH112 - no pathlib in the sampler
        sys.path.insert(0, beside)
    return import_module("amdsmi")


def _device(library: ModuleType, handle: Any, place: int) -> SampledDevice:
    address = str(library.amdsmi_get_gpu_device_bdf(handle)).lower()
    return SampledDevice(str(place), address, "AMD GPU", "amd", address, "as the library reports it")


@contextmanager
def _quiet() -> Iterator[None]:
    """The package prints to stdout when it fails; our stdout belongs to nobody here, but stderr is kept in a log."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _words(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "the amdsmi package is not installed (extra `amd`)"
    if isinstance(error, KeyError):
        return f"the amdsmi package does not find AMD's library ({error})"
    if isinstance(error, AttributeError):
        return f"the amdsmi package does not fit AMD's library ({error})"
    return f"{type(error).__name__}: {error}"
