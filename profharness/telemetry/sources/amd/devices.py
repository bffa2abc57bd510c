"""AMD devices as sysfs lists them: numbered in KFD's order (HIP's), joined by PCI address, grouped
into packages.

A package with two dies (MI250, MI250X) reports power and energy on one of them, for both; the
partitions of an MI300 share one PCI device. So power belongs to a package, and `package` names the
device that reports it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from profharness.telemetry.sources.host import procfs

VENDOR = "0x1002"
TWO_DIES = frozenset({"0x7408", "0x740c"})  # MI250X and MI250; each die is a PCI device of its own
_PARTITION_SHIFT = 28  # KFD's location_id: partition, then bus, device and function


class Die(NamedTuple):
    """One device as a program sees it. `folder` is its PCI device's; `partition` counts from 0
    among `partitions`.

    `gpu_id` and `compute_units` come from KFD and are 0 without it.
    """

    number: str
    address: str
    folder: str
    name: str
    partition: int = 0
    partitions: int = 1
    gpu_id: int = 0
    compute_units: int = 0
    hwmon: str = ""
    package: str = ""
    scope: str = ""

    @property
    def identity(self) -> str:
        """The PCI address, and which partition of it."""
        return f"{self.address}/{self.partition}" if self.partitions > 1 else self.address

    @property
    def reports_package(self) -> bool:
        """Whether the values of the whole package are read here."""
        return self.package == self.address and self.partition == 0

    @property
    def mode(self) -> str:
        """Compute and memory partitioning, such as SPX/NPS1; empty where the device has none."""
        return "/".join(
            text
            for text in (
                _text(f"{self.folder}/current_{kind}_partition") for kind in ("compute", "memory")
            )
            if text
        )


def find_dies(sysfs: str) -> list[Die]:
    """All AMD devices; by DRM cards where KFD (the compute driver) is absent."""
    dies = _with_packages(_from_kfd(sysfs) or _from_drm(sysfs))
    return [die._replace(hwmon=_hwmon(die.folder)) for die in dies]


def why_none(sysfs: str) -> str:
    """For a node without any."""
    if not os.path.isdir(f"{sysfs}/module/amdgpu"):  # noqa: PTH112 - no pathlib in the sampler
        return "the amdgpu driver is not loaded"
    if hidden := _hidden(sysfs):
        return (
            f"{hidden} AMD device{'s are' if hidden > 1 else ' is'} on this node, "
            f"but the kernel hides {'them' if hidden > 1 else 'it'} from this job "
            "(a control group does so): request a GPU from the batch system, "
            "or give the container its devices"
        )
    return (
        f"amdgpu is loaded, but no AMD device is visible under {sysfs}/class/kfd and "
        f"{sysfs}/class/drm"
    )


def _hidden(sysfs: str) -> int:
    """Nodes of KFD whose properties cannot be read: the kernel keeps them from jobs that may not
    use the device.
    """
    nodes = f"{sysfs}/class/kfd/kfd/topology/nodes"
    return sum(not _text(f"{nodes}/{name}/properties") for name in _listed(nodes) if name.isdigit())


def _from_kfd(sysfs: str) -> list[Die]:
    nodes = f"{sysfs}/class/kfd/kfd/topology/nodes"
    places = [
        (int(name), _properties(f"{nodes}/{name}/properties"))
        for name in _listed(nodes)
        if name.isdigit()
    ]
    gpus = [
        (node, facts)
        for node, facts in sorted(places, key=lambda place: place[0])
        if facts.get("simd_count")
    ]
    addresses = [_address(facts) for _, facts in gpus]
    dies: list[Die] = []
    for place, (node, facts) in enumerate(gpus):
        address = addresses[place]
        folder = f"{sysfs}/bus/pci/devices/{address}"
        dies.append(
            Die(
                str(place),
                address,
                folder,
                _text(f"{folder}/product_name") or "AMD GPU",
                addresses[:place].count(address),
                addresses.count(address),
                _number(f"{nodes}/{node}/gpu_id"),
                facts["simd_count"] // max(facts.get("simd_per_cu", 4), 1),
            )
        )
    return dies


def kfd_facts(die: Die, sysfs: str) -> dict[str, int]:
    """What KFD's topology says of a device (`simd_count`, `gfx_target_version`, ...), by KFD's id;
    empty where it is not listed.
    """
    nodes = f"{sysfs}/class/kfd/kfd/topology/nodes"
    return next(
        (
            _properties(f"{nodes}/{name}/properties")
            for name in _listed(nodes)
            if die.gpu_id and _number(f"{nodes}/{name}/gpu_id") == die.gpu_id
        ),
        {},
    )


def _from_drm(sysfs: str) -> list[Die]:
    drm = f"{sysfs}/class/drm"
    folders: dict[str, str] = {}
    for card in _listed(drm):
        folder = f"{drm}/{card}/device"
        if card.startswith("card") and card[4:].isdigit() and _text(f"{folder}/vendor") == VENDOR:
            real = os.path.realpath(folder)
            folders[os.path.basename(real)] = folder  # noqa: PTH119  no pathlib in the sampler
    return [
        Die(
            str(place),
            address,
            folders[address],
            _text(f"{folders[address]}/product_name") or "AMD GPU",
        )
        for place, address in enumerate(sorted(folders))
    ]


def _with_packages(dies: list[Die]) -> list[Die]:
    """Dies of one package are neighbours by PCI address; the one with a power cap reports for
    both.
    """
    reporter = {die.address: die.address for die in dies}
    scope = {
        die.address: f"package of {die.partitions} partitions" if die.partitions > 1 else "device"
        for die in dies
    }
    two = sorted(
        {die.address: die for die in dies if _text(f"{die.folder}/device") in TWO_DIES}.items()
    )
    for (first, first_die), (second, second_die) in list(pairwise(two))[::2]:
        caps = [_cap(first_die.folder), _cap(second_die.folder)]
        primary = first if caps[0] or not caps[1] else second
        reporter[first] = reporter[second] = primary
        scope[first] = scope[second] = "package of 2 dies"
    return [die._replace(package=reporter[die.address], scope=scope[die.address]) for die in dies]


def _cap(folder: str) -> int:
    """The power cap in µW; 0 on the die that reports none."""
    hwmon = _hwmon(folder)
    return _number(f"{hwmon}/power1_cap") if hwmon else 0


def _hwmon(folder: str) -> str:
    """The amdgpu entry of hwmon below a PCI device."""
    entries = (f"{folder}/hwmon/{name}" for name in _listed(f"{folder}/hwmon"))
    return next((entry for entry in entries if _text(f"{entry}/name") == "amdgpu"), "")


def _address(facts: dict[str, int]) -> str:
    location = facts.get("location_id", 0) & ~(0xF << _PARTITION_SHIFT)
    bus, slot, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
    return f"{facts.get('domain', 0):04x}:{bus:02x}:{slot:02x}.{function}"


def _properties(path: str) -> dict[str, int]:
    """`name value` lines with whole numbers; empty where a job may not see the device."""
    pairs = (line.split(" ", 1) for line in _text(path).split("\n"))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].strip().isdigit()}


def _listed(folder: str) -> Iterable[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return ()


def _text(path: str) -> str:
    try:
        return procfs.read_once(path).decode(errors="replace").strip()
    except OSError:
        return ""


def _number(path: str) -> int:
    text = _text(path)
    return int(text) if text.isdigit() else 0
