"""`profharness wrap`: one execution of a command under one layer, without a run around it.

No telemetry, no clock snapshots and no manifest: the tool's files only, for job scripts that bring
their own surroundings. Every execution writes under names of its own, so that ranks and repeats may
share the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from profharness import layers
from profharness.errors import UsageError
from profharness.findings import Finding
from profharness.launchers import Job
from profharness.launchers.command import Command
from profharness.layers import around
from profharness.layers.hooks import through_exec_hook, with_hooks
from profharness.measure import engine, ranks, schedule
from profharness.measure.plan import Prepared, planned_extras
from profharness.measure.schedule import PassPlan
from profharness.options.request import Request
from profharness.rundir.manifest import Artifact
from profharness.secrets import scrub as scrubbing
from profharness.supervise.tool import ToolPass, read_logs


@dataclass(frozen=True)
class Wrapped:
    """How it went: the workload's own exit status, the files, and what there is to say."""

    exit_status: int
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Wrapping:
    """One execution, decided and not yet started."""

    prepared: Prepared
    plan: PassPlan

    @property
    def plain(self) -> Command:
        """The command under the hooks only."""
        where = self.prepared.where(self.plan, is_worker=False)
        command = with_hooks(Command(self.prepared.request.command), where)
        return (
            through_exec_hook(command, where) if self.prepared.request.hook == "exec" else command
        )

    @property
    def command(self) -> Command:
        """The command under its layer."""
        return around.wrap(
            self.plan.layers, self.plain, self.prepared.where(self.plan, is_worker=False)
        )


def prepare(request: Request, *, dry: bool = False) -> Wrapping:
    """Check and decide.

    Raises UsageError for counters that need several executions, and for a window that the tool
    cannot keep to, since nobody cuts its files afterwards; Unavailable for a missing tool.
    """
    prepared = engine.prepare(request, dry=dry)
    own = [plan for plan in prepared.plan.passes if plan.name != schedule.BARE]
    # the trace pass stands first; counters were asked for instead of it
    counted = [plan for plan in own if plan.counters]
    if len(counted) > 1:
        groups = "; ".join(" ".join(plan.counters) for plan in counted)
        raise UsageError(
            f"these counters need {len(counted)} executions, and wrap makes one ({groups})",
            "wrap the command once per group, or use profharness run, which makes a pass of each",
        )
    plan = (counted or own)[0]
    if cut := planned_extras(prepared, plan)[0].cut:
        raise UsageError(
            f"--capture {cut}: this {plan.layers[0].name} cannot record that alone, "
            "and wrap leaves its files as they are",
            "use profharness run, which cuts them on reading, or leave --capture out",
        )
    rank = ranks.detect(os.environ).rank
    # no two executions of one node share the name; a launcher's ranks are on different nodes or
    # have different pids
    return Wrapping(prepared, replace(plan, name=f"wrap-r{rank}-{os.getpid()}"))


def execute(wrapping: Wrapping) -> Wrapped:
    """Run it; output and signals are passed on untouched."""
    prepared = wrapping.prepared
    where = prepared.where(wrapping.plan, is_worker=False)
    where.hooks.mkdir(parents=True, exist_ok=True)
    log = (
        where.run_root / "control" / wrapping.plan.name / "stderr.log"
        if any(layer.about.scope == "prefix" for layer in wrapping.plan.layers)
        else None
    )
    tool = ToolPass(wrapping.plan, where, prepared.request.exit_limit, lambda: [log] if log else [])
    tool.ready(wrapping.plain)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    outcome = prepared.launcher.run(
        Job(wrapping.command, stderr_log=log, overdue=tool.overdue), tool.follow, _nothing
    )
    said = read_logs([log] if log else [])
    followed = tool.follow_up(prepared.launcher, outcome)
    artifacts = tuple(
        artifact
        for layer in wrapping.plan.layers
        for artifact in layers.collect(layer, where, frozenset())
    )
    found = (
        *tool.findings(outcome, said, artifacts),
        *followed,
        *scrubbing.findings(where.run_root, artifacts),
    )
    return Wrapped(tool.status(outcome, said), artifacts, found)


def told(wrapped: Wrapped, root: Path, say: Callable[[str], None]) -> None:
    """What a user wants to know afterwards: findings with their way out, then the files."""
    for found in wrapped.findings:
        say(f"{found.severity}: {found.message}")
        say(f"  {found.advice}")
    for artifact in wrapped.artifacts:
        if not artifact.aside:
            say(f"profharness: {root / artifact.path}")


def _nothing() -> None:
    """Nobody watches meanwhile."""
