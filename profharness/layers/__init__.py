"""Instrumentation layers: how a tool is put around or into the workload, and which files it leaves.

A layer has no state and no run method, and never asks which other layers are on; `schedule` decides
that. Readers of the tools' files are in `readers`, separate from the layers. Members are listed
literally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.node.probe import Environment
from profharness.options.tracers import TracerOptions
from profharness.rundir.manifest import Artifact

COMMAND = "command"  # the target that stands for a user's own command, beside the names of backends
EXTERNAL = (
    "server"  # the target that stands for a server of another's, which is a command like any other
)


def framework_of(target: str) -> str:
    """What runs in a target's process: its backend (`torch@NAME` is torch), or a command."""
    framework = target.partition("@")[0]
    return COMMAND if framework == EXTERNAL else framework


@dataclass(frozen=True)
class Where:
    """Places and settings that a layer may use when it prepares a command for one pass.

    `rank` is None for a single process. `python` runs our wrappers beside the workload. `counters`
    is not empty in a pass that collects hardware counters. `spill` is where a tool may put
    temporary files, None for the working directory.
    """

    run_root: Path
    pass_name: str
    wrappers: Path
    host: str
    capture: str = "default"
    hook: Literal["env", "exec"] = "env"
    is_worker: bool = False
    rank: int | None = None
    python: str = "python3"
    environment: Environment = field(default_factory=Environment)
    options: TracerOptions = field(default_factory=TracerOptions)
    counters: tuple[str, ...] = ()
    spill: Path | None = None

    @property
    def artifacts(self) -> Path:
        return self.run_root / "artifacts"

    @property
    def hooks(self) -> Path:
        return self.run_root / "control" / "hooks"

    @property
    def statuses(self) -> Path:
        """Where wrappers/status.py records how the workload itself ended."""
        return self.run_root / "control" / self.pass_name / "status"

    @property
    def owner(self) -> str:
        """The folder of this process's files, where the tool cannot name it by its pid."""
        return str(self.rank or 0)


@dataclass(frozen=True)
class Availability:
    """What a probe says: usable or not, the version found, and why not, with the way out."""

    available: bool
    version: str = ""
    why: str = ""


@dataclass(frozen=True)
class Extras:
    """What must lie ready before a prepared command starts. `hides_status`: the tool's exit status
    is not the workload's.

    `cut` is the capture window that was asked for where the tool cannot keep to it: it records
    everything.
    """

    folders: tuple[Path, ...] = ()
    files: tuple[tuple[Path, str], ...] = ()
    hides_status: bool = False
    notes: tuple[str, ...] = ()
    cut: str = ""


class Layer(Protocol):
    """`claims` names what the layer occupies in the process; two layers with a common claim never
    share a pass.
    """

    @property
    def name(self) -> str: ...
    @property
    def claims(self) -> frozenset[str]: ...
    @property
    def scope(self) -> Literal["hook", "prefix", "sidecar"]: ...
    @property
    def attach_hint(self) -> str:
        """What to do when it has nothing to attach to."""

    @property
    def perturbing(self) -> bool:
        """Whether it changes the workload's speed so much that no time of its pass is ever used; it
        runs alone.
        """

    def attaches(self, target: str) -> bool:
        """Whether it can observe this target: a backend of a scan, or `command`."""

    def probe(self, environment: Environment) -> Availability:
        """Pure: from what the probe found on the node."""

    def prepare(self, command: Command, where: Where) -> Command:
        """The command as it must be started under this layer. Raises UsageError for what this
        tool's version cannot do.
        """

    def extras(self, command: Command, where: Where) -> Extras:
        """What `prepare` relies on, for the same arguments."""

    def follow_up(self, where: Where) -> tuple[Command, ...]:
        """Commands to run once the pass has ended, on the files that it left."""

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        """The files that it left, relative to the run, without those in `known`."""


def members() -> tuple[Layer, ...]:
    """All layers, in the order of docs/command-line.md#layers."""
    from profharness.layers.amd_log import AmdLogLayer
    from profharness.layers.onnxruntime import OnnxruntimeLayer
    from profharness.layers.rocprof import RocprofLayer
    from profharness.layers.rocprof_compute import RocprofComputeLayer
    from profharness.layers.rocprof_sys import RocprofSysLayer
    from profharness.layers.rocprofv3 import Rocprofv3Layer
    from profharness.layers.torch import TorchLayer

    return (
        TorchLayer(),
        OnnxruntimeLayer(),
        Rocprofv3Layer(),
        RocprofLayer(),
        RocprofSysLayer(),
        RocprofComputeLayer(),
        AmdLogLayer(),
    )


def named(names: Sequence[str]) -> tuple[Layer, ...]:
    """The layers asked for, in that order. Raises UsageError for an unknown or repeated name."""
    known = {layer.name: layer for layer in members()}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no layer {name!r}", f"known layers: {', '.join(known)}")
    if len(set(names)) != len(names):
        raise UsageError(
            f"--profile: {','.join(names)} names a layer twice", "name each layer once"
        )
    return tuple(known[name] for name in names)
