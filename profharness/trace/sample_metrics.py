"""The telemetry metrics: name, unit, and whether a value is an instant or covers an interval. Data
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SampleMetric:
    """What one telemetry metric means. `stamp` says whether a value is an instant or covers an
    interval.
    """

    name: str
    unit: str
    stamp: Literal["instant", "interval"]
    meaning: str


XCC_LIMIT = 8  # compute dies of one package that the driver reports

# What the vendors' drivers say of a device. A mean over an interval is made from a counter or from
# two readings.
DEVICE_METRICS: tuple[SampleMetric, ...] = (
    SampleMetric(
        "gpu_percent",
        "%",
        "instant",
        "the driver's figure: share of its own averaging time in which anything ran on the device",
    ),
    SampleMetric(
        "gpu_activity_mean",
        "%",
        "interval",
        "share of time in which anything ran on the device, averaged between two samples by "
        "the driver's accumulator",
    ),
    SampleMetric(
        "memory_activity",
        "share",
        "instant",
        "share of time in which the memory controller worked (NVIDIA: "
        "in which memory was read or written)",
    ),
    SampleMetric(
        "memory_activity_mean",
        "share",
        "interval",
        "share of time in which the memory controller worked, "
        "averaged between two samples by the driver's accumulator",
    ),
    SampleMetric(
        "wave_fill",
        "share",
        "instant",
        "waves in flight over the waves that the device can hold (KFD's cu_occupancy, "
        "in units of full compute units)",
    ),
    SampleMetric(
        "cu_active",
        "share",
        "interval",
        "share of the compute units with at least one wave, averaged over time (AMD's hardware "
        "counters)",
    ),
    SampleMetric(
        "cu_occupancy",
        "share",
        "interval",
        "resident waves over the waves that the compute units can hold, averaged over time",
    ),
    SampleMetric(
        "matrix_busy",
        "share",
        "interval",
        "share of cycles in which the matrix cores (MFMA) worked",
    ),
    SampleMetric(
        "valu_busy", "share", "interval", "share of cycles in which vector ALUs were issued work"
    ),
    SampleMetric(
        "vmem_busy",
        "share",
        "interval",
        "share of cycles in which vector memory instructions were issued",
    ),
    SampleMetric(
        "lds_busy",
        "share",
        "interval",
        "share of cycles in which instructions of the local data share were issued",
    ),
    SampleMetric(
        "fabric_read",
        "B/s",
        "interval",
        "bytes read through the memory fabric by the L2 cache (Infinity Cache and other devices "
        "included, so not HBM alone)",
    ),
    SampleMetric(
        "fabric_write",
        "B/s",
        "interval",
        "bytes written through the memory fabric by the L2 cache (on MI300 and MI350 at most: "
        "64 bytes for each write)",
    ),
    SampleMetric(
        "exporter_valu_busy",
        "share",
        "instant",
        "an exporter's VALUBusy: share of busy cycles in which vector ALUs were issued work",
    ),
    SampleMetric(
        "exporter_mfma_util",
        "share",
        "instant",
        "an exporter's MfmaUtil: share of busy cycles in which the matrix cores worked",
    ),
    SampleMetric(
        "exporter_occupancy",
        "share",
        "instant",
        "an exporter's OccupancyPercent: waves over those that fit, of busy cycles",
    ),
    SampleMetric(
        "exporter_simd_utilization",
        "share",
        "instant",
        "an exporter's SIMD_UTILIZATION: share of compute units with a wave, in a short window",
    ),
    SampleMetric(
        "exporter_gpu_util",
        "share",
        "instant",
        "an exporter's GPU_UTIL: share of cycles in which the device was busy, in a short window",
    ),
    *(
        SampleMetric(
            f"xcc_busy_{number}",
            "%",
            "instant",
            f"the driver's busy figure of compute die {number} of the device",
        )
        for number in range(XCC_LIMIT)
    ),
    SampleMetric(
        "sm_activity",
        "share",
        "interval",
        "share of the SMs with at least one warp, averaged over time",
    ),
    SampleMetric(
        "sm_occupancy", "share", "interval", "resident warps over the warps that the SMs can hold"
    ),
    SampleMetric(
        "tensor_activity", "share", "interval", "share of cycles in which the tensor cores worked"
    ),
    SampleMetric(
        "fp64_activity", "share", "interval", "share of cycles in which the FP64 pipe worked"
    ),
    SampleMetric(
        "fp32_activity", "share", "interval", "share of cycles in which the FP32 pipe worked"
    ),
    SampleMetric(
        "fp16_activity",
        "share",
        "interval",
        "share of cycles in which the FP16 pipe worked (without tensor cores)",
    ),
    SampleMetric(
        "dram_activity", "share", "interval", "memory bandwidth used over the device's peak"
    ),
    SampleMetric("pcie_sent", "B/s", "interval", "bytes from the device to the host over PCIe"),
    SampleMetric("pcie_received", "B/s", "interval", "bytes from the host to the device over PCIe"),
    SampleMetric("nvlink_sent", "B/s", "interval", "bytes sent over all NVLink links"),
    SampleMetric("nvlink_received", "B/s", "interval", "bytes received over all NVLink links"),
    SampleMetric("xgmi_read", "B/s", "interval", "bytes read over all XGMI links"),
    SampleMetric("xgmi_written", "B/s", "interval", "bytes written over all XGMI links"),
    SampleMetric(
        "power_w",
        "W",
        "instant",
        "power as the sensor says; of the whole package where dies share one",
    ),
    SampleMetric(
        "power_average",
        "W",
        "instant",
        "power averaged by the driver over its own period (about 1 s)",
    ),
    SampleMetric(
        "power_energy", "W", "interval", "power between two samples by the device's energy counter"
    ),
    SampleMetric("power_limit", "W", "instant", "power cap in force"),
    SampleMetric(
        "clock_gpu",
        "MHz",
        "instant",
        "clock of the compute units (mean over the dies of a package)",
    ),
    SampleMetric("clock_memory", "MHz", "instant", "clock of the memory"),
    SampleMetric("clock_soc", "MHz", "instant", "clock of the fabric"),
    SampleMetric("temperature_edge", "°C", "instant", "temperature at the die's edge"),
    SampleMetric("temperature_hotspot", "°C", "instant", "highest temperature of the die"),
    SampleMetric("temperature_memory", "°C", "instant", "highest temperature of the memory"),
    SampleMetric(
        "throttle_power",
        "share",
        "interval",
        "share of time in which the power or current limit lowered the clock",
    ),
    SampleMetric(
        "throttle_thermal",
        "share",
        "interval",
        "share of time in which a temperature limit lowered the clock",
    ),
    SampleMetric(
        "throttle_external",
        "share",
        "interval",
        "share of time in which a signal from outside of the device lowered the clock",
    ),
    SampleMetric("gpu_memory_used", "B", "instant", "device memory allocated, by all processes"),
    SampleMetric("gpu_memory_total", "B", "instant", "device memory"),
    SampleMetric(
        "gpu_processes", "processes", "instant", "processes that hold device memory or queues"
    ),
    SampleMetric(
        "gpu_processes_other",
        "processes",
        "instant",
        "processes on the device that do not belong to the workload",
    ),
)

_RDMA = "the node's RDMA ports (InfiniBand, RoCE); IP over InfiniBand is in it too"
_NICS = "the node's Slingshot NICs, whoever used them; Lustre over Slingshot is in it too"
_OPTIMISED = "optimised frames: libfabric (RCCL's plugin, MPI) and Lustre"
_ETHERNET = "plain Ethernet frames: sockets, IP"
_OWN = "the node's Slingshot NICs"
_CLASSED = "the NICs: frames by the smallest size of their class, where no octets are counted"
_ANY_FILE = "of any file system, pipe or terminal"
SAMPLE_METRICS: tuple[SampleMetric, ...] = (
    *DEVICE_METRICS,
    SampleMetric("cpu_tree", "cores", "interval", "cores that the workload's process tree ran on"),
    SampleMetric(
        "cpu_tree_wait", "cores", "interval", "cores that the process tree waited for (run queue)"
    ),
    SampleMetric("cpu_node", "cores", "interval", "cores busy on the whole node"),
    SampleMetric(
        "memory_tree",
        "B",
        "instant",
        "resident memory of the process tree (shared pages count in each process)",
    ),
    SampleMetric(
        "memory_node_used", "B", "instant", "memory in use on the node (total less available)"
    ),
    SampleMetric("memory_cgroup", "B", "instant", "memory charged to the cgroup"),
    SampleMetric(
        "cpu_throttled",
        "share",
        "interval",
        "share of time in quota periods in which the cgroup was stopped by its CPU quota",
    ),
    SampleMetric(
        "pressure_cpu", "share", "interval", "share of time that some task waited for a CPU"
    ),
    SampleMetric(
        "pressure_memory", "share", "interval", "share of time that some task waited for memory"
    ),
    SampleMetric("pressure_io", "share", "interval", "share of time that some task waited for I/O"),
    SampleMetric("processes_tree", "processes", "instant", "processes of the workload's tree"),
    SampleMetric("power_cpu", "W", "interval", "power of all CPU packages of the node (RAPL)"),
    SampleMetric("power_node", "W", "instant", "power of the whole node by its own meter"),
    SampleMetric(
        "power_node_energy",
        "W",
        "interval",
        "power of the whole node between two samples by its meter's energy counter",
    ),
    SampleMetric("power_node_limit", "W", "instant", "power cap of the whole node"),
    SampleMetric("power_cpu_energy", "W", "interval", "power of all CPUs by the node's own meter"),
    SampleMetric(
        "power_memory_energy", "W", "interval", "power of the node's memory by its own meter"
    ),
    SampleMetric(
        "power_module",
        "W",
        "instant",
        "power of an accelerator module by the node's own meter (package and memory)",
    ),
    SampleMetric(
        "power_module_energy",
        "W",
        "interval",
        "power of an accelerator module between two samples by the energy counter of the "
        "node's own meter",
    ),
    SampleMetric(
        "power_module_limit",
        "W",
        "instant",
        "power cap of an accelerator module, as the node enforces it",
    ),
    *(
        SampleMetric(name, "B/s", "interval", meaning)
        for name, meaning in (
            ("network_received", "bytes received by the node's network interfaces (without RDMA)"),
            ("network_sent", "bytes sent by the node's network interfaces (without RDMA)"),
            ("network_loopback", "bytes between programs of this node (loopback)"),
            ("rdma_received", f"bytes received by {_RDMA}"),
            ("rdma_sent", f"bytes sent by {_RDMA}"),
            ("slingshot_received", f"bytes received by {_NICS}"),
            ("slingshot_sent", f"bytes sent by {_NICS}"),
            ("slingshot_received_optimised", f"the part received in {_OPTIMISED}"),
            ("slingshot_sent_optimised", f"the part sent in {_OPTIMISED}"),
            ("slingshot_received_ethernet", f"the part received in {_ETHERNET}"),
            ("slingshot_sent_ethernet", f"the part sent in {_ETHERNET}"),
            ("slingshot_received_least", f"bytes received at least by {_CLASSED}"),
            ("slingshot_sent_least", f"bytes sent at least by {_CLASSED}"),
            ("lustre_read", "bytes that programs of the node read from Lustre, its cache included"),
            ("lustre_written", "bytes that programs of the node wrote to Lustre"),
            ("nfs_read", "bytes that the node read from NFS servers, over all mounts"),
            ("nfs_written", "bytes that the node wrote to NFS servers, over all mounts"),
            ("tree_read", f"bytes that calls of the process tree read, {_ANY_FILE}"),
            ("tree_written", f"bytes that calls of the process tree wrote, {_ANY_FILE}"),
        )
    ),
    *(
        SampleMetric(f"slingshot_{name}", "events/s", "interval", f"times that {meaning}")
        for name, meaning in (
            ("link_retries", f"a link of {_OWN} sent again what was damaged on its way"),
            ("pauses", f"{_OWN} asked the switch to pause"),
            ("timeouts", f"{_OWN} gave up waiting for the answer to a packet"),
        )
    ),
    SampleMetric(
        "lustre_calls", "calls/s", "interval", "calls of the node's programs to files on Lustre"
    ),
    SampleMetric(
        "throughput", "items/s", "interval", "items of the trials in the interval over its length"
    ),
)

TORCH_ALLOCATED, TORCH_RESERVED = "torch_allocated", "torch_reserved"
HSA_ALLOCATED = "hsa_allocated"
# What a profiler writes into its own file, and no sampler reads.
RECORDED_METRICS: tuple[SampleMetric, ...] = (
    SampleMetric(
        TORCH_ALLOCATED,
        "B",
        "instant",
        "memory allocated by torch: held by tensors of the process (on the host: those made "
        "while a recording was on)",
    ),
    SampleMetric(
        TORCH_RESERVED,
        "B",
        "instant",
        "memory reserved by torch: taken from the device by its allocator, in use or kept for "
        "later",
    ),
    SampleMetric(
        HSA_ALLOCATED,
        "B",
        "instant",
        "memory allocated through HSA, where hipMalloc ends: held by the process (on the host: "
        "memory that devices reach)",
    ),
)

_BY_NAME = {metric.name: metric for metric in (*SAMPLE_METRICS, *RECORDED_METRICS)}
_PLACES = {metric.name: place for place, metric in enumerate(SAMPLE_METRICS)}


def metric_of(name: str) -> SampleMetric | None:
    """The metric of that name; `network_sent:eth0` is the `network_sent` of one interface. None for
    an unknown one.
    """
    return _BY_NAME.get(name.partition(":")[0])


def unit_of(name: str) -> str:
    """Empty for an unknown metric."""
    metric = metric_of(name)
    return "" if metric is None else metric.unit


def place_of(name: str) -> tuple[int, str]:
    """For sorting: the table's order, unknown metrics last."""
    return _PLACES.get(name.partition(":")[0], len(_PLACES)), name
