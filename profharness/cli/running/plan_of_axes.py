"""What a plan says of a scan over axes, of a command or of a model's settings: its axes, and how
often the command is executed or a level measured.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from profharness.measure.executions.commands import executions
from profharness.measure.plan import RunPlan
from profharness.scans.command import CommandScan
from profharness.scans.settings_scan import SettingsScan
from profharness.units import format_clock

_LABEL = "measurements    "
_INDENT = " " * len(_LABEL)
_SHOWN = 12
START_S = 6.0
"""A worker's imports, model and export."""


def axes_line(prepared: RunPlan, scan: CommandScan, telemetry: str) -> str:
    """`plan    python: 15 points (batch 3 x workers 5) x 3 repeats, 45 executions; ...`."""
    passes = ", ".join(plan.name for plan in prepared.schedule.passes)
    return (
        f"plan    {Path(prepared.request.command[0]).name}: {_design(prepared, scan)}; "
        f"{executions_text(prepared, scan)} executions in "
        f"{'one pass' if len(prepared.schedule.passes) == 1 else 'passes'} ({passes}); "
        f"telemetry {telemetry}        --dry-run shows the commands"
    )


def executions_text(prepared: RunPlan, scan: CommandScan) -> str:
    """How often the command is executed, over all passes: `45`, or `46 to 48`."""
    ends = [executions(scan, plan, prepared.request.discarded) for plan in prepared.schedule.passes]
    least, most = sum(one[0] for one in ends), sum(one[1] for one in ends)
    return str(least) if least == most else f"{least} to {most}"


def settings_line(prepared: RunPlan, scan: SettingsScan, telemetry: str) -> str:
    """`plan    particlenet: 24 points (instances 3 x ...) x 3 repeats; 72 levels on 36 started
    servers, at least 10:48; ...`.
    """
    model = ", ".join(Path(one).name for one in prepared.request.model.split(","))
    names = ", ".join(plan.name for plan in prepared.schedule.passes)
    kind = "servers" if prepared.request.served else "workers"
    starts = f"{'at most ' if scan.search else ''}{scan.starts} started {kind}"
    return (
        f"plan    {model}: {_design(prepared, scan)}; {scan.executions} levels on {starts}, at "
        f"least {format_clock(settings_seconds(prepared, scan))} ({names}); "
        f"telemetry {telemetry}        --dry-run shows the commands"
    )


def settings_seconds(prepared: RunPlan, scan: SettingsScan) -> float:
    """How long the bare pass takes, at least; levels that a search ends early take less."""
    request = prepared.request
    starts = scan.starts if request.managed else 0
    each = request.time + request.warmup_time if request.served else request.min_seconds
    return scan.executions * each + starts * START_S


def axes_lines(prepared: RunPlan, scan: CommandScan | SettingsScan) -> Iterator[str]:
    """The design, and the values of each axis."""
    discarded = prepared.request.discarded if isinstance(scan, CommandScan) else 0
    first = (
        f", after {discarded} discarded execution{'s' * (discarded != 1)} of each"
        if discarded
        else ""
    )
    order = "one after another by what is known" if scan.search else "at random in turn"
    yield f"{_LABEL}{_design(prepared, scan)}, {order}{first}"
    for axis in scan.axes:
        shown = ", ".join(map(shlex.quote, axis.values[:_SHOWN]))
        rest = len(axis.values) - _SHOWN
        kind = "" if axis.is_number else " (a category)"
        yield f"{_INDENT}{axis.name}: {shown}{f' and {rest} more' if rest > 0 else ''}{kind}"


def _design(prepared: RunPlan, scan: CommandScan | SettingsScan) -> str:
    count = len(scan.ids)
    of = " x ".join(f"{axis.name} {len(axis.values)}" for axis in scan.axes)
    kind = "" if prepared.request.design == "grid" else f", {prepared.request.design}"
    points = f"{count} point{'s' * (count != 1)} ({of}{kind})"
    if scan.search is not None:
        if scan.executions > count:
            return f"{points}, searched by {scan.executions} measurements"
        return f"{scan.executions} of {points}, found by a search"
    return f"{points} x {_repeats(prepared)}"


def _repeats(prepared: RunPlan) -> str:
    count = prepared.request.repeats
    return f"{count} repeat{'s' * (count != 1)}"
