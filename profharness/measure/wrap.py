"""`profharness wrap`: one execution of a command under one layer, without a run around it.

No telemetry, no clock snapshots and no manifest: the tool's files only, for job scripts that bring
their own surroundings. Every execution writes under names of its own, so that ranks and repeats may
share the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.findings import Finding
from profharness.launchers import Job
from profharness.launchers.command import Command
from profharness.layers import around
from profharness.layers.contract import Where
from profharness.layers.hooks import through_exec_hook, with_hooks
from profharness.measure import ranks
from profharness.measure.pass_commands import planned_extras
from profharness.measure.pass_records import FindSecrets, examine
from profharness.measure.passes import Execution, execute_pass
from profharness.measure.plan import RunPlan
from profharness.measure.planning import plan_run
from profharness.options.request import Request
from profharness.rundir.manifest import ENDED_BY, Artifact
from profharness.supervise.pass_plan import BARE, PassPlan
from profharness.supervise.tool import ToolPass


@dataclass(frozen=True)
class WrapResult:
    """How it went: the workload's own exit status, the files, and what there is to say. `wanted` is
    the format of the files for which the pass was made, beside those that are read.
    """

    exit_status: int
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]
    wanted: str = ""


@dataclass(frozen=True)
class WrapPass:
    """One execution, decided and not yet started; the only `Pass` of its run."""

    run_plan: RunPlan
    plan: PassPlan

    @property
    def where(self) -> Where:
        """The layer stands around the user's own program."""
        return self.run_plan.where(self.plan, is_worker=False)

    @property
    def plain(self) -> Command:
        """The command under the hooks only."""
        where, request = self.where, self.run_plan.request
        command = with_hooks(Command(request.command, request.variables), where)
        return through_exec_hook(command, where) if request.hook == "exec" else command

    @property
    def command(self) -> Command:
        """The command under its layer, on a rank that is traced."""
        return around.wrap(self.plan.layers if self.where.traced else (), self.plain, self.where)

    @property
    def points(self) -> None:
        """A command has no points."""

    def make_ready(self) -> None:
        """The folders of the hooks' reports, and of the log if there is one."""
        self.where.hooks.mkdir(parents=True, exist_ok=True)
        for log in self.logs():
            log.parent.mkdir(parents=True, exist_ok=True)

    def logs(self) -> Sequence[Path]:
        """What the tool around the command says; without a tool, stderr is not copied."""
        if self.plan.tool is None or not self.where.traced:
            return []
        return [self.where.run_root / "control" / self.plan.name / "stderr.log"]

    def execute(self, tool: ToolPass) -> Execution:
        """Start the command and wait for it."""
        tool.ready(self.plain)
        log = next(iter(self.logs()), None)
        job = Job(
            self.command,
            stderr_log=log,
            overdue=tool.overdue,
            grace_s=self.run_plan.request.exit_limit,
            is_command=True,
        )
        return Execution((self.run_plan.launcher.run(job, tool.follow, _watch_nothing),))


def plan_wrap(request: Request, *, dry: bool = False) -> WrapPass:
    """Check and decide.

    Raises UsageError for counters that need several executions, and for a window that the tool
    cannot keep to, since nobody cuts its files afterwards; Unavailable for a missing tool.
    """
    run_plan = plan_run(request, dry=dry)
    traced = [plan for plan in run_plan.schedule.passes if plan.name != BARE]
    # the trace pass stands first; what has a pass of its own was asked for instead of it
    own = [plan for plan in traced if plan.counters or plan.purpose]
    if len(own) > 1:
        groups = "; ".join(
            plan.purpose.name if plan.purpose else " ".join(plan.counters) for plan in own
        )
        raise UsageError(
            f"these need {len(own)} executions, and wrap makes one ({groups})",
            "wrap the command once for each, or use profharness run, which makes a pass of each",
        )
    plan = (own or traced)[0]
    if plan.layers[0].about.scope == "sidecar":
        name = plan.layers[0].name
        raise UsageError(
            f"{name} is read by a run's sampler, and wrap starts none",
            f"use profharness run --profile {name} -- ..., or profharness telemetry "
            "--device-counters -- ...",
        )
    if cut := planned_extras(run_plan, plan).cut:
        raise UsageError(
            f"--capture {cut}: this {plan.layers[0].name} cannot record that alone, "
            "and wrap leaves its files as they are",
            "use profharness run, which cuts them on reading, or leave --capture out",
        )
    rank = ranks.detect(os.environ, named=True).rank
    # no two executions of one node share the name; a launcher's ranks are on different nodes or
    # have different pids
    return WrapPass(run_plan, replace(plan, name=f"wrap-r{rank}-{os.getpid()}"))


def execute(wrap_pass: WrapPass, find_secrets: FindSecrets) -> WrapResult:
    """Run it; output and signals are passed on untouched."""
    run_plan = wrap_pass.run_plan
    ended = execute_pass(wrap_pass, run_plan.request.exit_limit)
    files = examine(ended, run_plan.launcher)
    findings = (
        *ended.tool.findings(ended.execution.last, ended.stderr_text, files.artifacts),
        *files.findings,
        *find_secrets(wrap_pass.where.run_root, files.artifacts),
    )
    wanted = wrap_pass.plan.purpose.leaves if wrap_pass.plan.purpose else ""
    return WrapResult(ended.workload_status, files.artifacts, findings, wanted)


def report_result(result: WrapResult, root: Path, say: Callable[[str], None]) -> None:
    """What a user wants to know afterwards: findings with their way out, then the files. What ended
    the program stands on the terminal already, with its traceback.
    """
    for finding in result.findings:
        if finding.id == "hook-message" and finding.message.startswith(ENDED_BY):
            continue
        say(f"{finding.severity}: {finding.message}")
        say(f"  {finding.advice}")
    for artifact in result.artifacts:
        if not artifact.aside or artifact.format == result.wanted:
            say(f"profharness: {root / artifact.path}")


def _watch_nothing() -> None:
    """No sampler runs beside the command."""
