"""`profharness wrap`: a command under one layer, without a run around it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from profharness.cli.parsing.commands import OptionsOf, Settings
from profharness.cli.parsing.words import Rest
from profharness.errors import UsageError
from profharness.options.declared import LAYERS, OUTPUT, Option, declared
from profharness.options.recording import RecordingOptions
from profharness.options.request import Request
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.options.workload import layer_names
from profharness.rundir.shown.screen import mention

_OF_SEVERAL_PASSES = frozenset({"profile", "step_range", "bare", "passes", "yes"})
_TAKEN = (
    frozenset(field.name for field in declared(RecordingOptions) if field.option.topic is LAYERS)
    - _OF_SEVERAL_PASSES
)


def _one_layer(_named: str) -> str:
    *others, last = layer_names()
    return f"{', '.join(others)} or {last}."


class WrapSwitches(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says beside the options of the layer."""

    layer: Annotated[
        str,
        Option(
            "One of ",
            argument=True,
            examples=layer_names,
            more_help=_one_layer,
        ),
    ]
    output: Annotated[
        Path,
        Option(
            "Folder for the tool's files; several executions may share it.",
            OUTPUT,
            names=("--output", "-o"),
        ),
    ] = Path("profharness-wrap")
    dry_run: Annotated[bool, Option("Print the command; start nothing.", OUTPUT)] = False
    quiet: Annotated[bool, Option("Do not name the files.", OUTPUT)] = False


def wrap(
    ctx: typer.Context,
    switches: WrapSwitches,
    settings: Annotated[Settings, OptionsOf(Request, _TAKEN)],
) -> int:
    """Run a command under one layer, without a run around it: no telemetry, no report, the tool's
    files only.

    \b
    profharness wrap rocprofv3 --hip-trace -- python train.py
    srun -n8 profharness wrap rocprofv3 -o traces/$SLURM_JOB_ID -- python train.py
    """
    rest: Rest = ctx.obj
    if not rest.words:
        raise UsageError(
            "wrap needs a command after --",
            "write for example: profharness wrap rocprofv3 -- python train.py",
        )
    from profharness.cli.running.plan_text import clash_lines
    from profharness.measure import wrap as wrapping

    request = from_mapping(
        {
            **settings,
            "output": str(switches.output),
            "profile": switches.layer,
            "command": rest.words,
            "yes": True,
        },
        COMMAND_LINE,
    )
    decided = wrapping.plan_wrap(request, dry=switches.dry_run)
    if switches.dry_run:
        for name, value in sorted(decided.command.env.items()):
            if value is not None:
                typer.echo(f"env     {name}={shlex.quote(value)}")
        typer.echo(f"argv    {decided.command.shell()}")
        for line in clash_lines(decided.run_plan):
            typer.echo(f"# {line}")
        return 0
    if not switches.quiet:
        for line in clash_lines(decided.run_plan):
            mention(line)
    from profharness.secrets import scrub

    done = wrapping.execute(decided, scrub.findings)
    if not switches.quiet:
        wrapping.report_result(done, switches.output, mention)
    return done.exit_status
