"""What accelerators can hold and do: the table `devices.toml` as typed records, and the lookup of a
device in it.

A device is found by PCI id, by its marketing name, or by architecture and number of compute units.
What the table does not know degrades to what was observed: an unknown device has its own compute
units and nothing else, one of a known architecture also the limits and the operations per clock of
that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import msgspec

Dtype = Literal[
    "fp64",
    "fp64_matrix",
    "fp32",
    "fp32_matrix",
    "tf32",
    "fp16",
    "bf16",
    "fp8",
    "fp6",
    "fp4",
    "int8",
]
_VECTOR: frozenset[Dtype] = frozenset({"fp64", "fp32"})
_SAME_MEMORY = 0.1
_TABLE = Path(__file__).with_name("devices.toml")


class AmdLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One AMD compute unit. Registers are per SIMD and lane (vector) or per SIMD (scalar), LDS in
    bytes.

    `unified`: architectural and accumulation registers share one file. `multi_wave_workgroups` is
    how many workgroups of more than one wave a unit holds (its barriers).
    """

    wave_size: int
    simds: int
    waves_per_simd: int
    vector_registers: int
    vector_granule: int
    unified: bool
    scalar_registers: int
    scalar_granule: int
    lds_bytes: int
    lds_granule: int
    multi_wave_workgroups: int
    workgroup_size: int

    @property
    def waves(self) -> int:
        """Waves that one unit holds."""
        return self.simds * self.waves_per_simd

    @property
    def threads(self) -> int:
        """Work-items that one unit holds."""
        return self.waves * self.wave_size


class NvidiaLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One NVIDIA SM: its four parts share warps and registers evenly; shared memory in bytes,
    `shared_reserved` per block.

    Registers are allocated per warp in granules of 256, on every compute capability from 3.0 on.
    """

    warps: int
    blocks: int
    registers: int
    shared_bytes: int
    shared_granule: int
    shared_reserved: int
    wave_size: int = 32
    parts: int = 4
    register_granule: int = 256
    registers_per_thread: int = 255
    workgroup_size: int = 1024

    @property
    def waves(self) -> int:
        """Warps that one SM holds."""
        return self.warps

    @property
    def threads(self) -> int:
        """Threads that one SM holds."""
        return self.warps * self.wave_size


class Architecture(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One generation. `flops_per_clock` is per compute unit, dense, two operations per
    multiply-add.

    `processor_units` compute units make one workgroup processor, which HIP counts as a
    multiprocessor where the driver counts compute units.
    """

    vendor: Literal["AMD", "NVIDIA"]
    flops_per_clock: dict[Dtype, int]
    sources: dict[str, str]
    amd: AmdLimits | None = None
    nvidia: NvidiaLimits | None = None
    processor_units: int = 1

    @property
    def limits(self) -> AmdLimits | NvidiaLimits | None:
        """What one compute unit holds, None where nobody says."""
        return self.amd or self.nvidia


class DeviceModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One product as sold. Figures are of the whole package; `listed_dies` of its `dies` make one
    device for the runtime.

    Bandwidth in 10^9 B/s, memory in GiB, clocks in MHz, power in W; None where the vendor says
    nothing. `gemm_tflops` is what the largest matrix product was measured to reach, in 10^12
    FLOP/s.
    """

    name: str
    architecture: str
    names: tuple[str, ...]
    sources: dict[str, str]
    compute_units: int | None = None
    clock_mhz: int | None = None
    memory_gb_s: float | None = None
    memory_gib: int | None = None
    pci_ids: tuple[str, ...] = ()
    dies: int = 1
    listed_dies: int | None = None
    partitions: dict[str, int] = {}
    matrix_clock_mhz: int | None = None
    power_w: int | None = None
    gemm_tflops: dict[Dtype, float] = {}

    @property
    def listed_units(self) -> int | None:
        """Compute units of one device as the runtime lists it when nothing is partitioned; None
        where the package's are not known.
        """
        if self.compute_units is None:
            return None
        return self.compute_units * (self.listed_dies or self.dies) // self.dies

    @property
    def partition_units(self) -> dict[str, int]:
        """Compute units of one device in each compute mode; empty where the package's are not
        known.
        """
        if self.compute_units is None:
            return {}
        return {
            mode: dies * self.compute_units // self.dies for mode, dies in self.partitions.items()
        }


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file: architectures by name, devices in order of lookup, and what the source keys
    mean.
    """

    sources: dict[str, str]
    architectures: dict[str, Architecture]
    devices: tuple[DeviceModel, ...]


@cache
def table() -> Table:
    """The table, read once."""
    return msgspec.toml.decode(_TABLE.read_bytes(), type=Table)


@dataclass(frozen=True)
class Accelerator:
    """One device as the runtime lists it: a whole package, one of its dies, or a partition.

    `model` and `architecture` are None where the table does not know them; `compute_units` and
    `clock_mhz` are as observed where that is known, else the table's.
    """

    name: str
    compute_units: int | None
    clock_mhz: int | None = None
    architecture_name: str = ""
    architecture: Architecture | None = None
    model: DeviceModel | None = None

    @property
    def fraction(self) -> float:
        """The part of the package that this device is, by its compute units; 1 where the package is
        not known.
        """
        if self.model is None or not self.compute_units or self.model.compute_units is None:
            return 1.0
        return min(self.compute_units / self.model.compute_units, 1.0)

    @property
    def dies(self) -> int | None:
        """GCDs or XCCs that this device spans; None where the package is not known."""
        return None if self.model is None else max(round(self.model.dies * self.fraction), 1)

    @property
    def partition(self) -> str:
        """The compute mode (SPX, DPX, ...) that has this many compute units; empty where none
        has.
        """
        if self.model is None or not self.compute_units:
            return ""
        modes = self.model.partition_units
        return next((mode for mode, units in modes.items() if units == self.compute_units), "")

    @property
    def limits(self) -> AmdLimits | NvidiaLimits | None:
        """What one compute unit holds, where the architecture is known."""
        return None if self.architecture is None else self.architecture.limits

    def peak(self, dtype: Dtype, clock_mhz: float | None = None) -> float | None:
        """Dense peak in FLOP/s at the given clock (default: the one of the data sheet); None where
        not known.
        """
        operations = (
            None if self.architecture is None else self.architecture.flops_per_clock.get(dtype)
        )
        clock = clock_mhz or self._clock(dtype)
        if not operations or not clock or not self.compute_units:
            return None
        return float(operations) * self.compute_units * clock * 1e6

    def best_peak(self, dtype: Dtype, clock_mhz: float | None = None) -> tuple[float, Dtype] | None:
        """The higher of the vector and the matrix peak of a type, and which one it is."""
        forms: tuple[Dtype, ...] = {
            "fp32": ("fp32_matrix", "fp32"),
            "fp64": ("fp64_matrix", "fp64"),
            # mypy widens the literals of a dict's values
        }.get(dtype, (dtype,))  # type: ignore[assignment]  # mypy widens literals
        known = [(peak, form) for form in forms if (peak := self.peak(form, clock_mhz)) is not None]
        return max(known) if known else None

    def reached_share(self, dtype: Dtype) -> float | None:
        """The share of its peak that the largest matrix product of this type was measured to reach
        on such a device; None where nobody published it.
        """
        measured = None if self.model is None else self.model.gemm_tflops.get(dtype)
        peak = self.peak(dtype)
        if measured is None or not peak:
            return None
        return measured * 1e12 * self.fraction / peak

    @property
    def bandwidth(self) -> float | None:
        """Memory bandwidth of the data sheet in B/s, for this part of the package."""
        if self.model is None or self.model.memory_gb_s is None:
            return None
        return self.model.memory_gb_s * 1e9 * self.fraction

    @property
    def unknown(self) -> tuple[str, ...]:
        """What no source gives for this device, in words: `peaks`, `clock`, `memory bandwidth`,
        `compute units`, `limits of a compute unit`; empty for a device that is known whole.
        """
        operations = None if self.architecture is None else self.architecture.flops_per_clock
        every = (
            ("operations per clock", operations),
            ("clock", self.clock_mhz),
            ("compute units", self.compute_units),
            ("memory bandwidth", self.bandwidth),
            ("limits of a compute unit", self.limits),
        )
        return tuple(what for what, known in every if not known)

    def _clock(self, dtype: Dtype) -> float | None:
        if self.model is None or self.model.clock_mhz is None:
            return self.clock_mhz
        if (
            dtype not in _VECTOR
            and self.model.matrix_clock_mhz is not None
            and not dtype.startswith("fp64")
        ):
            return self.model.matrix_clock_mhz
        return self.model.clock_mhz


def identify(
    *,
    name: str = "",
    architecture: str = "",
    compute_units: int | None = None,
    pci_id: str = "",
    clock_mhz: int | None = None,
    memory_bytes: int | None = None,
) -> Accelerator:
    """The device of these observed facts; each may be missing. `pci_id` is `vendor:device` in
    hexadecimal.

    `memory_bytes` tells products apart that share architecture and compute units, where nothing
    else does.

    `architecture` is gfx90a or sm_80, with or without feature suffixes as `gfx90a:sramecc+:xnack-`.
    """
    target = architecture.partition(":")[0]
    model = _by_pci(pci_id) or _by_name(name) or _by_units(target, compute_units, memory_bytes)
    if model is not None and target and model.architecture != target:
        model = None  # a name that contradicts the hardware says nothing
    target = target or (model.architecture if model is not None else "")
    known = table().architectures.get(target)
    units = _of_processors(compute_units, model, known) or (model.listed_units if model else None)
    clock = clock_mhz or (model.clock_mhz if model is not None else None)
    return Accelerator(
        name=name or (model.name if model is not None else target),
        compute_units=units,
        clock_mhz=clock,
        architecture_name=target,
        architecture=known,
        model=model,
    )


def _of_processors(
    seen: int | None, model: DeviceModel | None, architecture: Architecture | None
) -> int | None:
    """Compute units of a device; HIP's multiprocessors are workgroup processors of several units,
    and are told by being that many times fewer than the product has.
    """
    if seen and model is not None and architecture is not None:
        units = seen * architecture.processor_units
        return units if units == model.listed_units else seen
    return seen


def _by_pci(pci_id: str) -> DeviceModel | None:
    wanted = pci_id.lower()
    return (
        next((model for model in table().devices if wanted in model.pci_ids), None)
        if wanted
        else None
    )


@lru_cache(maxsize=256)  # a trace may name thousands of devices, nearly all of them alike
def _by_name(name: str) -> DeviceModel | None:
    """The longest of the table's names that stands in `name` as words of its own (MI250 is not in
    MI250X, A10 not in A100).
    """
    found = [
        (len(known), model)
        for model in table().devices
        for known in model.names
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(known)}(?![A-Za-z0-9])", name)
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _by_units(
    architecture: str, compute_units: int | None, memory_bytes: int | None
) -> DeviceModel | None:
    """The only product of an architecture that lists devices of this size; None where several do
    (MI210 and a die of MI250), or where it may be a partition of a larger one (MI350P and half of
    an MI350X).

    Of several, that whose memory is nearest to what was seen, within a tenth (MI300X and MI325X).
    """
    known = table().architectures.get(architecture)
    if known is None or not compute_units:
        return None
    seen = {compute_units, compute_units * known.processor_units}
    models = [model for model in table().devices if model.architecture == architecture]
    fitting = [model for model in models if model.listed_units in seen]
    if any(
        model not in fitting and compute_units in model.partition_units.values() for model in models
    ):
        return None
    if len(fitting) > 1 and memory_bytes:
        fitting = [model for model in fitting if _has_memory(model, memory_bytes)]
    return fitting[0] if len(fitting) == 1 else None


def _has_memory(model: DeviceModel, memory_bytes: int) -> bool:
    """Whether a device of this product has about as much memory; no where nobody says."""
    if model.memory_gib is None:
        return False
    of_device = model.memory_gib * 2**30 * (model.listed_dies or model.dies) / model.dies
    return abs(memory_bytes / of_device - 1) < _SAME_MEMORY
