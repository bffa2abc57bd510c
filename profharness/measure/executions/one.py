"""One execution of a command with the values of a point: what runs before and after it, the
execution itself, and what it came to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from profharness.errors import Unavailable
from profharness.launchers import Job, Outcome, describe_exit
from profharness.launchers.command import Command
from profharness.measure.executions.commands import shell_command, wrapped_point_command
from profharness.measure.executions.rates import NoRateError, Said, rated, steady_spans
from profharness.measure.plan import RunPlan
from profharness.rundir.executions import script_marks
from profharness.scans.command import CommandScan
from profharness.scans.contract import Point, PointOutput
from profharness.supervise.pass_plan import PassPlan

_OUTPUT_BYTES = 16 << 20
"""Of an execution's output the end is searched for rates."""
_LAST_LINE = 200


@dataclass(frozen=True)
class Watchers:
    """Who is told of the processes of an execution while it runs."""

    started: Callable[[int], None]
    poll: Callable[[], None]
    overdue: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Ended:
    """What became of a point's execution: its answer, and how its processes ended. A signal to the
    harness leaves no answer.
    """

    output: PointOutput | None
    outcomes: tuple[Outcome, ...] = ()
    command: Command = field(default_factory=lambda: Command(()))


@dataclass(frozen=True)
class Executor:
    """Executes the points of one pass."""

    run_plan: RunPlan
    scan: CommandScan
    plan: PassPlan
    folder: Callable[[Point], Path]
    watchers: Watchers

    def around(self, option: str, text: str, point: Point) -> Ended | None:
        """Run what `--setup`, `--prepare` or `--cleanup` say; None where there is nothing to say
        against it.
        """
        if not text:
            return None
        ended = self._run(shell_command(self.run_plan, self.scan, point, text), point, option[2:])
        if ended.output is None or ended.output.ok:
            return ended if ended.output is None else None
        return replace(ended, output=replace(ended.output, error=f"{option}: {ended.output.error}"))

    def discarded(self, point: Point) -> Ended | None:
        """One execution that does not count; None where it ended well."""
        command = wrapped_point_command(self.run_plan, self.scan, point, self.plan)
        ended = self._run(command, point, "discarded")
        return None if ended.output is not None and ended.output.ok else ended

    def execute(self, point: Point) -> Ended:
        """The execution that counts, with its rate."""
        known = script_marks.files(self.run_plan.root)
        command = wrapped_point_command(self.run_plan, self.scan, point, self.plan)
        ended = self._run(command, point, "stdout")
        if ended.output is None or not ended.output.ok:
            return ended
        new = script_marks.files(self.run_plan.root) - known
        steps = script_marks.read_steps(new)
        said = Said(steps, script_marks.read_values(new), self._said(point))
        outcome = ended.outcomes[-1]
        try:
            record = rated(
                said,
                outcome.end_boot_ns - outcome.start_boot_ns,
                self.run_plan.request.rate_regex,
            )
        except NoRateError as error:
            return replace(ended, output=replace(ended.output, ok=False, error=str(error)))
        return replace(ended, output=_with_trials(replace(ended.output, execution=record), steps))

    def _said(self, point: Point) -> str:
        return _end_of(self.folder(point) / "stdout.log")

    def _run(self, command: Command, point: Point, log: str) -> Ended:
        """Start one process and wait for it; both its outputs go to a log in the point's folder."""
        path = self.folder(point) / f"{log}.log"
        job = Job(
            command,
            log=path,
            overdue=self.watchers.overdue,
            grace_s=self.run_plan.request.exit_limit,
        )
        begin = time.monotonic_ns()
        try:
            outcome = self.run_plan.launcher.run(job, self.watchers.started, self.watchers.poll)
        except Unavailable as error:
            return Ended(PointOutput(ok=False, error=error.message, begin_ns=begin), (), command)
        output = PointOutput(
            ok=outcome.exit_status == 0,
            error="" if outcome.exit_status == 0 else _why(command, outcome, _end_of(path)),
            begin_ns=begin,
            end_ns=time.monotonic_ns(),
            pid=outcome.pid,
            host=self.run_plan.host,
        )
        return Ended(None if outcome.interrupted else output, (outcome,), command)


def _with_trials(output: PointOutput, steps: tuple[script_marks.StepMarks, ...]) -> PointOutput:
    """The steps as trials, so that traces and telemetry are cut by them; the whole execution as one
    where none were marked.
    """
    assert output.begin_ns is not None
    assert output.end_ns is not None
    spans = steady_spans(steps) or ((output.begin_ns, output.end_ns - output.begin_ns, 1, True),)
    warm = [span for span in spans if not span[3]]
    kept = [span for span in spans if span[3]]
    return replace(
        output,
        starts_ns=tuple(span[0] for span in kept),
        trials_ns=tuple(span[1] for span in kept),
        warmup_starts_ns=tuple(span[0] for span in warm),
        warmup_ns=tuple(span[1] for span in warm),
        items=round(sum(span[2] for span in kept) / len(kept)) or 1,
    )


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _OUTPUT_BYTES, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _why(command: Command, outcome: Outcome, said: str) -> str:
    """`python exited 1: ValueError: ...`, with the last line that it said."""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    name = Path(command.argv[0]).name
    return f"{name} {describe_exit(outcome.exit_status)}" + (
        f": {last[:_LAST_LINE]}" if last else ""
    )
