"""Instrumentation layers: each is one file here, or a member that an installed package adds
(`contract` says what one is).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import cast

from profharness import families
from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers.contract import Description, Layer, Where
from profharness.rundir import left_files
from profharness.rundir.foreign.patterns import why_not
from profharness.rundir.manifest import Artifact

LAYERS = (
    "profharness.layers.torch:TorchLayer",
    "profharness.layers.onnxruntime:OnnxruntimeLayer",
    "profharness.layers.rocprofv3:Rocprofv3Layer",
    "profharness.layers.rocprof:RocprofLayer",
    "profharness.layers.rocprof_sys:RocprofSysLayer",
    "profharness.layers.rocprof_compute:RocprofComputeLayer",
    "profharness.layers.amd_log:AmdLogLayer",
    "profharness.layers.device_counters:DeviceCountersLayer",
    "profharness.layers.python.py_spy:PySpyLayer",
)
GROUP = "profharness.layers"
NEEDS = ("about", "probe", "prepare", "extras", "follow_up")


@cache
def members() -> tuple[Layer, ...]:
    """All layers: ours in the order of `LAYERS`, then those of other packages by name."""
    ours = [cast("type[Layer]", families.load(name)) for name in LAYERS]
    mine = tuple(layer() for layer in ours)
    names = {layer.name for layer in mine}
    theirs = (cast("Layer", layer) for _, layer in families.foreign(GROUP, NEEDS, is_class=True))
    return (*mine, *(layer for layer in theirs if layer.name not in names))


def descriptions() -> tuple[Description, ...]:
    """What each layer says of itself, in the order of `members`."""
    return tuple(layer.about for layer in members())


def named(names: Sequence[str]) -> tuple[Layer, ...]:
    """The layers asked for, in that order. Raises UsageError for an unknown or repeated name, and
    for a layer of a package whose runs no reader would take.
    """
    known = {layer.name: layer for layer in members()}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no layer {name!r}", f"known layers: {', '.join(known)}")
    if len(set(names)) != len(names):
        raise UsageError(
            f"--profile: {','.join(names)} names a layer twice", "name each layer once"
        )
    for name in names:
        _require_readable(known[name])
    return tuple(known[name] for name in names)


def _require_readable(layer: Layer) -> None:
    """Raises UsageError where the names of the layer's files are searched in a way that is refused
    when the run is read (docs/extending.md#layer).
    """
    for pattern in layer.about.facts.patterns:
        if why := why_not(pattern):
            raise UsageError(
                f"the layer {layer.name} cannot be used: it looks for its files by '{pattern}', "
                f"and {why}",
                "the package that adds the layer has to write that in a simpler way",
            )


def probe_command(python: str) -> Command:
    """How the node is probed, with the programs of all layers among the tools that are looked
    for; those that come with a wheel also beside the Python that runs profharness. Tests put
    emulated hardware in the place of /sys by PROFHARNESS_SYSFS.
    """
    programs = [program.name for about in descriptions() for program in about.programs]
    emulated = os.environ.get("PROFHARNESS_SYSFS")
    below = ("--sysfs", emulated) if emulated else ()
    probe = Command((python, str(wrappers_dir() / "probe.py"), *below))
    return probe.with_env(
        {
            "PROFHARNESS_PROGRAMS": ",".join(programs),
            "PROFHARNESS_BIN": str(Path(sys.executable).parent),
        }
    )


def collect(layer: Layer, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
    """The files that the layer left in this pass, relative to the run, without those in `known`."""
    of = left_files.LayerPass(
        where.run_root, layer.name, where.pass_name, ranked=where.rank is not None
    )
    return left_files.collect(layer.about.facts.leaves, of, known)


def foreign_names() -> tuple[str, ...]:
    """The entry points' names of those that other packages add."""
    return tuple(name for name, _ in families.foreign(GROUP, NEEDS, is_class=True))
