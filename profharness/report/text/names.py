"""How the analysis' metrics are called in front of people: title, short title, and what the figure
says.

The keys are the names that stand in `Summary.metrics` and `PointSummary.metrics`. A metric without
an entry is still printed, under its own name with blanks for underscores.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.report.text.measured.sample_titles import SAMPLE_TITLES
from profharness.trace.sample_metrics import SAMPLE_METRICS

THROUGHPUT = "throughput"
LATENCY_MEAN = "latency_mean"
LATENCY_P50 = "latency_p50"
LATENCY_P99 = "latency_p99"
GPU_PERCENT = "gpu_percent"
BUSY = "busy"
FILL = "fill"
FILL_BARE = "fill_bare"
WAVE_FILL = "wave_fill"
CU_ACTIVE = "cu_active"
SM_ACTIVITY = "sm_activity"
POWER_SATURATION = "power_saturation"
POWER_W = "power_w"
ENERGY_PER_ITEM = "energy_per_item"
CORES_USED = "cores_used"
CORES_USED_STEPS = "cores_used_steps"
STARTUP = "startup_time"
CORES_ALLOWED = "cores_allowed"
SUPPORTED = "supported_operators"
MEMORY_ACTIVITY = "memory_activity"
BANDWIDTH_SHARE = "bandwidth_share"
MFU = "mfu"
STEP_TIME = "step_time"
SERVER_BATCH = "server_batch"
STEP_RATE = "steps_per_second"
INTENSITY = "operational_intensity"
ACHIEVED_FLOPS = "achieved_flops"
CEILING_FLOPS = "ceiling_flops"
CEILING_BANDWIDTH = "ceiling_bandwidth"


@dataclass(frozen=True)
class MetricTitle:
    """`title` for tables and axes, `meaning` for a reader who meets it for the first time."""

    title: str
    meaning: str = ""


_TITLES = {
    THROUGHPUT: MetricTitle(
        "throughput", "items processed per second in the timed region of the bare pass"
    ),
    LATENCY_MEAN: MetricTitle("latency mean", "mean time of one trial or request"),
    LATENCY_P50: MetricTitle("latency p50", "half of the trials or requests are faster"),
    "energy_node": MetricTitle(
        "energy by the node's meter", "energy of the whole node by its own meter"
    ),
    "latency_p90": MetricTitle("latency p90", "nine of ten are faster"),
    "latency_p95": MetricTitle("latency p95", "19 of 20 are faster"),
    LATENCY_P99: MetricTitle("latency p99", "99 of 100 are faster"),
    "latency_p99_9": MetricTitle("latency p99.9", "999 of 1000 are faster"),
    GPU_PERCENT: MetricTitle(
        "GPU %", "the driver's figure: something was running on the device, however little"
    ),
    BUSY: MetricTitle("busy", "share of the window in which at least one kernel ran"),
    "busy_any": MetricTitle("busy with copies", "the same with copies counted as work"),
    "sum_busy": MetricTitle(
        "sum of kernel times",
        "kernel time over the window; above 100 % when kernels run side by side",
    ),
    "concurrency": MetricTitle("concurrency", "kernels running at once, while any runs"),
    "compute": MetricTitle(
        "compute", "share of the window in which a kernel other than a collective ran"
    ),
    "communication": MetricTitle("communication", "share of the window in which a collective ran"),
    "exposed_communication": MetricTitle(
        "communication, exposed", "the same, with no compute beside it"
    ),
    "overlapped_communication": MetricTitle(
        "communication, overlapped", "share of the window in which a collective ran beside compute"
    ),
    "copy": MetricTitle("copies", "share of the window in which a copy ran"),
    "exposed_copy": MetricTitle("copies, exposed", "the same, with no kernel beside it"),
    "idle": MetricTitle("idle", "share of the window in which neither a kernel nor a copy ran"),
    "idle_no_host_record": MetricTitle(
        "idle: no host record", "the trace does not show what the host did meanwhile"
    ),
    "idle_waiting_copy_or_event": MetricTitle(
        "idle: waiting on copies or events", "the next piece of work waited for a copy or an event"
    ),
    "idle_queued_gap": MetricTitle(
        "idle: queued gaps", "the next kernel was launched already, and yet the device paused"
    ),
    "idle_launch_in_progress": MetricTitle(
        "idle: launches", "the call that launches the next kernel was running"
    ),
    "idle_synchronisation": MetricTitle(
        "idle: synchronisation", "the host was inside a synchronisation call"
    ),
    "idle_host_not_ready": MetricTitle(
        "idle: host not ready", "the host did something else before it began the next launch"
    ),
    "idle_micro_gaps": MetricTitle("idle in gaps under 10 µs"),
    "idle_macro_gaps": MetricTitle("idle in longer gaps"),
    "idle_longest_gap": MetricTitle(
        "longest gap", "the longest time without a kernel or copy on a device"
    ),
    "launch_latency_median": MetricTitle(
        "launch latency, median",
        "kernel start after launch start, for kernels that met an empty queue",
    ),
    "launch_latency_p99": MetricTitle("launch latency, p99", "99 of 100 are shorter"),
    "queue_delay_median": MetricTitle(
        "queue delay, median", "the same for kernels that queued behind others"
    ),
    "queue_delay_p99": MetricTitle("queue delay, p99", "99 of 100 are shorter"),
    "queue_depth": MetricTitle("queue depth", "kernels launched and not finished, on average"),
    "launch_bound": MetricTitle(
        "launch-bound",
        "share of the window in which the host launches kernels while the device is idle or "
        "finishes its last kernel",
    ),
    "short_kernels_by_count": MetricTitle("kernels under 10 µs, by number"),
    "short_kernels_by_time": MetricTitle("kernels under 10 µs, by time"),
    "underfilled": MetricTitle(
        "underfilled",
        "share of the window in which kernels run that fill less than half of the compute units",
    ),
    STEP_RATE: MetricTitle("steps per second", "steady steps over the time that they took"),
    "requests_per_s": MetricTitle(
        "requests answered", "requests answered in the window over its length"
    ),
    "failed_share": MetricTitle(
        "failed requests", "share of the requests that ended in the window without an answer"
    ),
    "in_flight": MetricTitle(
        "requests in flight", "mean number over the window, clients that think included"
    ),
    "service_latency_mean": MetricTitle("service latency mean", "from the send to the answer"),
    "service_latency_p50": MetricTitle("service latency p50", "from the send to the answer"),
    "service_latency_p99": MetricTitle("service latency p99", "from the send to the answer"),
    **{
        f"part_{name}": MetricTitle(f"part of a request: {title}", meaning)
        for name, title, meaning in (
            (
                "transport_out",
                "transport out",
                "from the send until the server has the request in its queue",
            ),
            ("queue", "queue", "waiting in the server's queue"),
            ("input", "compute input", "the server copies inputs"),
            ("hand_over", "hand-over", "between the server and the model's process, both ways"),
            ("model", "model", "the inference function"),
            ("infer", "compute infer", "the server's inference step"),
            ("output", "compute output", "the server copies outputs"),
            (
                "transport_back",
                "transport back",
                "from the server's answer until the client has it",
            ),
            ("transport", "transport", "both ways"),
            ("before", "before the model", "transport and queue"),
            ("after", "after the model", "the way back"),
        )
    },
    "parts_sum": MetricTitle(
        "parts of a request, together",
        "over the mean latency; 100 % where nothing is missing or counted twice",
    ),
    SERVER_BATCH: MetricTitle(
        "batch in the server", "items that the server ran at once, on average"
    ),
    "client_cores": MetricTitle("cores of the load generator", "CPU cores that its processes used"),
    "client_cpu_per_request": MetricTitle(
        "client CPU per request", "CPU time of the load generator"
    ),
    "server_cores": MetricTitle(
        "cores of the server", "CPU cores that the server's processes used in the window"
    ),
    "load_sent": MetricTitle("sent to the server", "bytes per second from the clients"),
    "load_received": MetricTitle("received from the server", "bytes per second to the clients"),
    STEP_TIME: MetricTitle(
        "step time", "one steady step: the mean in a run, the median in a single trace"
    ),
    "kernels_per_step": MetricTitle(
        "kernels per step", "kernels that one step launches, on average"
    ),
    "cpu_sampled": MetricTitle("time sampled", "the part of the time that the CPU samples cover"),
    "memory_peak": MetricTitle("memory, peak", "most that the workload's processes held at once"),
    SUPPORTED: MetricTitle(
        "supported operators", "share of the model's operators that its engine runs itself"
    ),
    "warmup_trials": MetricTitle(
        "warm-up trials", "trials before the timed ones, which do not count"
    ),
    "warmup_time": MetricTitle(
        "warm-up time", "from the first warm-up trial to the last one's end"
    ),
    "throughput_median": MetricTitle(
        "throughput, median", "items of a trial over the median trial time"
    ),
    "throughput_of_mean_time": MetricTitle(
        "throughput of the mean time", "all items over the time of all trials, slow ones included"
    ),
    "latency_std": MetricTitle("latency, standard deviation", "how much trials or requests differ"),
    "flops_per_item": MetricTitle("FLOPs per item", "useful operations that one item needs"),
    "operators": MetricTitle("operators", "share of the window in which a framework operator ran"),
    "busy_bare": MetricTitle(
        "busy, bare", "kernel time of the traced pass over the trial time of the bare pass"
    ),
    FILL: MetricTitle(
        "fill", "share of the compute units that the running kernels can occupy, over the window"
    ),
    "fill_busy": MetricTitle("fill while busy", "the same over busy time only"),
    FILL_BARE: MetricTitle("fill, bare", "fill over the trial time of the bare pass"),
    WAVE_FILL: MetricTitle(
        "wave fill",
        "waves in flight over the waves that the device can hold, sampled without a profiler",
    ),
    "slots_full_time": MetricTitle(
        "slots full",
        "share of the window in which no compute unit has room for a further workgroup",
    ),
    POWER_SATURATION: MetricTitle("power", "(power - idle) / (limit - idle)"),
    "power_vs_gemm": MetricTitle(
        "power against GEMM", "(power - idle) / (power of the calibrated GEMM - idle)"
    ),
    POWER_W: MetricTitle("power drawn", "package power, averaged over the point"),
    ENERGY_PER_ITEM: MetricTitle(
        "energy per item", "package energy over the items of all ranks on it"
    ),
    "energy_per_item_net": MetricTitle(
        "energy per item, net", "the same less what the idle package draws"
    ),
    "energy_per_step": MetricTitle("energy per step", "package energy over the steady steps"),
    "items_per_joule": MetricTitle("items per joule", "items of all ranks over the package energy"),
    "energy": MetricTitle("energy", "package energy over the window"),
    "power_sensor_period": MetricTitle(
        "power sensor, period", "the time that one value of the power sensor stands for"
    ),
    "power_sensor_delay": MetricTitle("power sensor, delay", "how late the power sensor is"),
    "power_idle": MetricTitle("idle power", "what the packages drew before the workload began"),
    CORES_USED: MetricTitle(
        "cores used", "CPU cores that the process tree ran on, averaged over the point"
    ),
    CORES_USED_STEPS: MetricTitle(
        "cores used in the steps", "CPU cores that the process tree ran on during its steps"
    ),
    STARTUP: MetricTitle("start-up", "from the start of the pass to the end of its first step"),
    CORES_ALLOWED: MetricTitle("cores allowed", "CPU cores that the process tree may run on"),
    MEMORY_ACTIVITY: MetricTitle(
        "memory activity", "share of time in which the memory controller worked, sampled"
    ),
    BANDWIDTH_SHARE: MetricTitle("memory bandwidth", "bytes per second over the calibrated copy"),
    "mbu": MetricTitle(
        "least memory bandwidth", "bytes that the tensors need over the bandwidth ceiling"
    ),
    MFU: MetricTitle("MFU", "useful FLOP/s over the dense peak"),
    INTENSITY: MetricTitle("operational intensity", "useful FLOPs per byte moved"),
    ACHIEVED_FLOPS: MetricTitle("achieved FLOP/s", "useful FLOPs over the length of the window"),
    "mfu_at_clock": MetricTitle(
        "MFU at the clock", "useful FLOP/s over the dense peak at the clock that was observed"
    ),
    "flops_of_ceiling": MetricTitle(
        "FLOP/s of ceiling",
        "useful FLOP/s over the calibrated GEMM, else the data sheet or the recording tool's",
    ),
    "hfu": MetricTitle("HFU", "operations that the hardware did, by counters, over the dense peak"),
    "achieved_bandwidth": MetricTitle(
        "bytes per second", "memory traffic by counters, or the least that the tensors need"
    ),
    "hbm_bytes": MetricTitle(
        "bytes to memory", "traffic to and from memory, by counters of DRAM requests"
    ),
    "gpu_util": MetricTitle(
        "GPU_UTIL", "share of clocks in which the device was active, by counters"
    ),
    "counted_occupancy": MetricTitle(
        "occupancy, counted", "resident waves over the most that fit, by counters"
    ),
    "simd_utilisation": MetricTitle(
        "units with waves", "share of the compute units that held a wave, by counters"
    ),
    "valu_busy": MetricTitle(
        "vector units busy", "share of clocks in which a vector instruction was issued, by counters"
    ),
    "mfma_util": MetricTitle(
        "matrix units busy", "share of clocks in which the matrix units worked, by counters"
    ),
    "lane_use": MetricTitle(
        "lanes in use", "active lanes of vector instructions, by counters: divergence, not load"
    ),
    "l2_hit": MetricTitle("L2 hits", "share of requests to the L2 that it answered, by counters"),
    "lds_bank_conflicts": MetricTitle(
        "LDS bank conflicts",
        "share of clocks in which the LDS was stalled by conflicts, by counters",
    ),
    "memory_unit_stalled": MetricTitle(
        "memory unit stalled",
        "share of clocks in which the vector memory unit waited for data, by counters",
    ),
    "fabric_bytes": MetricTitle(
        "bytes to the fabric",
        "traffic between L2 and fabric by counters: an upper bound of memory traffic",
    ),
    "roofline_share": MetricTitle(
        "of the roofline", "achieved FLOP/s over what the operational intensity allows"
    ),
    "occupancy": MetricTitle(
        "occupancy", "resident waves over the waves that the compute units hold, while kernels run"
    ),
    "wave_quantisation": MetricTitle(
        "wave quantisation",
        "how full the rounds of workgroups are, where a kernel takes several: "
        "an upper bound of what the last one costs",
    ),
    "compute_bound": MetricTitle(
        "compute-bound",
        "share of the window in which kernels fill the device and reach 60 % of the compute "
        "ceiling",
    ),
    "bandwidth_bound": MetricTitle("bandwidth-bound", "the same for the bandwidth ceiling"),
    "inside_kernel": MetricTitle(
        "inside kernels",
        "share of the window in which kernels fill the device but reach neither ceiling",
    ),
    "torch_allocated_peak": MetricTitle(
        "memory allocated by torch, peak", "most that tensors of one process held on a device"
    ),
    "torch_reserved_peak": MetricTitle(
        "memory reserved by torch, peak", "most that one process's allocator took from a device"
    ),
    "torch_host_allocated_peak": MetricTitle(
        "memory allocated by torch on the host, peak",
        "most that tensors of one process held on the host, of those made during the recording",
    ),
    "hsa_allocated_peak": MetricTitle(
        "memory allocated through HSA, peak", "most that one process held on a device"
    ),
    "hsa_host_allocated_peak": MetricTitle(
        "memory allocated through HSA on the host, peak",
        "most that one process held on the host, of memory that devices reach",
    ),
    "undetermined": MetricTitle(
        "undetermined",
        "share of the window in which kernels fill the device and nothing tells what limits them",
    ),
    CEILING_FLOPS: MetricTitle(
        "compute ceiling", "calibrated GEMM, else the data sheet or the recording tool's"
    ),
    CEILING_BANDWIDTH: MetricTitle(
        "bandwidth ceiling", "calibrated copy, else the data sheet or the recording tool's"
    ),
}

_SAMPLE_MEANINGS = {metric.name: metric.meaning for metric in SAMPLE_METRICS}


def title_of(name: str) -> str:
    """The title of a metric; its own name with blanks where the table has none."""
    words = _TITLES.get(name)
    base, _, part = name.partition(":")
    plain = words.title if words else SAMPLE_TITLES.get(base) or base.replace("_", " ")
    return f"{plain}, {part}" if part else plain


def meaning_of(name: str) -> str:
    """One clause on what the metric says; empty where the table has none."""
    words = _TITLES.get(name)
    return words.meaning if words else _SAMPLE_MEANINGS.get(name.partition(":")[0], "")
