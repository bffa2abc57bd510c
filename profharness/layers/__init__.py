"""Instrumentation layers: how a tool is put around or into the workload, and which files it leaves.

A layer has no state and no run method, and never asks which other layers are on; `schedule` decides that.
Readers of the tools' files are in `readers`, separate from the layers. Members are listed literally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from profharness.command import Command
from profharness.environment import Environment
from profharness.errors import UsageError
from profharness.manifest import Artifact

COMMAND = "command"  # the target that stands for a user's own command, beside the names of backends


@dataclass(frozen=True)
class Where:
    """Places and settings that a layer may use when it prepares a command for one pass."""

    run_root: Path
    pass_name: str
    wrappers: Path
    host: str
    capture: str = "default"
    hook: Literal["env", "exec"] = "env"
    is_worker: bool = False

    @property
    def artifacts(self) -> Path:
        return self.run_root / "artifacts"

    @property
    def hooks(self) -> Path:
        return self.run_root / "control" / "hooks"


@dataclass(frozen=True)
class Availability:
    """What a probe says: usable or not, the version found, and why not, with the way out."""

    available: bool
    version: str = ""
    why: str = ""


class Layer(Protocol):
    """`claims` names what the layer occupies in the process; two layers with a common claim never share a pass."""

    @property
    def name(self) -> str: ...
    @property
    def claims(self) -> frozenset[str]: ...
    @property
    def scope(self) -> Literal["hook", "prefix", "sidecar"]: ...
    @property
    def attach_hint(self) -> str:
        """What to do when it has nothing to attach to."""

    def attaches(self, target: str) -> bool:
        """Whether it can observe this target: a backend of a scan, or `command`."""

    def probe(self, environment: Environment) -> Availability:
        """Pure: from what the probe found on the node."""

    def prepare(self, command: Command, where: Where) -> Command:
        """The command as it must be started under this layer."""

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        """The files that it left, relative to the run, without those in `known`."""


def members() -> tuple[Layer, ...]:
    """All layers, in the order of DESIGN 6."""
    from profharness.layers.onnxruntime import OnnxruntimeLayer
    from profharness.layers.torch import TorchLayer

    return (TorchLayer(), OnnxruntimeLayer())


def named(names: Sequence[str]) -> tuple[Layer, ...]:
    """The layers asked for, in that order. Raises UsageError for an unknown or repeated name."""
    known = {layer.name: layer for layer in members()}
    for name in names:
        if name not in known:
            raise UsageError(f"--profile: there is no layer {name!r}", f"known layers: {', '.join(known)}")
    if len(set(names)) != len(names):
        raise UsageError(f"--profile: {','.join(names)} names a layer twice", "name each layer once")
    return tuple(known[name] for name in names)
