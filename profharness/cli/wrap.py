"""`profharness wrap`: a command under one layer, without a run around it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from profharness.cli import Rest
from profharness.errors import UsageError
from profharness.options import tracer_flags
from profharness.options.request import from_mapping

_NOT_SETTINGS = ("ctx", "layer", "dry_run", "quiet")


def wrap(
    ctx: typer.Context,
    layer: Annotated[
        str,
        typer.Argument(
            help="torch, onnxruntime, rocprofv3, rocprof, rocprof-sys, rocprof-compute or amd-log."
        ),
    ],
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
    capture: Annotated[
        str | None, typer.Option(help="all | steps=10:30 | after=30s,for=10s")
    ] = None,
    hook: Annotated[str | None, typer.Option(help="env or exec.")] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Folder for the tool's files; several executions may share it."
        ),
    ] = "profharness-wrap",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command; start nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not name the files.")] = False,
) -> int:
    """Run a command under one layer, without a run around it: no telemetry, no report, the tool's
    files only.

    \b
    profharness wrap rocprofv3 --hip-trace -- python train.py
    srun -n8 profharness wrap rocprofv3 -o traces/$SLURM_JOB_ID -- python train.py
    """
    flags = {
        key: value
        for key, value in locals().items()
        if key not in _NOT_SETTINGS and value not in (None, [])
    }
    rest: Rest = ctx.obj
    if not rest.words:
        raise UsageError(
            "wrap needs a command after --",
            "write for example: profharness wrap rocprofv3 -- python train.py",
        )
    from profharness.measure import wrap as wrapping

    request = from_mapping(
        {**tracer_flags.joined(flags), "profile": layer, "command": rest.words, "yes": True},
        "the command line",
    )
    decided = wrapping.prepare(request, dry=dry_run)
    if dry_run:
        for name, value in sorted(decided.command.env.items()):
            if value is not None:
                typer.echo(f"env     {name}={shlex.quote(value)}")
        typer.echo(f"argv    {decided.command.shell()}")
        return 0
    done = wrapping.execute(decided)
    if not quiet:
        wrapping.told(done, Path(output), lambda line: print(line, file=sys.stderr))
    return done.exit_status
