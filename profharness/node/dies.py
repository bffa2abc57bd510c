"""How many dies a device spans, by what its product is known to be. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.node.devices import DeviceModel, table


@dataclass(frozen=True)
class KnownDies:
    """The dies that one listed device spans, and the highest clock of the products that fit."""

    dies: int
    clock_mhz: int


def known_dies(
    architecture: str, compute_units: int | None, partition: str = ""
) -> KnownDies | None:
    """How many dies a device of this architecture spans, by its compute units and, where it is
    told, its compute mode (SPX, DPX, ...). None where no product fits, or those that fit differ.
    """
    target = architecture.partition(":")[0]
    fitting = [
        (dies, model.clock_mhz)
        for model in table().devices
        if model.architecture == target and model.compute_units and model.clock_mhz
        for mode, dies in _modes(model)
        if mode in ("", partition or mode)
        and dies * (model.compute_units // model.dies) == compute_units
    ]
    if len({dies for dies, _ in fitting}) != 1:
        return None
    return KnownDies(fitting[0][0], max(clock for _, clock in fitting))


def _modes(model: DeviceModel) -> list[tuple[str, int]]:
    """The dies of one device in each compute mode; "" for a product without modes."""
    return [*model.partitions.items()] or [("", model.listed_dies or model.dies)]
