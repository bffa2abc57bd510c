"""The `device-counters` layer: hardware counters of whole AMD devices, beside a workload that runs
as it is.

Nothing is put around or into the command. The run's sampler counts while the layer's pass runs:
once in a run, since starting and stopping moves a power limiter of some devices. Whoever else
programs the same registers needs a pass of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import releases, rocm_versions
from profharness.layers.contract import Availability, Description, Layer, Where
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts, LeftFiles

NAME = "device-counters"
COUNTS_HARDWARE = "hardware-counters"
"""The claim of layers that program the devices' counters."""
OLDEST_ROCM = (6, 4)
ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
_OF_TOOLS = re.compile(
    r"--(?:pmc|pc-sampling|att(?!ach)|advanced-thread-trace|thread-trace|spm|gpu-events)"
    r"|-G|(?:-i|--input)(?:=|$)|(?:--plugin=)?att$"
)
"""Of rocprofv3, of rocprof-sys (its events of the GPU), and of rocprof and rocprofv2, which take
counters from an input file.
"""
_SETTINGS = ("ROCPROFSYS_ROCM_EVENTS", "ROCPROFSYS_GPU_PERF_COUNTERS", "OMNITRACE_ROCM_EVENTS")


class DeviceCountersLayer(Layer):
    """How many compute units work, how full they are, how busy their pipes, and what passes between
    the L2 cache and memory: as means over every half second.
    """

    about = Description(
        name=NAME,
        gives="compute units active, occupancy, matrix cores, memory fabric, over time",
        needs="an AMD Instinct MI200, MI300 or MI350, ROCm 6.4 or newer, `CAP_PERFMON`",
        scope="sidecar",
        claims=frozenset({NAME, COUNTS_HARDWARE}),
        expects_kernels=False,
        bytes_per_trial=0,
        bytes_per_command=1_000_000,
        facts=LayerFacts(LeftFiles("execution", ())),
    )

    def probe(self, environment: Environment) -> Availability:
        """From the devices and the ROCm that the probe saw. What the driver lets through shows when
        the counting starts.
        """
        devices = [device for device in environment.devices if device.kind == "rocm"]
        known = [device.architecture for device in devices if device.architecture]
        release = releases.parse(environment.rocm_version)
        if not devices:
            return Availability(
                available=False,
                why="it counts on AMD Instinct devices, and no AMD device is seen\n"
                "on NVIDIA devices --telemetry nvml samples SM activity without it",
            )
        if known and not set(known) & set(ARCHITECTURES):
            return Availability(
                available=False,
                why=f"{', '.join(sorted(set(known)))} has no counters that count a whole device\n"
                f"it takes {', '.join(ARCHITECTURES)} (MI200, MI300, MI350); telemetry has "
                "wave_fill, and --profile rocprofv3 --pmc counts per kernel",
            )
        if release is not None and release < OLDEST_ROCM:
            return Availability(
                available=False,
                why=f"it needs ROCm 6.4 or newer, and {rocm_versions.here(environment)}\n"
                "telemetry has wave_fill, and --profile rocprof --pmc counts per kernel",
            )
        return Availability(
            available=True,
            version=f"ROCm {environment.rocm_version}" if environment.rocm_version else "",
            why=""
            if environment.permissions.perfmon
            else (
                "it is here, but this process lacks CAP_PERFMON: "
                "only the memory fabric is counted, no compute unit"
            ),
        )

    def prepare(self, command: Command, where: Where) -> Command:  # noqa: ARG002  a stranger to it
        """The command as it is."""
        return command


def check_alone(
    profile: Sequence[str], tool_args: Sequence[str], environ: Mapping[str, str] | None = None
) -> None:
    """Raises UsageError where an argument for another layer's tool, or a setting in `environ` that
    such a tool obeys, would count hardware in the same pass. `tool_args` are LAYER:ARG.
    """
    counting = [
        f"--tool-arg {text}" for text in tool_args if _OF_TOOLS.match(text.partition(":")[2])
    ]
    if "rocprof-sys" in profile:
        counting += [name for name in _SETTINGS if (environ or {}).get(name)]
    if NAME in profile and counting:
        raise UsageError(
            f"{counting[0]} counts on the device, as {NAME} does, "
            "and both would program the same registers",
            f"leave {NAME} out, or measure with it in a run of its own",
        )
