"""The `torch` layer: torch.profiler inside the workload's process, through the hook."""

from __future__ import annotations

from profharness.launchers.command import Command
from profharness.layers.contract import COMMAND, Availability, Description, Layer, Where
from profharness.layers.hooks import with_hooks
from profharness.node import access
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

RECORDED = {
    "stacks": "PROFHARNESS_STACKS",
    "profile_memory": "PROFHARNESS_PROFILE_MEMORY",
    "host_samples": "PROFHARNESS_HOST_SAMPLES",
}
"""The options that it honours, and the variables by which the hooks know of them: 1 for those that
are given or not, else their value.
"""
_BUILDS = {"rocm": "AMD", "cuda": "NVIDIA"}  # kinds of devices, and whose they are


class TorchLayer(Layer):
    """Kineto traces (kernels, copies, runtime calls, operators) as JSON, one per process and
    window.
    """

    about = Description(
        name="torch",
        gives=(
            "kernels, copies, runtime calls, operators by torch.profiler, "
            "through a hook in the process"
        ),
        needs="CPU, CUDA, ROCm",
        scope="hook",
        claims=frozenset({"torch-profiler", "hsa-tool", "cupti"}),
        targets=frozenset({"torch", COMMAND}),
        attach_hint="it observes torch: add --backend torch, or profile a command that uses torch",
        windowed=True,
        honours=frozenset(RECORDED),
        bytes_per_trial=450_000,  # measured on ParticleNet, as those of the command
        bytes_per_command=40_000_000,
        facts=LayerFacts(
            LeftFiles("hook", (LeftFile(r".*\.json(\.gz)?", "kineto"),)), hooked=True, kernels=40
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether the workload's Python has torch, and what this build of it cannot see here."""
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
        """The command with our hooks, which run torch.profiler in the process."""
        given = {variable: getattr(where.options, option) for option, variable in RECORDED.items()}
        asked = {
            variable: value if isinstance(value, str) else "1"
            for variable, value in given.items()
            if value
        }
        return with_hooks(command, where, self.name).with_env(asked)


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
