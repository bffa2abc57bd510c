"""Kinds of findings on what was recorded: trace, profiler and clocks. Data only."""

from __future__ import annotations

from profharness.findings import ways
from profharness.findings.kind import FindingKind

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
        "times-missing",
        "warning",
        "record again, with another release of the tool where it happens again: figures of time "
        "are of the other records",
    ),
    FindingKind(
        "overlong-kernels",
        "warning",
        "record again, with another release of the tool where it happens again: when these kernels "
        "ended is not known",
    ),
    FindingKind(
        "host-ahead",
        "info",
        "look at single steps with `metrics --steps all`, and at what they wait for with "
        "`--critical-path`: both follow what a step launched",
    ),
    FindingKind(
        "work-of-others",
        "info",
        "look at what else runs on the device: other processes, or work between the marks "
        "(validation, checkpoints)",
    ),
    FindingKind(
        "graph-kernels-missing",
        "error",
        f"{ways.NEWER_TRACER} or run once without graphs",
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
        f"or record ranges: {ways.RANGES}",
    ),
    FindingKind(
        "empty-trace",
        "error",
        "check that the device is visible to the process and that the capture window covers "
        "device work",
    ),
    FindingKind(
        "start-up",
        "info",
        "warm up before the capture: run some steps first, of every kind that the capture holds",
    ),
    FindingKind(
        "nothing-by-line",
        "warning",
        "sample at a shorter interval (--pc-sampling METHOD:INTERVAL) or record more launches; "
        "`rocprofv3 -L` says what the device can",
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
        "output-lost",
        "error",
        "make room (or raise the quota, or `ulimit -f`) and run it again; what was written until "
        "then is kept",
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
        "ceiling-not-believed",
        "warning",
        "`profharness calibrate` again, on a node where nothing else runs",
    ),
    FindingKind(
        "impossible-figures",
        "error",
        "use no figure of this file: its tool or what happened to the file changed it, so record "
        "or copy it again",
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
        "serialising-counters",
        "info",
        "take times from a pass without counters, samples and logs",
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
        "profiler-attached",
        "error",
        "start profharness outside of the other profiler, or unset the variable that attaches it",
    ),
    FindingKind(
        "known-fault",
        "warning",
        "use another release of the tool, or another layer",
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
        "ranks-apart",
        "warning",
        "give all ranks one name by --run-id NAME (or --output DIR), on a file system that all "
        "nodes share",
    ),
    FindingKind(
        "rank-lost",
        "error",
        "look at the job's log and at the nodes of these ranks: figures are of the others only; "
        "where ranks are merely slow, --rank-limit SECONDS waits for them",
    ),
    FindingKind(
        "node-lost",
        "error",
        "run it again without the node (--sbatch-arg=--exclude=NODE leaves it out; `sinfo -R` says "
        "why it failed); figures are of what was recorded until then",
    ),
    FindingKind(
        "tasks-missing",
        "warning",
        "measure them by the same command line with --array missing, or one alone with --array "
        "NUMBER",
    ),
    FindingKind(
        "time-limit",
        "error",
        "ask for more time (--time-limit) or for less work; figures are of what was recorded until "
        "then",
    ),
    FindingKind(
        "cancelled",
        "warning",
        "run it again where its end matters; figures are of what was recorded until then",
    ),
    FindingKind(
        "steps-not-captured",
        "warning",
        "name the steps to record, as --capture steps=10:30, or mark them in the script "
        "(profharness_mark.step)",
    ),
    FindingKind(
        "captures-differ",
        "warning",
        "collectives are paired only where ranks recorded the same time: name the steps to record, "
        "as --capture steps=10:30",
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
)
