"""The `onnxruntime` layer: onnxruntime's own profiling file, through the hook."""

from __future__ import annotations

from typing import Literal

from profharness.launchers.command import Command
from profharness.layers import COMMAND, Availability, Extras, Where
from profharness.layers.hooks import collect_files, with_hooks
from profharness.node.probe import Environment
from profharness.rundir.manifest import Artifact

# the GPU builds are packages of their own name
PACKAGES = (
    "onnxruntime",
    "onnxruntime-rocm",
    "onnxruntime-gpu",
    "onnxruntime-migraphx",
    "onnxruntime-training",
)


class OnnxruntimeLayer:
    """One JSON file per session with its operators (whole microseconds); no device kernels."""

    name = "onnxruntime"
    claims = frozenset({"onnxruntime-profiler"})
    scope: Literal["hook"] = "hook"
    perturbing = False
    attach_hint = (
        "it observes onnxruntime: add --backend onnxruntime, "
        "or profile a command that uses onnxruntime"
    )

    def attaches(self, target: str) -> bool:
        return target in ("onnxruntime", COMMAND)

    def probe(self, environment: Environment) -> Availability:
        version = next(
            (environment.packages[name] for name in PACKAGES if environment.packages.get(name)), ""
        )
        if version:
            return Availability(available=True, version=version)
        return Availability(
            available=False,
            why=(
                "onnxruntime is not installed for the workload's python: "
                "pip install 'profharness[onnx]'"
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
        return collect_files(where, self.name, (".json",), "onnxruntime", known)
