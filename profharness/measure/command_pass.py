"""The passes of a command: one execution each, under the pass's layers, on every rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profharness.launchers import Job, Outcome
from profharness.measure import pass_end
from profharness.measure.counter_split import Passes
from profharness.measure.plan import (
    Prepared,
    difference,
    hooked_command,
    pass_record,
    wrapped_command,
)
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.measure.schedule import PassPlan
from profharness.rundir.paths import RunDir
from profharness.supervise import diagnosis as failures
from profharness.supervise.hook_reports import Observer
from profharness.supervise.tool import ToolPass, read_logs


def run(prepared: Prepared, recorder: Recorder, sampler: Sampler, *, echo_stdout: bool) -> int:
    """One execution per pass; the first status that is not 0 is the run's. A refused counter pass
    comes again in halves.
    """
    statuses: list[int] = []
    left = Passes(prepared.plan.passes, pass_end.spare_executions(prepared))
    while (plan := left.take()) is not None:
        outcome, status, refused, said = _pass(
            prepared, plan, recorder, sampler, echo_stdout=echo_stdout
        )
        if refused:
            pass_end.record_split(prepared, plan, left.split(plan), said, recorder)
            continue
        statuses.append(status)
        if outcome.interrupted:
            break
    return next((status for status in statuses if status), 0) if statuses else failures.REFUSED


def _pass(
    prepared: Prepared, plan: PassPlan, recorder: Recorder, sampler: Sampler, *, echo_stdout: bool
) -> tuple[Outcome, int, bool, str]:
    """How the execution ended, the status to pass on, whether any rank's counters were refused, and
    what was said.
    """
    recorder.set_pass(pass_record(prepared, plan, "running", start_boot_ns=pass_end.boot_ns()))
    tool, outcome, said = execute(prepared, plan, recorder.run, sampler, echo_stdout=echo_stdout)
    command = prepared.launcher.composed(wrapped_command(prepared, plan))
    status = tool.status(outcome, said)
    recorder.set_pass(
        pass_record(
            prepared,
            plan,
            "interrupted" if outcome.interrupted else "done",
            argv=(command.argv,),
            env=difference(command),
            executions=1,
            exit_status=status,
            start_boot_ns=outcome.start_boot_ns,
            end_boot_ns=outcome.end_boot_ns,
        )
    )
    others = False
    if prepared.rank.world > 1:
        from profharness.measure import rank_exchange as joining

        others = joining.gather(
            prepared, tool, replace(outcome, exit_status=status), said, recorder
        )
    refused = pass_end.conclude(prepared, tool, outcome, said, recorder) or others
    return outcome, status, refused and not outcome.interrupted, said


def execute(
    prepared: Prepared, plan: PassPlan, run: RunDir, sampler: Sampler, *, echo_stdout: bool
) -> tuple[ToolPass, Outcome, str]:
    """Start the command once and wait; its output and signals are passed on untouched.

    Returns the pass's judge, how the started process ended, and what it said on stderr where a tool
    stood around it.
    """
    run.hooks.mkdir(parents=True, exist_ok=True)
    where = prepared.where(plan, is_worker=False)
    logs: list[Path] = []
    tool = ToolPass(plan, where, prepared.request.exit_limit, lambda: logs)
    tool.ready(hooked_command(prepared, where))
    folder = (
        run.point_dir(plan.name, f"rank{prepared.rank.rank}")
        if echo_stdout or tool.tool is not None
        else run.root
    )
    observer = Observer(run.hooks)

    def started(pid: int) -> None:
        sampler.follow(pid)
        tool.follow(pid)
        observer.follow(pid)

    def poll() -> None:
        sampler.check()
        observer.look()

    stderr_log = folder / "stderr.log" if tool.tool is not None else None
    logs += [stderr_log] if stderr_log else []
    job = Job(
        wrapped_command(prepared, plan),
        log=folder / "stdout.log" if echo_stdout else None,
        echo_stdout=echo_stdout,
        stderr_log=stderr_log,
        overdue=tool.overdue,
    )
    outcome = prepared.launcher.run(job, started, poll)
    observer.report(sampler.add_finding)
    return tool, outcome, read_logs(logs)
