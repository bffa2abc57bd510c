"""The `torch` layer: torch.profiler inside the workload's process, through the hook."""

from __future__ import annotations

from typing import Literal

from profharness.launchers.command import Command
from profharness.layers import COMMAND, Availability, Extras, Where
from profharness.layers.hooks import collect_files, with_hooks
from profharness.node import access
from profharness.node.probe import Environment
from profharness.rundir.manifest import Artifact

_BUILDS = {"rocm": "AMD", "cuda": "NVIDIA"}  # kinds of devices, and whose they are


class TorchLayer:
    """Kineto traces (kernels, copies, runtime calls, operators) as JSON, one per process and
    window.
    """

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
            return Availability(available=True, version=version, why=_but(version, environment))
        return Availability(
            available=False,
            why=(
                "torch is not installed for the workload's python: "
                "pip install 'profharness[torch]', or name another python with --python"
            ),
        )

    def prepare(self, command: Command, where: Where) -> Command:
        return with_hooks(command, where, self.name)

    # the hook makes its own folders
    def extras(self, command: Command, where: Where) -> Extras:  # noqa: ARG002
        return Extras()

    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  nothing is left to do
        return ()

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        return collect_files(where, self.name, (".json", ".json.gz"), "kineto", known)


def _but(version: str, environment: Environment) -> str:
    """Why this build of torch sees none of the node's devices; empty without. A version without a
    suffix does not tell its build.
    """
    suffix = version.partition("+")[2]
    build = next(
        (
            kind
            for start, kind in (("rocm", "rocm"), ("cu", "cuda"), ("cpu", "cpu"))
            if suffix.startswith(start)
        ),
        "",
    )
    if build == "rocm":
        return access.closed(environment)
    kinds = {device.kind for device in environment.accelerators}
    if not build or not kinds or build in kinds:
        return ""
    return (
        "this build sees no "
        f"{' or '.join(_BUILDS.get(kind, kind) for kind in sorted(kinds))} device: "
        "install torch's build for it (pytorch.org/get-started)"
    )
