"""What `wrappers/probe.py` found on a node, as typed facts: devices, tools, versions, permissions,
clocks.

The probe runs through the same launcher and container as the workload; this module only reads its
answer.
"""

from __future__ import annotations

import msgspec

from profharness.errors import Unavailable
from profharness.node.masks import MASKS
from profharness.rundir.manifest import DeviceRecord, NodeRecord

# Only these variables are ever recorded: an environment holds secrets.
RECORDED_VARIABLES = (
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "GPU_MAX_HW_QUEUES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "HSA_XNACK",
    "HSA_ENABLE_SDMA",
    "MIOPEN_FIND_MODE",
    "MIOPEN_USER_DB_PATH",
    "ORT_MIGRAPHX_FP16_ENABLE",
    "ORT_MIGRAPHX_MODEL_CACHE_PATH",
    "ORT_TENSORRT_CACHE_PATH",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_TUNABLEOP_ENABLED",
    "NCCL_DEBUG",
    "NCCL_SOCKET_IFNAME",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
    "SLURM_CPU_BIND",
    "SLURM_GPUS_PER_NODE",
    "ROCM_PATH",
)


class Tool(msgspec.Struct, frozen=True):
    """One vendor tool on the node's PATH. `rocm` is the release of the ROCm installation that it
    lies in, if any.
    """

    path: str = ""
    version: str = ""
    rocm: str = ""


class Device(msgspec.Struct, frozen=True):
    """An accelerator (or the CPU) as the probe lists it."""

    index: int
    kind: str
    name: str = ""
    identity: str = ""
    memory_bytes: int | None = None
    compute_units: int | None = None
    architecture: str = ""
    driver: str = ""


class DeviceFile(msgspec.Struct, frozen=True):
    """A device file. `error` is the name of the errno with which it refuses this user, "" where it
    opens.

    `vendor` is the PCI vendor of a render node's device. `listed`: the user database has this user
    in the file's group.
    """

    path: str
    error: str = ""
    group: str = ""
    gid: int = -1
    mode: str = ""
    vendor: str = ""
    listed: bool = False


class Permissions(msgspec.Struct, frozen=True):
    """What this user may open. `hidden_devices` counts AMD devices whose properties the kernel
    keeps from this job.

    `perfmon`: the process has a capability that goes before perf_event_paranoid.
    """

    files: tuple[DeviceFile, ...] = ()
    amdgpu: bool = False
    hidden_devices: int = 0
    groups: tuple[str, ...] = ()
    user_name: str = ""
    perf_event_paranoid: int | None = None
    perfmon: bool = False


class AttachedProfiler(msgspec.Struct, frozen=True):
    """A profiler that the environment puts into every program: its name, the variable, and the file
    that it names.
    """

    variable: str
    library: str
    name: str


class TorchFiles(msgspec.Struct, frozen=True):
    """What the torch of the workload's Python brings along: the real path of the rocprofiler-sdk
    that it loads, whether it has a roctracer of its own ("yes" or ""), and its HIP version.
    """

    folder: str = ""
    sdk: str = ""
    roctracer: str = ""
    hip: str = ""


class ForeignLock(msgspec.Struct, frozen=True):
    """A lock that this user cannot open, and whose it is."""

    path: str
    owner: str = ""


class Profilers(msgspec.Struct, frozen=True):
    """What may get into a profiler's way. `tool_sdk` is the rocprofiler-sdk that rocprofv3 loads,
    as a real path; `register_library` the value of ROCPROFILER_REGISTER_LIBRARY; `locks` are
    rocprof-compute's.
    """

    attached: tuple[AttachedProfiler, ...] = ()
    register_library: str = ""
    torch: TorchFiles = TorchFiles()
    tool_sdk: str = ""
    locks: tuple[ForeignLock, ...] = ()


class Environment(msgspec.Struct, frozen=True):
    """The probe's answer. Fields that this version does not know are ignored. `lacks_rocm`: where
    the workload runs there is no ROCm, neither an installation nor wheels. `masks` are the
    variables there that hide devices; None where the probe did not run.
    """

    host: str = ""
    boot_id: str = ""
    kernel: str = ""
    cpu_model: str = ""
    cpus: int | None = None
    cpus_allowed: tuple[int, ...] = ()
    memory_bytes: int | None = None
    packages: dict[str, str] = {}
    devices: tuple[Device, ...] = ()
    tools: dict[str, Tool] = {}
    rocm_version: str = ""
    permissions: Permissions = Permissions()
    container: str = ""
    lacks_rocm: bool = False
    masks: dict[str, str] | None = None
    slurm: dict[str, str] = {}
    profilers: Profilers = Profilers()

    @property
    def accelerators(self) -> tuple[Device, ...]:
        """Devices other than the CPU."""
        return tuple(device for device in self.devices if device.kind != "cpu")

    def node(self, variables: dict[str, str]) -> NodeRecord:
        """The node's entry in the manifest; of `variables`, those of this process, only the
        allow-list is kept. What hides devices counts as it is where the workload runs: an image,
        its options or its first lines may set it.
        """
        if self.masks is not None:
            outside = {name: value for name, value in variables.items() if name not in MASKS}
            variables = {**outside, **self.masks}
        versions = {**self.packages, **({"rocm": self.rocm_version} if self.rocm_version else {})}
        return NodeRecord(
            host=self.host,
            boot_id=self.boot_id,
            kernel=self.kernel,
            cpu_model=self.cpu_model,
            cpus=self.cpus,
            cpus_allowed=self.cpus_allowed,
            memory_bytes=self.memory_bytes,
            versions=versions,
            devices=tuple(
                DeviceRecord(**msgspec.structs.asdict(device)) for device in self.devices
            ),
            hidden_devices=self.permissions.hidden_devices,
            variables={name: variables[name] for name in RECORDED_VARIABLES if name in variables},
        )


def parse(output: bytes) -> Environment:
    """Read the probe's JSON. Raises Unavailable when it is not readable (the probe could not
    run).
    """
    try:
        return msgspec.json.decode(output, type=Environment)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unavailable(
            f"the probe of the node gave no readable answer ({error})",
            "it was asked through the workload's interpreter: name a Python 3.8 or newer with "
            "--python",
        ) from error
