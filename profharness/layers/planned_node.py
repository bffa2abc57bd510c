"""A node that a dry run plans for and that this one is not: which devices it has, and the tools of
which ROCm release. Pure.

The facts of such a node take the place of the probe's where they decide what is started: devices,
tools and permissions. What it cannot know (CPUs, packages of the workload's Python) stays as it is
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from profharness import layers
from profharness.errors import UsageError
from profharness.layers import releases
from profharness.layers.contract import Description, Program
from profharness.layers.releases import NEWEST, RELEASES, Version
from profharness.node import devices
from profharness.node.probe import Device, Environment, Permissions, Tool

# releases that brought no change to the tools, so that the table of releases passes over them
_UNCHANGED: tuple[Version, ...] = ((6, 0), (6, 1))
# tools that later releases leave out, and the first of those
_LEFT_OUT: dict[str, Version] = {"rocprof": (7, 9)}
_VERSION = re.compile(r"\d{1,2}\.\d{1,2}(\.\d{1,2})?")


@dataclass(frozen=True)
class PlannedNode:
    """`architecture` of its devices, empty where this node's own count; `rocm` is the release of
    its tools, None for a node without AMD devices.
    """

    architecture: str
    rocm: Version | None

    @property
    def kind(self) -> str:
        """The kind of its devices, as the probe names it: rocm or cuda."""
        return "cuda" if self.rocm is None else "rocm"

    @property
    def about(self) -> str:
        """In words: `another node, with gfx90a (MI210, MI250, MI250X) and the tools of ROCm
        6.4`.
        """
        tools = (
            f"the tools of ROCm {releases.text(self.rocm)}"
            f"{', the newest known' if self.rocm == NEWEST.rocm else ''}"
            if self.rocm
            else "no tools of ROCm"
        )
        if not self.architecture:
            return f"this node's devices and {tools}"
        models = ", ".join(_models(self.architecture))
        return f"another node, with {self.architecture} ({models}) and {tools}"


def architectures() -> tuple[str, ...]:
    """What `--for-node` may name: the architectures of the table of devices."""
    return tuple(devices.table().architectures)


def rocm_releases() -> tuple[str, ...]:
    """What `--rocm-version` may name, oldest first; a release of one of these may be told with its
    third number.
    """
    known = {*_UNCHANGED, *(release.rocm for release in RELEASES)}
    return tuple(releases.text(version) for version in sorted(known))


def named(for_node: str, rocm_version: str) -> PlannedNode | None:
    """The node that the two options name; None where neither was given.

    Raises UsageError for values that are not known, and for a release of ROCm on another vendor's
    devices.
    """
    if not for_node and not rocm_version:
        return None
    if for_node and for_node not in architectures():
        raise UsageError(
            f"--for-node: {for_node!r} is no architecture that is known",
            f"known are {', '.join(architectures())}",
        )
    vendor = devices.table().architectures[for_node].vendor if for_node else "AMD"
    if vendor != "AMD":
        if rocm_version:
            raise UsageError(
                f"--rocm-version: {for_node} is of {vendor}, and ROCm is for AMD's devices",
                "leave it out, or name an AMD architecture with --for-node",
            )
        return PlannedNode(for_node, None)
    return PlannedNode(for_node, _release(rocm_version) if rocm_version else NEWEST.rocm)


def facts(planned: PlannedNode, here: Environment) -> Environment:
    """The facts of that node, as its probe would tell them; `here` is what this node's probe
    told.
    """
    cpus = tuple(device for device in here.devices if device.kind == "cpu")
    others = (
        (_device(planned),)
        if planned.architecture
        else tuple(device for device in here.devices if device.kind == planned.kind)
    )
    own = {name: tool for name, tool in here.tools.items() if name in ("srun", "perf_analyzer")}
    release = releases.text(planned.rocm) if planned.rocm else ""
    tools = {name: Tool(rocm=release) for name in _programs(planned.rocm)}
    return msgspec.structs.replace(
        here,
        devices=(*others, *cpus),
        tools={**own, **tools},
        rocm_version=release,
        permissions=Permissions(),
    )


def _release(text: str) -> Version:
    """The release that was named. Raises UsageError where there never was one of this number."""
    version = releases.parse(text) if _VERSION.fullmatch(text) else None
    known = {releases.parse(one) for one in rocm_releases()}
    if version is None or not {version, version[:2]} & known:
        raise UsageError(
            f"--rocm-version: there is no known release {text!r}",
            f"known are {', '.join(rocm_releases())}; a third number may follow, as in 6.2.4",
        )
    return version


def _programs(rocm: Version | None) -> tuple[str, ...]:
    """The programs of all layers that came with a release, each of a name that it had then."""
    if rocm is None:
        return ()
    return tuple(
        dict.fromkeys(name for about in layers.descriptions() for name in _of_layer(about, rocm))
    )


def _of_layer(about: Description, rocm: Version) -> tuple[str, ...]:
    """An older name ends where the tool got its present one, which the table of releases knows."""
    renamed = min((program.since for program in about.programs if program.column), default=None)
    return tuple(
        program.name
        for program in about.programs
        if program.since <= rocm
        and _has(rocm, program)
        and (program.column or renamed is None or rocm < renamed)
        and not (program.name in _LEFT_OUT and rocm >= _LEFT_OUT[program.name])
    )


def _has(rocm: Version, program: Program) -> bool:
    """Whether the release has the tool under this name; of tools without a version it is so."""
    if not program.column:
        return True
    own: Version = getattr(releases.of_rocm(rocm), program.column)
    return own > releases.BEFORE


def _device(planned: PlannedNode) -> Device:
    models = _models(planned.architecture)
    return Device(
        index=0,
        kind=planned.kind,
        name=" or ".join(models),
        architecture=planned.architecture,
    )


def _models(architecture: str) -> tuple[str, ...]:
    """The products of an architecture, as the table of devices names them."""
    return tuple(
        model.name for model in devices.table().devices if model.architecture == architecture
    )
