"""The catalogue of findings: each stable id with its default severity and what the user can do. It
holds no logic.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]


class FindingKind(msgspec.Struct, frozen=True):
    """Catalogue entry of one finding id."""

    id: str
    severity: Severity
    advice: str


KINDS = (
    # trace
    FindingKind(
        "kernels-missing",
        "error",
        "record again with a shorter capture window or another layer; "
        "do not read idle from this trace",
    ),
    FindingKind(
        "launches-missing",
        "warning",
        "start the capture before the work begins, so that launches are inside the window",
    ),
    FindingKind(
        "graph-kernels-missing",
        "error",
        "update the tracer (ROCm 7.2.0 drops kernels of graph launches) or run once without graphs",
    ),
    FindingKind(
        "graph-replays",
        "info",
        "list these operators with `hotspots --by op`",
    ),
    FindingKind(
        "graph-replays-unmatched",
        "warning",
        "record the capture of each graph that the trace replays, and name every such file with "
        "--capture-trace",
    ),
    FindingKind(
        "steps-without-device-events",
        "error",
        "leave those steps out: the tracer stopped recording device work there",
    ),
    FindingKind(
        "step-range-unmatched",
        "warning",
        "name a range that is there (`report RUN --step-range REGEX` tries another), "
        "or record ranges: roctx by rocprofv3, record_function by torch",
    ),
    FindingKind(
        "empty-trace",
        "error",
        "check that the device is visible to the process and that the capture window covers "
        "device work",
    ),
    FindingKind(
        "truncated-file",
        "error",
        "the writer was interrupted; record again or use the part that was read with care",
    ),
    FindingKind("events-dropped", "error", "shorten the capture window or raise the tool's buffer"),
    FindingKind(
        "idle-contradicted",
        "error",
        "the trace missed work: trust the driver's figures, not the idle share",
    ),
    FindingKind(
        "run-incomplete",
        "error",
        "run it again for the missing part (a scan goes on by `profharness run --resume -o "
        "RUN`); what was recorded until then is shown",
    ),
    FindingKind(
        "nothing-recorded",
        "error",
        "the layer saw nothing of this program; `profharness doctor --try` tells whether it "
        "works here",
    ),
    FindingKind(
        "hook-message",
        "info",
        "the hooks noted this inside the process; its times and exit status are its own",
    ),
    FindingKind(
        "fork-not-recorded",
        "error",
        "start worker processes by spawn (multiprocessing.set_start_method('spawn')), "
        "or use torch only in the parent",
    ),
    FindingKind(
        "hook-not-loaded",
        "error",
        "use --hook exec: PYTHONPATH or sitecustomize does not reach that process",
    ),
    FindingKind(
        "above-peak",
        "error",
        "do not use this figure: compare the device's name with the machine's, "
        "the FLOPs with the model's, and look for what the trace lacks",
    ),
    FindingKind(
        "formula-misfit",
        "warning",
        "compare the entry's positions with the inputs that the trace recorded (hotspots --by op "
        "--json shows them), or bound the entry with since and until",
    ),
    FindingKind(
        "kernels-differ",
        "warning",
        "the passes ran different kernels: compare them with `hotspots --pass`",
    ),
    # profiler
    FindingKind(
        "profiler-overhead",
        "warning",
        "take throughput from the bare pass; shorten the capture or drop options",
    ),
    FindingKind(
        "serialising-counters", "info", "counter passes serialise kernels: their times are not used"
    ),
    FindingKind(
        "profiler-failed",
        "error",
        "see the layer's log under artifacts/; the workload itself is unaffected",
    ),
    FindingKind(
        "profiler-hung",
        "error",
        "use what was written with care; try --tool-arg rocprofv3:--disable-signal-handlers, "
        "fewer traces, or a shorter run",
    ),
    FindingKind(
        "launcher-traced",
        "error",
        "put profharness inside the launcher (torchrun ... profharness run ... "
        "-- python train.py), so that the workers are traced",
    ),
    FindingKind(
        "mixed-rocm",
        "error",
        "let the program and the profiler use one ROCm: a torch wheel brings its own, "
        "which must match the installation",
    ),
    FindingKind(
        "no-device-access",
        "error",
        "ask for /dev/kfd and /dev/dri and the groups video and render (in a container: "
        "--device=/dev/kfd --device=/dev/dri, apptainer --rocm)",
    ),
    FindingKind(
        "counters-inexact",
        "warning",
        "grant CAP_PERFMON (docker --cap-add=PERFMON) and set perf_event_paranoid to 2 or less",
    ),
    FindingKind(
        "counters-refused",
        "error",
        "ask for fewer counters of one block per pass, and for names that this architecture has",
    ),
    FindingKind(
        "counters-split",
        "info",
        "nothing is lost; each part is an execution of its own, "
        "so compare counters of different parts with care",
    ),
    FindingKind(
        "window-cut",
        "info",
        "the figures are of the window; a later release of the tool records the window alone, "
        "which costs less",
    ),
    FindingKind(
        "profiler-changed-exit",
        "warning",
        "the workload's own status is reported; the profiler altered it",
    ),
    # clock
    FindingKind(
        "clock-residual",
        "warning",
        "times across sources differ by the figure shown; compare only what is further apart",
    ),
    FindingKind(
        "clock-unaligned", "warning", "record with profharness run, which takes clock snapshots"
    ),
    FindingKind(
        "clock-causality",
        "warning",
        "device and host clocks disagree: launch latencies are off by at least the figure shown",
    ),
    FindingKind(
        "suspended-host",
        "warning",
        "the host slept during or before the run: sources on MONOTONIC and BOOTTIME differ",
    ),
    FindingKind(
        "clock-stepped", "error", "the wall clock was stepped during the run: record again"
    ),
    # measurement
    FindingKind(
        "warmup-leak", "error", "the slow first trials are in the mean: use --warmup, or the median"
    ),
    FindingKind(
        "outlier-trial",
        "warning",
        "one trial moves the mean: look at trials.csv, raise --trials, or use the median",
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
        "cold-cache", "info", "compile caches were cold for this point: repeat for steady figures"
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
