"""Where telemetry values come from: one file per family, each imported only when it is asked for.

A new family is a module with `open_sources(target) -> tuple[Source, ...]` and a line in FAMILIES.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Literal, NamedTuple, Protocol

FAMILIES: dict[str, str] = {
    "cpu": "profharness.telemetry.sources.cpu",
    "gpu": "profharness.telemetry.sources.gpu",
    "amd": "profharness.telemetry.sources.amd",
    "amdsmi": "profharness.telemetry.sources.amdsmi",
    "nvml": "profharness.telemetry.sources.nvml",
}

SLOW_HZ = 5.0  # for what changes slowly or only grows: the sampler then costs a few tenths of a per cent of a core


class Column(NamedTuple):
    """One value per read. The metric's name and unit are those of `trace.sample_metrics`.

    An `instant` means raw × scale; a `counter` only grows, and means its growth × scale per second.
    `type` is q (int64) or d (float64); `role` is `stamp` for the reading's own CLOCK_BOOTTIME ns.
    """

    metric: str
    unit: str
    form: Literal["instant", "counter"]
    scale: float = 1.0
    type: Literal["q", "d"] = "q"
    device: int = -1
    role: Literal["value", "stamp"] = "value"


class SampledDevice(NamedTuple):
    """An accelerator whose values a source reads; columns refer to it by position. `number` is the vendor's own.

    `package` is the identity of the device that reports power for all dies of the package, `scope` what that power
    covers ("device", "package of 2 dies"), `mode` how the device is partitioned.
    """

    number: str
    identity: str
    name: str
    vendor: str
    package: str = ""
    scope: str = ""
    mode: str = ""


class Missing(NamedTuple):
    """A metric that cannot be had here, and why."""

    metric: str
    why: str


class Source(Protocol):
    """Values that are read together. `probe` is called once, before `columns` and `devices` are looked at."""

    name: str
    max_hz: float
    columns: tuple[Column, ...]
    devices: tuple[SampledDevice, ...]

    def probe(self) -> tuple[Missing, ...]:
        """Open what is there, fill `columns`, and name what is not. Must not raise."""

    def read(self, row: list[int | float], at: int) -> None:
        """Put the raw values into `row[at:at + len(columns)]`; a field left alone counts as not read.

        May raise; the sampler then counts the failure and goes on.
        """


class Target(NamedTuple):
    """What is to be observed."""

    parent_pid: int
    roots_file: str
    hz: float
    sysfs: str = "/sys"


def open_families(names: Sequence[str], target: Target) -> tuple[tuple[Source, ...], tuple[Missing, ...]]:
    """The sources that give something, in order, and everything that is missing with its reason."""
    usable: list[Source] = []
    missing: list[Missing] = []
    for name in names:
        if name not in FAMILIES:
            missing.append(Missing(name, f"there is no such source; known: {', '.join(FAMILIES)}"))
            continue
        for source in import_module(FAMILIES[name]).open_sources(target):
            missing.extend(source.probe())
            if source.columns:
                usable.append(source)
    return tuple(usable), tuple(missing)
