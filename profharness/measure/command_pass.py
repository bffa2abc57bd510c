"""One pass of a command: one execution under the pass's layers, on every rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.launchers import Job
from profharness.layers.contract import Where
from profharness.measure.pass_commands import difference, hooked_command, wrapped_command
from profharness.measure.passes import EndedPass, Execution
from profharness.measure.plan import RunPlan
from profharness.measure.sampler import Sampler
from profharness.rundir.paths import RunDir
from profharness.supervise import diagnosis
from profharness.supervise.hook_reports import Observer
from profharness.supervise.pass_plan import PassPlan
from profharness.supervise.tool import ToolPass


@dataclass(frozen=True)
class CommandPass:
    """The command's output and signals are passed on untouched; with `echo_stdout` its stdout goes
    to our stderr and a log.
    """

    run_plan: RunPlan
    sampler: Sampler
    echo_stdout: bool
    plan: PassPlan

    @property
    def where(self) -> Where:
        """The layers stand around the user's own program."""
        return self.run_plan.where(self.plan, is_worker=False)

    @property
    def points(self) -> None:
        """A command has no points."""

    @property
    def _folder(self) -> Path:
        """The folder of this rank's logs."""
        rank = self.run_plan.rank.rank
        return RunDir(self.run_plan.root).point_path(self.plan.name, f"rank{rank}")

    def make_ready(self) -> None:
        """The folders of the hooks' reports, and of the logs if there are any; device counters
        where the pass has them.
        """
        self.where.hooks.mkdir(parents=True, exist_ok=True)
        if self.echo_stdout or self.logs():
            self._folder.mkdir(parents=True, exist_ok=True)
        self.sampler.count(self.plan.layer_names)

    def logs(self) -> Sequence[Path]:
        """What the tool around the command says; without a tool, stderr is not copied."""
        has_tool = self.plan.tool is not None and self.where.traced
        return [self._folder / "stderr.log"] if has_tool else []

    def execute(self, tool: ToolPass) -> Execution:
        """Start the command and wait for it; watch for frameworks that run without our hooks."""
        run_plan, sampler = self.run_plan, self.sampler
        observer = Observer(self.where.hooks, self.plan.name)
        tool.ready(hooked_command(run_plan, self.where))

        def started(pid: int) -> None:
            sampler.follow(pid)
            tool.follow(pid)
            observer.follow(pid)

        def poll() -> None:
            sampler.check()
            observer.look()

        command = wrapped_command(run_plan, self.plan)
        job = Job(
            command,
            log=self._folder / "stdout.log" if self.echo_stdout else None,
            echo_stdout=self.echo_stdout,
            stderr_log=next(iter(self.logs()), None),
            overdue=tool.overdue,
            grace_s=run_plan.request.exit_limit,
            is_command=True,
        )
        outcome = run_plan.launcher.run(job, started, poll)
        observer.report(sampler.add_finding)
        composed = run_plan.launcher.composed(command)
        return Execution((outcome,), (composed.argv,), difference(composed))


def command_status(passes: Sequence[EndedPass]) -> int:
    """The run's exit status: the first that is not 0, or 3 where the tool refused every pass."""
    if not passes:
        return diagnosis.REFUSED
    return next((ended.workload_status for ended in passes if ended.workload_status), 0)
