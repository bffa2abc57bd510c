"""The `torch` layer: torch.profiler inside the workload's process, through the hook."""

from __future__ import annotations

from typing import Literal

from profharness.command import Command
from profharness.environment import Environment
from profharness.layers import COMMAND, Availability, Extras, Where
from profharness.layers.hooks import collect_files, with_hooks
from profharness.manifest import Artifact


class TorchLayer:
    """Kineto traces (kernels, copies, runtime calls, operators) as JSON, one per process and window."""

    name = "torch"
    claims = frozenset({"torch-profiler", "hsa-tool", "cupti"})
    scope: Literal["hook"] = "hook"
    perturbing = False
    attach_hint = "it observes torch: add --backend torch, or profile a command that uses torch"

    def attaches(self, target: str) -> bool:
        return target in ("torch", COMMAND)

    def probe(self, environment: Environment) -> Availability:
        version = environment.packages.get("torch", "")
        if version:
            return Availability(available=True, version=version)
        return Availability(available=False, why="torch is not installed for the workload's python: pip install 'profharness[torch]', or name another python with --python")

    def prepare(self, command: Command, where: Where) -> Command:
        return with_hooks(command, where, self.name)

    def extras(self, command: Command, where: Where) -> Extras:  # noqa: ARG002  the hook makes its own folders
        return Extras()

    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  nothing is left to do
        return ()

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        return collect_files(where, self.name, (".json", ".json.gz"), "kineto", known)
