"""`profharness run`: a scan or a command under layers, then the merged trace, the figures and the
report.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from profharness import scans
from profharness.cli import Rest
from profharness.errors import UsageError
from profharness.options import pinning_flags, place_flags, served_flags, tracer_flags
from profharness.options.request import (
    COMMAND_LINE,
    Request,
    check_kind,
    check_scan,
    from_mapping,
    parse_shape,
    read_scan_file,
)
from profharness.scans import SCANS, studies, training

List = list[str]


def run(
    ctx: typer.Context,
    scan: Annotated[
        str | None,
        typer.Argument(
            help=(
                "A name listed above (default particlenet), or a .toml scan file; "
                "a command goes after --."
            ),
            metavar="[SCAN]",
        ),
    ] = None,
    profile: Annotated[
        List | None,
        typer.Option(
            help=(
                "Layer(s): torch, onnxruntime, rocprofv3, rocprof, rocprof-sys, "
                "rocprof-compute, amd-log. Repeat or part by commas."
            ),
            rich_help_panel="Layers",
        ),
    ] = None,
    capture: Annotated[
        str | None,
        typer.Option(
            help=(
                "all | steps=10:30 | after=30s,for=10s (commands: 20 steps after warm-up, "
                "or 10 s of device work)"
            )
        ),
    ] = None,
    step_range: Annotated[
        str | None,
        typer.Option(
            help=(
                r"Commands: ranges of the program (roctx, NVTX, record_function) whose whole "
                r"name matches are its steps: 'iteration (\d+)'."
            ),
            metavar="REGEX",
        ),
    ] = None,
    bare: Annotated[
        bool | None,
        typer.Option(
            "--bare", help="Commands: also run once without layers, to measure their overhead."
        ),
    ] = None,
    passes: Annotated[
        int | None, typer.Option(help="Commands: allow this many executions.")
    ] = None,
    yes: Annotated[
        bool | None,
        typer.Option("--yes", help="Commands: allow as many executions as the layers need."),
    ] = None,
    hook: Annotated[
        str | None,
        typer.Option(help="env (PYTHONPATH) or exec (where PYTHONPATH cannot be trusted)."),
    ] = None,
    hip_trace: tracer_flags.HipTrace = None,
    hsa_trace: tracer_flags.HsaTrace = None,
    kernel_trace: tracer_flags.KernelTrace = None,
    memory_copy_trace: tracer_flags.MemoryCopyTrace = None,
    marker_trace: tracer_flags.MarkerTrace = None,
    rccl_trace: tracer_flags.RcclTrace = None,
    sys_trace: tracer_flags.SysTrace = None,
    stats: tracer_flags.Stats = None,
    pmc: tracer_flags.Pmc = None,
    kernel_include_regex: tracer_flags.KernelIncludeRegex = None,
    kernel_iteration_range: tracer_flags.KernelIterationRange = None,
    rocprof_sys_mode: tracer_flags.RocprofSysMode = None,
    tool_arg: tracer_flags.ToolArg = None,
    exit_limit: tracer_flags.ExitLimit = None,
    ranks: place_flags.Ranks = None,
    telemetry: Annotated[
        str | None,
        typer.Option(
            help="auto, off, cpu, amd (our own sysfs reader), nvml, or amdsmi (AMD's library)."
        ),
    ] = None,
    telemetry_hz: Annotated[
        float | None, typer.Option(help="Telemetry samples per second.")
    ] = None,
    idle_seconds: Annotated[
        float | None,
        typer.Option(
            help="Wait so long before the workload begins, to measure what the idle device draws."
        ),
    ] = None,
    backend: Annotated[
        List | None,
        typer.Option(
            help=(
                "torch, onnxruntime, tensorflow (default: by the model's file; "
                "of the built-in one torch, plus onnxruntime when its layer is asked)."
            )
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=(
                "particlenet, an ONNX or TorchScript file, a frozen TensorFlow graph "
                "(.graphdef, .pb) or a SavedModel folder; served scans take several, A,B."
            )
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="auto, cpu, cuda, cuda:1 (cuda is also ROCm's name in torch)."),
    ] = None,
    compile_: Annotated[
        bool | None,
        typer.Option("--compile", help="torch.compile the model (reset for each point)."),
    ] = None,
    torchscript: Annotated[
        bool | None, typer.Option("--torchscript", help="Run the built-in model as TorchScript.")
    ] = None,
    batch_sizes: Annotated[
        str | None, typer.Option(help="1,4,16 or 4..2048 (powers of two).")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Trials per point, at least (default 100).")
    ] = None,
    min_seconds: Annotated[
        float | None, typer.Option(help="Seconds per point, at least (default 2).")
    ] = None,
    profile_trials: Annotated[
        int | None, typer.Option(help="Trials per point under a layer (default 10).")
    ] = None,
    warmup: Annotated[str | None, typer.Option(help="auto, or a number of trials to drop.")] = None,
    order: Annotated[
        str | None, typer.Option(help="asc, desc or random order of the batch sizes.")
    ] = None,
    inputs: Annotated[str | None, typer.Option(help="normal, hep, or an .npz file.")] = None,
    shape: Annotated[
        List | None,
        typer.Option(help="NAME:d1,d2 without the batch, for free dimensions. Repeatable."),
    ] = None,
    flops_per_item: Annotated[
        float | None, typer.Option(help="Useful FLOP per item, where they cannot be counted.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads of the framework.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of inputs and of random order.")] = None,
    isolate: Annotated[
        bool | None, typer.Option("--isolate", help="One worker process per point.")
    ] = None,
    via: served_flags.Via = None,
    concurrency: served_flags.Concurrency = None,
    rate: served_flags.Rate = None,
    arrivals: served_flags.Arrivals = None,
    think_ms: served_flags.ThinkMs = None,
    clients_per_job: served_flags.ClientsPerJob = None,
    time: served_flags.Time = None,
    warmup_time: served_flags.WarmupTime = None,
    timeout: served_flags.Timeout = None,
    latency_limit: served_flags.LatencyLimit = None,
    protocol: served_flags.Protocol = None,
    shared_memory: served_flags.SharedMemory = None,
    compression: served_flags.Compression = None,
    clients: served_flags.Clients = None,
    instances: served_flags.Instances = None,
    max_batch_size: served_flags.MaxBatchSize = None,
    queue_delay_us: served_flags.QueueDelayUs = None,
    allow_fallback: served_flags.AllowFallback = None,
    url: served_flags.Url = None,
    token_file: served_flags.TokenFile = None,
    ca: served_flags.Ca = None,
    server_command: served_flags.ServerCommand = None,
    ready: served_flags.Ready = None,
    perf_analyzer_arg: served_flags.PerfAnalyzerArg = None,
    perf_analyzer_image: served_flags.PerfAnalyzerImage = None,
    ragged: served_flags.Ragged = None,
    together: served_flags.Together = None,
    body: served_flags.Body = None,
    path: served_flags.Path = None,
    topology: pinning_flags.Topology = None,
    streams: pinning_flags.Streams = None,
    pin: pinning_flags.Pin = None,
    memory: pinning_flags.Memory = None,
    python: place_flags.Python = None,
    launcher: place_flags.Launcher = None,
    launcher_arg: place_flags.LauncherArg = None,
    container: place_flags.Container = None,
    container_init: place_flags.ContainerInit = None,
    container_arg: place_flags.ContainerArg = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="The run directory itself (default traces/<time>-<scan>)."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    strict: Annotated[
        bool | None, typer.Option("--strict", help="Scans: exit 1 on an error-level finding.")
    ] = None,
    resume: served_flags.Resume = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and every command; write nothing.")
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object; the workload's output goes to stderr and logs."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
) -> int:
    """Run a scan or a command under instrumentation layers.

    \b
    profharness run particlenet --batch-sizes 1,4,16 --profile torch
    profharness run my-scan.toml --trials 50
    profharness run saturation --model my.onnx --latency-limit p99=20ms
    profharness run --profile torch -- python train.py --epochs 1

    \b
    Scans:
      particlenet                     our ParticleNet over batch sizes (default)
      saturation                      looks for the knee of a server by itself
    Training scripts, with their own words after --:
      train-cifar100                  image classifiers on CIFAR-100
      finetune-gpt-neo                GPT-Neo on film reviews
    Published studies, as scan files:
      particlenet-onnx                ParticleNet in onnxruntime
      particlenet-torchscript         ParticleNet as TorchScript
      deepmet                         DeepMET in TensorFlow (give it by --model)
      particlenet-onnx-client         one client of a Triton, sizes 120 to 132
      particlenet-torchscript-client  the same with TorchScript, 4 to 2048
      deepmet-client                  the same with DeepMET, 4 to 512
      particlenet-perf-analyzer       NVIDIA's perf_analyzer, 8 in flight
      multi-process                   1, 2, ... pinned copies at once
    """
    flags = {
        key: value
        for key, value in locals().items()
        if key not in _NOT_SETTINGS and value not in (None, [])
    }
    if resume:
        from profharness.cli.run_again import resumed

        return resumed(scan, _listed(flags), ctx.obj, as_json=json, quiet=quiet)
    request = build_request(scan, _listed(flags), ctx.obj)
    from profharness.cli.run_steps import dry, is_rank, perform, start_ranks, start_tasks

    if dry_run:
        dry(request)
        return 0
    if request.launcher == "slurm":
        return start_tasks(request)
    if request.ranks > 1 and not is_rank():
        return start_ranks(request.ranks)
    return perform(request, tuple(sys.argv), as_json=json, quiet=quiet)


_NOT_SETTINGS = ("ctx", "scan", "resume", "dry_run", "json", "quiet")


def _listed(flags: dict[str, Any]) -> dict[str, Any]:
    """Repeatable flags as the request wants them."""
    tracer_flags.joined(flags)
    for key in ("profile", "backend"):
        if key in flags:
            flags[key] = ",".join(flags[key])
    if "shape" in flags:
        flags["shape"] = dict(parse_shape(text) for text in flags["shape"])
    if "compile_" in flags:
        flags["compile"] = flags.pop("compile_")
    return flags


def _python_of(flags: dict[str, Any]) -> str:
    """Which interpreter a training script is for; empty for this one."""
    return str(flags.get("python") or ("python3" if flags.get("container") else ""))


def build_request(scan: str | None, flags: dict[str, Any], rest: Rest) -> Request:
    """Join scan file, flags (which win) and the command after `--`. Raises UsageError or
    InputError.
    """
    if scan is None:
        if rest.given and not rest.words:
            raise UsageError(
                "nothing stands after --",
                "write the command there: profharness run --profile torch -- python train.py",
            )
        request = from_mapping({**flags, "command": rest.words}, COMMAND_LINE)
        check_kind(flags, COMMAND_LINE, is_command=bool(rest.words))
        check_scan(flags, COMMAND_LINE, request)
        return request
    if scan in training.TRAINING:
        request = from_mapping(
            {
                "name": scan,
                **flags,
                "command": training.command(scan, rest.words, _python_of(flags)),
            },
            COMMAND_LINE,
        )
        check_kind(flags, COMMAND_LINE, is_command=True)
        return request
    if rest.given:
        raise UsageError(
            f"a scan ({scan}) takes no words after --"
            + (f", and {rest.words[0]} stands there" if rest.words else ""),
            "leave one out: a command stands alone after --, and a scan's workload is set by "
            "options",
        )
    file = Path(scan) if scan.endswith(".toml") else studies.path_of(scan)
    if file is not None:
        settings = {"name": file.stem, **read_scan_file(file)}
        alone = from_mapping(settings, scan)  # so that a wrong key is blamed on the file
        check_kind(settings, scan, is_command=bool(settings.get("command")))
        check_scan(settings, scan, alone)
        request = from_mapping({**settings, **flags}, COMMAND_LINE)
        check_kind(flags, COMMAND_LINE, is_command=bool(request.command))
        check_scan(flags, COMMAND_LINE, request)
        return request
    if scan not in SCANS and scan not in scans.names():
        raise UsageError(
            f"there is no scan {scan!r}",
            f"known scans: {', '.join((*scans.names(), *studies.names(), *training.TRAINING))}, "
            "or a .toml file; a command goes after --: "
            f"profharness run -- {'python ' if scan.endswith('.py') else ''}{scan}",
        )
    request = from_mapping({**flags, "scan": scan}, COMMAND_LINE)
    check_kind(flags, COMMAND_LINE, is_command=False)
    check_scan(flags, COMMAND_LINE, request)
    return request
