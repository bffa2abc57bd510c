"""Kinds of findings on what the figures tell: measurement, load, use of the device, system. Data
only.
"""

from __future__ import annotations

from profharness.findings.kind import FindingKind

KINDS = (
    # measurement
    FindingKind(
        "warmup-leak", "error", "the slow first trials are in the mean: use --warmup, or the median"
    ),
    FindingKind(
        "outlier-trial",
        "warning",
        "one trial moves the mean: look at trials.csv, raise --trials, or use the median",
    ),
    FindingKind(
        "steps-grow",
        "warning",
        "find what grows with each step (inputs, a list that is kept, a graph that is not freed), "
        "and compare steps of one length: --capture picks them",
    ),
    FindingKind("missing-sync", "error", "synchronise the device before the stop of the timer"),
    FindingKind("too-few-trials", "info", "raise --trials or --min-seconds"),
    FindingKind(
        "throttled",
        "warning",
        "the device lowered its clock: let it cool or lower the power cap's load",
    ),
    FindingKind(
        "energy-counter",
        "warning",
        "energy comes from integrated power instead; update the driver's firmware, "
        "or reboot a node whose counter stands still",
    ),
    FindingKind(
        "power-sensor",
        "info",
        "power and energy of spans shorter than twenty of its periods are not given: "
        "raise --min-seconds for more of them",
    ),
    FindingKind(
        "network-timeouts",
        "warning",
        "look for links that came up anew (device/link_restarts of the NIC) and for nodes that "
        "timed out more than others; MPICH_OFI_CXI_COUNTER_REPORT=3 names the NICs at the end of "
        "an MPI program",
    ),
    FindingKind(
        "socket-traffic",
        "warning",
        "load the network plugin of the collectives (aws-ofi-rccl for RCCL on Slingshot) and look "
        "for `Selected Provider is cxi` under NCCL_DEBUG=INFO; `NET/Socket` there is the slow way",
    ),
    FindingKind(
        "node-apart",
        "warning",
        "look for its power cap, its temperature and other work on it, and repeat the run without "
        "that node: a job goes at the pace of its slowest part",
    ),
    FindingKind(
        "device-shared", "warning", "another process used the device: ask for it exclusively"
    ),
    FindingKind(
        "cpu-pressure", "warning", "other work competed for the CPU: repeat on a quiet node"
    ),
    FindingKind(
        "sampler-gaps",
        "warning",
        "telemetry has holes: give the sampler a core or lower --telemetry-hz",
    ),
    FindingKind(
        "power-cap-left",
        "error",
        "set it again by `profharness doctor --restore-caps`, or by the vendor's own tool",
    ),
    FindingKind(
        "device-counters-hidden",
        "warning",
        "take wave_fill in their place; compute units are counted for a profiler with CAP_PERFMON "
        "only (root has it, docker --cap-add=PERFMON gives it), and for one at a time",
    ),
    FindingKind(
        "device-counters-limiter",
        "info",
        "compare with a run without device-counters before you trust speed or power of this one",
    ),
    FindingKind(
        "device-counters-exporter",
        "info",
        "read its figures as the exporter makes them; where it failed, look whether it still runs",
    ),
    FindingKind(
        "cold-cache", "info", "compile caches were cold for this point: repeat for steady figures"
    ),
    FindingKind(
        "compiled-in-trials",
        "warning",
        "do not use the slow trials of this point: give the provider a cache folder "
        "(migraphx_model_cache_dir, trt_engine_cache_path) and repeat, with fixed --batch-sizes",
    ),
    FindingKind(
        "device-fallback",
        "warning",
        "these figures are not of the device or engine that was wanted: install what is missing, "
        "or name what is there",
    ),
    FindingKind(
        "answers-differ",
        "error",
        "what the model says depends on who else is in the batch: let it mask padding, or set its "
        "parameter `join` to group in the repository's config.pbtxt",
    ),
    FindingKind(
        "nodes-on-cpu",
        "info",
        "each such node costs copies between device and host: replace these operators, "
        "or take a provider that has them",
    ),
    FindingKind(
        "operators-unsupported",
        "info",
        "expect the engine's speed of its own part alone; compare with --backend onnxruntime",
    ),
    FindingKind(
        "memory-not-bound",
        "warning",
        "processes may read memory of another node: allow the policy (a container's seccomp "
        "profile, the job's cpuset), or measure with --memory default",
    ),
    FindingKind("failed-to-compile", "warning", "torch.compile fell back to eager for this point"),
    FindingKind(
        "drift", "warning", "the repeated points differ: intervals are widened by the drift"
    ),
    FindingKind(
        "point-failed",
        "error",
        "the point has no figures; what it said is in points/PASS/POINT/stderr.log, "
        "and what its worker said in control/PASS",
    ),
    # load
    FindingKind(
        "littles-law",
        "error",
        "requests in flight do not match rate times latency: do not use this level; "
        "look at its requests.parquet",
    ),
    FindingKind(
        "generator-bound",
        "error",
        "the load generator was the limit, not the server: raise --clients, "
        "or start it on another node (--url)",
    ),
    FindingKind(
        "unstable-level",
        "warning",
        "the level did not settle: raise --time and --warmup-time; "
        "an open loop near the server's limit never does",
    ),
    FindingKind(
        "rate-not-reached",
        "warning",
        "the server (or the load generator) cannot keep this rate: lower --rate, "
        "or add --instances or devices",
    ),
    FindingKind(
        "errors",
        "error",
        "requests failed: see the server's log in control/PASS/TARGET and the level's "
        "requests.parquet; raise --timeout if they were only slow",
    ),
    FindingKind(
        "small-batches",
        "info",
        "the server's batches stay small while requests wait: "
        "raise --queue-delay-us or --max-batch-size",
    ),
    # curve
    FindingKind(
        "step", "warning", "throughput jumps between two levels: compare the kernels of both"
    ),
    FindingKind("falls-after-peak", "info", "do not go beyond the peak"),
    FindingKind("peak-beyond-range", "info", "scan larger levels to see the peak"),
    FindingKind("superlinear", "info", "throughput per client rises with clients: batching helps"),
    FindingKind(
        "poor-fit", "info", "the model does not describe the series; read the measured points"
    ),
    # communication
    FindingKind(
        "exposed-communication",
        "warning",
        "overlap collectives with compute (larger buckets, earlier launch), "
        "or use fewer ranks per model",
    ),
    FindingKind(
        "clock-by-collectives",
        "info",
        "record the ranks in one run (`profharness run` under the launcher), which reads their "
        "clocks",
    ),
    FindingKind(
        "straggler",
        "warning",
        "look at what that rank does before its collectives: input, host work, "
        "clock and power of its device",
    ),
    # use of the device
    FindingKind(
        "layout-under-convolutions",
        "info",
        "use channels_last for the model and its inputs where they are contiguous "
        "(.to(memory_format=torch.channels_last)); on AMD set PYTORCH_MIOPEN_SUGGEST_NHWC=1 in "
        "any case",
    ),
    FindingKind(
        "copies-under-products",
        "info",
        "casts: keep the weights in the type of the product (autocast casts them in every step); "
        "copies: give the product contiguous operands or plain "
        "transposes of such",
    ),
    FindingKind(
        "fp32-products",
        "info",
        'set torch.set_float32_matmul_precision("high") or '
        "torch.backends.cuda.matmul.allow_tf32 = True (on AMD also HIPBLASLT_ALLOW_TF32=1) if "
        "10 bits of mantissa suffice, or use autocast",
    ),
    FindingKind(
        "tile-waste",
        "info",
        "pad or choose the extents as multiples of the tile, join small products into larger "
        "ones, or have the kernel tuned for them (PYTORCH_TUNABLEOP_ENABLED=1)",
    ),
    FindingKind(
        "contention",
        "info",
        "give collectives fewer units of the device (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS) or move "
        "copies to where it is idle; hidden communication may still be worth this price",
    ),
    # system
    FindingKind("streams-exceed-queues", "warning", "raise GPU_MAX_HW_QUEUES or use fewer streams"),
    FindingKind(
        "mask-applied-twice", "error", "set either ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES"
    ),
    FindingKind(
        "secrets-in-artifact", "warning", "run `profharness scrub` on the file before sharing it"
    ),
)
