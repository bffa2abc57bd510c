"""The plan as text: the one-line plan before a scan, and `--dry-run`'s exact commands. Computes
nothing else.
"""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path

from profharness.cli.running.plan_of_axes import (
    START_S,
    axes_line,
    executions_text,
    settings_line,
    settings_seconds,
)
from profharness.cli.running.repetitions import (
    device_lines,
    measured_points,
    measurement_lines,
)
from profharness.launchers.command import Command
from profharness.measure.pass_commands import (
    planned_commands,
    planned_extras,
    planned_follow_up,
)
from profharness.measure.plan import RunPlan
from profharness.options.declared import declared
from profharness.options.request import Request
from profharness.options.trace_ranks import shown
from profharness.scans.command import CommandScan
from profharness.scans.pinned import PinnedScan
from profharness.scans.settings_scan import SettingsScan
from profharness.supervise.pass_plan import PassPlan
from profharness.units import format_bytes, format_clock

_SEARCHED = 12  # levels that a search for the knee takes, most often
_NARROWEST = 40


def plan_line(prepared: RunPlan) -> str:
    """`plan    particlenet: 4 points x 3 passes (bare, torch, onnxruntime); at least 0:31, 20 MB;
    telemetry auto at 10 Hz`.
    """
    assert prepared.scan is not None
    request = prepared.request
    points = len({point.id for point in prepared.scan.points})
    what = f"{points} point{'s' * (points != 1)}"
    if prepared.scan.adaptive:
        searches = len(prepared.scan.backends) * max(len(request.batch_sizes), 1)
        what = f"{searches} search{'es' * (searches != 1)} (about {_SEARCHED} levels each)"
    passes = ", ".join(plan.name for plan in prepared.schedule.passes)
    count = len(prepared.schedule.passes)
    if isinstance(prepared.scan, CommandScan):
        return axes_line(prepared, prepared.scan, _telemetry(request))
    if isinstance(prepared.scan, SettingsScan):
        return settings_line(prepared, prepared.scan, _telemetry(request))
    model = ", ".join(Path(one).name for one in request.model.split(",")) or request.scan
    return (
        f"plan    {model}: {what} x {count} pass{'es' * (count != 1)} ({passes}); at least "
        f"{format_clock(_seconds(prepared))}, about {format_bytes(_disk(prepared))}; "
        f"telemetry {_telemetry(request)}        --dry-run shows the commands"
    )


def _telemetry(request: Request) -> str:
    at = "" if request.telemetry == "off" else f" at {request.telemetry_hz:g} Hz"
    return f"{request.telemetry}{at}"


def plan_notes(prepared: RunPlan) -> tuple[str, ...]:
    """What the layers say of their passes before these start (a tool that is newer than the newest
    known, a command that runs several times), each once.
    """
    notes = (
        note
        for plan in prepared.schedule.passes
        for extras in (planned_extras(prepared, plan),)
        for note in (*extras.costs, *extras.notes)
    )
    caps = () if prepared.caps is None else (str(prepared.caps),)
    own = prepared.scan.notes if isinstance(prepared.scan, PinnedScan) else ()
    return (*caps, *own, *dict.fromkeys(notes))


def wrapped_plan(line: str, width: int) -> str:
    """The plan in lines of at most `width` characters, the further ones under the first's words."""
    return (
        line
        if len(line) <= width
        else textwrap.fill(
            line, max(width, _NARROWEST), subsequent_indent=" " * 8, break_on_hyphens=False
        )
    )


def dry_run_text(prepared: RunPlan) -> str:
    """Everything that would be started, in the order in which it nests; ends with a newline."""
    lines = [f"planned for     {prepared.elsewhere}"] if prepared.elsewhere else []
    lines += [f"run directory   {prepared.root}", f"executions      {_executions(prepared)}"]
    if prepared.scan is not None:
        lines += [*measurement_lines(prepared), *device_lines(prepared)]
        lines += [_expected(prepared)]
    else:
        lines += [f"expected time   the command's own, {_starts(prepared)}"]
    if prepared.request.trace_ranks:
        world = max(prepared.rank.world, prepared.request.ranks)
        named = shown(prepared.request.trace_ranks)
        lines += [f"ranks traced    {named} of {world}; the others run without layers"]
    if prepared.request.container:
        lines += [
            f"container       {prepared.request.container}, around everything that is started"
        ]
    lines += [
        f"expected disk   about {format_bytes(_disk(prepared))}",
        f"telemetry       {_telemetry(prepared.request)}",
        "",
    ]
    for plan in prepared.schedule.passes:
        lines += _pass_lines(prepared, plan)
    lines += [f"# {reason}" for reason in prepared.schedule.reasons]
    lines += [f"# {line}" for line in clash_lines(prepared)]
    return "\n".join(lines) + "\n"


def starts_text(prepared: RunPlan) -> str:
    """What would be started, each once: command lines, and the variables that are set for them.
    Characters that a terminal would obey are spelled out.
    """
    lines = [
        line
        for plan in prepared.schedule.passes
        for line in _pass_lines(prepared, plan)
        if line.split(maxsplit=1)[:1] in (["env"], ["unset"], ["file"], ["argv"], ["then"])
    ]
    return "\n".join(_spelled(line) for line in dict.fromkeys(lines))


def asked_text(request: Request) -> str:
    """What was asked for beyond what every run does, an option per line: the model, which is a
    program, and files and addresses that stand in no command line.
    """
    given = [(field, getattr(request, field.name)) for field in declared(Request)]
    return "\n".join(
        _spelled(f"  with    {field.names[0]} {_one_word(value)}")
        for field, value in given
        if value != field.default and field.name != "output"
    )


def _one_word(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _spelled(line: str) -> str:
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in line
    )


def clash_lines(prepared: RunPlan) -> list[str]:
    """What will keep a profiler from recording here, each with the way out on a second line."""
    return [
        line
        for told in (clash.finding for clash in prepared.clashes)
        for line in (f"{told.severity}: {told.message}", f"  {told.advice}")
    ]


def _nesting(plan: PassPlan) -> list[str]:
    """Tools stand around the process, hooks inside it."""
    return [
        layer.name for layer in sorted(plan.layers, key=lambda layer: layer.about.scope == "hook")
    ]


def _starts(prepared: RunPlan) -> str:
    """How often the command runs in all passes, those that a tool starts by itself included."""
    starts = [planned_extras(prepared, plan).starts for plan in prepared.schedule.passes]
    least, most = sum(one[0] for one in starts), sum(one[1] for one in starts)
    return _times(least, most)


def _executions(prepared: RunPlan) -> str:
    """How often profharness starts the workload, and how often it then runs where a tool starts it
    again by itself.
    """
    if isinstance(prepared.scan, CommandScan):
        return executions_text(prepared, prepared.scan)
    count = sum(len(planned_commands(prepared, plan)) for plan in prepared.schedule.passes)
    ranks = prepared.request.ranks
    told = f"{count * ranks} ({count} on each of {ranks} ranks)" if ranks > 1 else str(count)
    starts = _starts(prepared)
    again = prepared.scan is None and starts != _times(count, count)
    return f"{told}, in which the command runs {starts}" if again else told


def _times(least: int, most: int) -> str:
    return f"{least} time{'s' * (least != 1)}" if least == most else f"{least} to {most} times"


def _pass_lines(prepared: RunPlan, plan: PassPlan) -> list[str]:
    lines = [
        f"pass {plan.name}"
        + (
            f"   layers: {', '.join(_nesting(plan))} (outermost first)"
            if plan.layers
            else "   no layers"
        )
    ]
    if prepared.scan is not None:
        points = measured_points(prepared, plan)
        if points:
            lines.append(f"  points  {' '.join(point.key for point in points)}")
    extras = planned_extras(prepared, plan)
    lines += [f"  file    {path}: {text.strip()}" for path, text in extras.files]
    for command in planned_commands(prepared, plan):
        lines += [
            f"  env     {name}={shlex.quote(value)}" if value is not None else f"  unset   {name}"
            for name, value in _shown(command)
        ]
        lines.append(f"  argv    {command.shell()}")
    lines += [
        f"  then    {prepared.launcher.composed(command).shell()}"
        for command in planned_follow_up(prepared, plan)
    ]
    lines += [f"  note    {note}" for note in dict.fromkeys((*extras.costs, *extras.notes))]
    return [*lines, ""]


def _shown(command: Command) -> list[tuple[str, str | None]]:
    """Unset names that are not set anyway are noise."""
    return sorted((name, value) for name, value in command.env.items() if value is not None)


def _expected(prepared: RunPlan) -> str:
    if isinstance(prepared.scan, CommandScan):
        return "expected time   the command's own, times its executions"
    return f"expected time   at least {format_clock(_seconds(prepared))}"


def _seconds(prepared: RunPlan) -> float:
    """A lower bound: minimum times and starts; trials that take longer are not known yet."""
    assert prepared.scan is not None
    request, scan = prepared.request, prepared.scan
    if isinstance(scan, SettingsScan):
        return settings_seconds(prepared, scan)
    workers = sum(len(plan.targets) for plan in prepared.schedule.passes)
    if request.served:
        levels = len(scan.points) or _SEARCHED * len(scan.backends) * max(
            len(request.batch_sizes), 1
        )
        return levels * (request.time + request.warmup_time) + workers * START_S
    if request.pinned:  # every point starts its processes anew
        return len(scan.points) * (request.time + request.warmup_time + START_S)
    return len(scan.points) * request.min_seconds + workers * START_S


def _disk(prepared: RunPlan) -> int:
    """Estimated size of what the layers leave."""
    if prepared.scan is None or isinstance(prepared.scan, CommandScan):
        return (
            sum(
                layer.about.bytes_per_command
                for plan in prepared.schedule.passes
                for layer in plan.layers
            )
            + 1_000_000
        )
    per_backend = len({point.id for point in prepared.scan.points}) // max(
        len(prepared.scan.backends), 1
    )
    trials = per_backend * prepared.request.profile_trials
    return (
        sum(
            layer.about.bytes_per_trial * trials
            for plan in prepared.schedule.passes
            for layer in plan.layers
        )
        + 1_000_000
    )
