"""Where telemetry values come from: one file per family, each imported only when it is asked for.

A new family is a module with `open_sources(target) -> tuple[Source, ...]` and a line in FAMILIES.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast

from profharness import families

FAMILIES: dict[str, str] = {
    "cpu": "profharness.telemetry.sources.host.family",
    "gpu": "profharness.telemetry.sources.gpu",
    "amd": "profharness.telemetry.sources.amd.family",
    "amdsmi": "profharness.telemetry.sources.amd.smi",
    "nvml": "profharness.telemetry.sources.nvidia.family",
    "device-counters": "profharness.telemetry.sources.amd.counting.family",
    "counters-exporter": "profharness.telemetry.sources.amd.exporter.family",
}

GROUP = "profharness.sources"
NEEDS = ("open_sources",)

# a reading's own stamp further off than this is of another clock: the time of the read counts
# then

STALE_NS = 10_000_000_000
COUNTER_HZ = 5.0  # for counters of the node that figures of points of a second or so are made of
# for what changes slowly or only grows: each read of it costs as much as a whole tick of the rest
SLOW_HZ = 2.0


class Taken(NamedTuple):
    """Where a column's value stands in a block of bytes: `repeat` values of one struct `code`,
    little endian, from `offset` on.

    Whatever equals `unset` was not set by who filled the block; nor was a 0 where `zero_is_unset`.
    """

    offset: int
    code: str
    repeat: int = 1
    unset: int = -1
    zero_is_unset: bool = False


class Column(NamedTuple):
    """One value per read. The metric's name and unit are those of `trace.sample_metrics`.

    An `instant` means raw × scale; a `counter` only grows, and means its growth × scale per second.
    `type` is q (int64) or d (float64); `role` is `stamp` for the reading's own CLOCK_BOOTTIME ns.

    What a driver gives as one table is copied as it is, since taking it apart at each tick would
    cost more than reading it: role `block`, of type `<n>s`. Columns with `taken` have no field of
    their own: the reader takes them out of the block (the source's only one) after the run, by
    `how`: the `one` value, the `mean` (rounded) or the `average` of all that are set, their
    `total`. Of two more forms, `share` is the growth of an accumulator (of several, the largest)
    over that of `over`, × scale, and worth nothing any more once it exceeds `at_most`; `bits` is 1
    while any of `bits` is set, taken to hold since the read before.
    """

    metric: str
    unit: str
    form: Literal["instant", "counter", "share", "bits"]
    scale: float = 1.0
    type: str = "q"
    device: int = -1
    role: Literal["value", "stamp", "block"] = "value"
    taken: tuple[Taken, ...] = ()
    how: Literal["one", "mean", "average", "total"] = "one"
    over: Taken | None = None
    at_most: float = 0.0
    bits: int = 0


class SampledDevice(NamedTuple):
    """An accelerator whose values a source reads; columns refer to it by position. `number` is the
    vendor's own.

    `package` is the identity of the device that reports power for all dies of the package, `scope`
    what that power covers ("device", "package of 2 dies"), `mode` how the device is partitioned.
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
    """Values that are read together. `probe` is called once, before `columns` and `devices` are
    looked at.
    """

    name: str
    max_hz: float
    columns: tuple[Column, ...]
    devices: tuple[SampledDevice, ...]

    def probe(self) -> tuple[Missing, ...]:
        """Open what is there, fill `columns`, and name what is not. Must not raise."""

    def read(self, row: list[Any], at: int) -> None:
        """Put the raw values into the row from `at` on, one per column that has a field; a field
        left alone counts as not read.

        May raise; the sampler then counts the failure and goes on.
        """


class Held(Protocol):
    """What a source may have besides, where it holds something beyond its reads."""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Names and texts that a reader of the samples needs, asked at the begin and at the end."""

    def close(self) -> None:
        """Let go of it, at the sampler's end."""


class Target(NamedTuple):
    """What is to be observed. `counters_hz` and `counting_gate` are of `device-counters`: samples
    per second, and the file whose presence says when to count (always, without one). `exporter` is
    the address that `counters-exporter` asks.
    """

    parent_pid: int
    roots_file: str
    hz: float
    sysfs: str = "/sys"
    counters_hz: float = 2.0
    counting_gate: str = ""
    exporter: str = ""


class Family(Protocol):
    """What a family's module offers, one file each."""

    def open_sources(self, target: Target) -> Sequence[Source]: ...


def foreign_names() -> tuple[str, ...]:
    """The families that other packages add, each under the name of its entry point."""
    return tuple(name for name, _ in families.foreign(GROUP, NEEDS))


def _family(name: str) -> Family | None:
    if name in FAMILIES:
        return cast("Family", families.load(FAMILIES[name]))
    return cast("Family | None", dict(families.foreign(GROUP, NEEDS)).get(name))


def open_families(
    names: Sequence[str], target: Target
) -> tuple[tuple[Source, ...], tuple[Missing, ...]]:
    """The sources that give something, in order, and everything that is missing with its reason."""
    usable: list[Source] = []
    missing: list[Missing] = []
    for name in names:
        family = _family(name)
        if family is None:
            missing.append(Missing(name, f"there is no such source; known: {', '.join(FAMILIES)}"))
            continue
        for source in family.open_sources(target):
            missing.extend(source.probe())
            if source.columns:
                usable.append(source)
    return tuple(usable), tuple(missing)
