"""`profharness attach`: record a process that runs already, for a time."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from profharness.cli.parsing.commands import OptionsOf, Settings
from profharness.errors import ProfharnessError, Unavailable, UsageError
from profharness.layers import descriptions
from profharness.options.declared import LAYERS, OUTPUT, Limit, Option, declared
from profharness.options.request import Request
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.rundir.shown.screen import mention
from profharness.units import parse_duration_ns

if TYPE_CHECKING:
    from profharness.measure.attached.plan import AttachPlan

# of the layers' options those that make sense for a process that is in the midst of its work, and
# that a layer which attaches would heed
_FROM_THE_START = frozenset(
    {
        "profile",
        "capture",
        "step_range",
        "bare",
        "passes",
        "yes",
        "hook",
        "attachable",
        "trace_ranks",
        "stacks",
        "profile_memory",
        "host_samples",
        "rocprof_sys_mode",
        "pc_sampling",
        "thread_trace",
        "roofline",
        "one_execution",
        "pmc_set",
    }
)
_TAKEN = frozenset(
    field.name
    for field in declared(Request)
    if (field.option.topic is LAYERS and field.name not in _FROM_THE_START)
    or field.name in ("telemetry", "telemetry_hz", "name", "output", "share")
)


def _layers() -> tuple[str, ...]:
    return (*(about.name for about in descriptions() if about.attaches), "telemetry")


def _since(_named: str) -> str:
    return "; ".join(
        f"{about.name} with {about.attaches}" for about in descriptions() if about.attaches
    )


class AttachSwitches(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says beside the options of the layer."""

    pid: Annotated[
        int,
        Option(
            "The number of the process.",
            argument=True,
            limit=Limit(least=1),
        ),
    ]
    profile: Annotated[
        str,
        Option(
            "telemetry (default) works for every process; ",
            LAYERS,
            common=True,
            choices=_layers,
            more_help=_since,
        ),
    ] = "telemetry"
    lasts: Annotated[
        str,
        Option(
            "How long: 30s (default), 500ms, 2min. Ctrl-C ends it earlier.",
            LAYERS,
            names=("--for",),
            common=True,
        ),
    ] = "30s"
    dry_run: Annotated[
        bool,
        Option(
            "Print the command, and what would keep it from working; start nothing.",
            OUTPUT,
            common=True,
        ),
    ] = False
    json: Annotated[bool, Option("Print one JSON object.", OUTPUT)] = False
    quiet: Annotated[bool, Option("No summary.", OUTPUT)] = False


def attach(
    switches: AttachSwitches,
    settings: Annotated[Settings, OptionsOf(Request, _TAKEN)],
) -> int:
    """Record a process that runs already, for a time. It goes on afterwards, whatever happens to
    the tool.

    \b
    profharness run --attachable -- python train.py         (in one shell)
    profharness attach 4711 --profile rocprofv3 --for 30s   (in another one)
    profharness attach 4711 --for 1min                      (telemetry alone: of any process)
    """
    from profharness.measure.attached import plan as planning
    from profharness.measure.attached.target import look

    for_ns = parse_duration_ns(switches.lasts, "--for")
    if for_ns < 1_000_000:
        raise UsageError(f"--for: {switches.lasts} is too short", "ask for at least 1ms")
    _check_profile(switches.profile)
    target = look(switches.pid)
    given = {key: value for key, value in settings.items() if key != "output"}
    output = {"output": str(settings["output"])} if settings.get("output") else {}
    request = from_mapping(
        {**given, **output, "profile": switches.profile, "command": target.argv, "yes": True},
        COMMAND_LINE,
    )
    if request.telemetry == "off" and switches.profile == planning.TELEMETRY:
        raise UsageError(
            "--telemetry off leaves nothing to record", "name a layer: --profile rocprofv3"
        )
    decided = planning.plan_attach(request, target, for_ns, dry=switches.dry_run)
    if switches.dry_run:
        typer.echo(_plan_text(decided))
        return 0
    return _attached(decided, as_json=switches.json, quiet=switches.quiet)


def _check_profile(name: str) -> None:
    """Raises UsageError for what cannot attach."""
    known = _layers()
    if name in known:
        return
    others = [about.name for about in descriptions()]
    if "," in name:
        raise UsageError(
            f"--profile {name}: attach takes one at a time", f"choose from {', '.join(known)}"
        )
    why = "cannot attach to a running process" if name in others else "is no layer"
    raise UsageError(f"--profile: {name} {why}", f"these can: {', '.join(known)}")


def _attached(decided: AttachPlan, *, as_json: bool, quiet: bool) -> int:
    """Carry it out and report. Raises Unavailable where the tool recorded nothing."""
    from profharness.cli.running.answers import near
    from profharness.cli.running.steps import tell
    from profharness.measure.attached.recording import carry_out
    from profharness.secrets import scrub

    done = carry_out(
        decided, tuple(sys.argv), scrub.findings, lambda: _announce(decided, quiet=quiet)
    )
    ended, root = done.ended, done.run.root
    after = "goes on" if ended.target_goes_on else "has ended meanwhile"
    mention(
        f"profharness: recorded for {ended.lasted_ns / 1e9:.1f} s; {decided.target.name} {after}"
    )
    try:
        tell(root, as_json=as_json, quiet=quiet, strict=False)
    except ProfharnessError as error:
        mention(
            f"profharness: the run is kept in {near(root)}, but it could not be analysed: "
            f"{error.message}"
        )
    if done.nothing:
        log = root / "points" / decided.pass_plan.name / "rank0" / "stderr.log"
        raise Unavailable(done.nothing, f"all that it said: {near(log)}")
    return 128 + ended.outcome.forwarded[0] if ended.outcome.forwarded else 0


def _announce(decided: AttachPlan, *, quiet: bool) -> None:
    """What begins now, and what to know of it."""
    for note in decided.notes:
        mention(f"profharness: {note}")
    if not quiet:
        layer = decided.pass_plan.layer_names[0] if decided.attachment else "telemetry"
        mention(
            f"profharness: {layer} of {decided.target.name} for {decided.for_ns / 1e9:g} s; "
            "Ctrl-C ends it earlier"
        )


def _plan_text(decided: AttachPlan) -> str:
    """What would be started, and what speaks against it."""
    request = decided.run_plan.request
    lines = [
        f"run directory   {decided.run_plan.root}",
        f"process         {decided.target.pid}: {shlex.join(decided.target.argv)}",
        f"time            {decided.for_ns / 1e9:g} s",
        f"telemetry       {request.telemetry} at {request.telemetry_hz:g} Hz",
    ]
    if decided.attachment is not None:
        command = decided.attachment.command
        lines += [
            f"env     {name}={shlex.quote(value)}"
            for name, value in sorted(command.env.items())
            if value is not None
        ]
        lines.append(f"argv    {command.shell()}")
    lines += [f"note    {note}" for note in decided.notes]
    if decided.objection is not None:
        lines.append(f"refused {decided.objection.message}")
        lines += [f"        {line}" for line in decided.objection.hint.splitlines()]
    return "\n".join(lines)
