"""The `onnxruntime` layer: onnxruntime's own profiling file, through the hook."""

from __future__ import annotations

from profharness.launchers.command import Command
from profharness.layers.contract import COMMAND, Availability, Description, Layer, Where
from profharness.layers.hooks import with_hooks
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

# the GPU builds are packages of their own name
PACKAGES = (
    "onnxruntime",
    "onnxruntime-rocm",
    "onnxruntime-gpu",
    "onnxruntime-migraphx",
    "onnxruntime-training",
)


class OnnxruntimeLayer(Layer):
    """One JSON file per session with its operators (whole microseconds); no device kernels."""

    about = Description(
        name="onnxruntime",
        gives="operators by onnxruntime's own profiler, through a hook",
        needs="any provider",
        scope="hook",
        claims=frozenset({"onnxruntime-profiler"}),
        targets=frozenset({"onnxruntime", COMMAND}),
        attach_hint=(
            "it observes onnxruntime: add --backend onnxruntime, "
            "or profile a command that uses onnxruntime"
        ),
        silent="it made no session",
        bytes_per_trial=60_000,  # measured on ParticleNet
        trial="profharness_workloads/checks/tiny_onnxruntime.py",
        facts=LayerFacts(
            LeftFiles("hook", (LeftFile(r".*\.json(\.gz)?", "onnxruntime"),)), hooked=True
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether the workload's Python has one of the packages that hold onnxruntime."""
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
        """The command with our hooks, which switch onnxruntime's own profiler on."""
        return with_hooks(command, where, self.name)

    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  nothing is left to do
        return ()
