"""The passes of a run, one after another: every kind of run goes through the same steps here.

A pass is announced, made ready, started under its layers, watched until it ends, and recorded; a
counter pass that the tool refused comes again in halves. What is started differs between a scan, a
served scan and a command: that is its kind of `Pass` (`scan_pass`, `served_pass`, `command_pass`).
Where a pass is written down differs too: rank 0 keeps the manifest (`pass_records`), the other
ranks leave files for rank 0 (`rank_exchange`); that is `Records`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from profharness.launchers import Outcome
from profharness.layers.contract import Where
from profharness.measure.counter_split import PassQueue
from profharness.measure.progress import Progress
from profharness.rundir.lost import LostFile
from profharness.supervise.pass_plan import PassPlan
from profharness.supervise.tool import ToolPass, read_logs


@dataclass(frozen=True)
class Execution:
    """What one pass started: how each process ended (one at least), their command lines, the
    variables set for the last.
    """

    outcomes: tuple[Outcome, ...]
    argv: tuple[tuple[str, ...], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> Outcome:
        """How the process ended that was started last."""
        return self.outcomes[-1]

    @property
    def signals(self) -> tuple[int, ...]:
        """The signals that the harness got meanwhile, and passed on."""
        return tuple(number for outcome in self.outcomes for number in outcome.forwarded)


@dataclass(frozen=True)
class EndedPass:
    """A pass whose processes have ended. `stderr_text` is the end of what its tool and its workers
    wrote into their logs.
    """

    tool: ToolPass
    execution: Execution
    stderr_text: str

    @property
    def plan(self) -> PassPlan:
        """What was planned of the pass."""
        return self.tool.plan

    @cached_property
    def workload_status(self) -> int:
        """The exit status of the command itself, which a tool around it may have changed."""
        return self.tool.status(self.execution.last, self.stderr_text)


class Pass(Protocol):
    """One pass of a scan, a served scan or a command, which has not been started yet."""

    @property
    def plan(self) -> PassPlan: ...
    @property
    def where(self) -> Where:
        """Places and settings for the pass's layers."""

    @property
    def points(self) -> int | None:
        """How many points are to be measured; None where results decide, and for a command, which
        has none.
        """

    def make_ready(self) -> None:
        """Make the folders and files that every process of the pass needs."""

    def logs(self) -> Sequence[Path]:
        """The files in which the tool's sentences are searched; they need not exist yet."""

    def execute(self, tool: ToolPass) -> Execution:
        """Start the processes of the pass, one after another, and wait for them."""


class Records(Protocol):
    """Where the passes of this process are written down."""

    def begin(self, plan: PassPlan) -> None:
        """The pass is about to start."""

    def end(self, ended: EndedPass) -> bool:
        """Collect the pass's files and findings, and record how it ended; whether its counters come
        again in halves.
        """

    def split(self, ended: EndedPass, halves: Sequence[PassPlan]) -> None:
        """The tool refused the pass's counters: `halves` take its place; none where it cannot be
        halved.
        """

    def lose(self, *lost: LostFile) -> None:
        """Something could not be written."""


def run_passes(
    queue: PassQueue,
    pass_of: Callable[[PassPlan], Pass],
    records: Records,
    progress: Progress,
    exit_limit_s: float,
) -> tuple[EndedPass, ...]:
    """Every pass of the queue, until a signal ends one. Passes that came again in halves are not
    among the answer.

    Where the run folder takes no more once a pass has ended, the passes that have ended stand.
    """
    finished: list[EndedPass] = []
    while (plan := queue.take()) is not None:
        began, next_pass = time.monotonic(), pass_of(plan)
        progress.pass_started(plan.name, next_pass.points)
        records.begin(plan)
        try:
            ended = execute_pass(next_pass, exit_limit_s)
        except OSError as error:
            if not finished:
                raise
            records.lose(LostFile.of(plan.name, error))
            break
        refused = _recorded(ended, records)
        progress.pass_done(plan.name, time.monotonic() - began, None)
        if refused:
            records.split(ended, queue.split(plan))
            continue
        finished.append(ended)
        if ended.execution.signals:
            break
    return tuple(finished)


def _recorded(ended: EndedPass, records: Records) -> bool:
    """Whether the counters of the pass come again in halves."""
    records.lose(*(lost for outcome in ended.execution.outcomes for lost in outcome.lost))
    try:
        return records.end(ended)
    except OSError as error:
        records.lose(LostFile.of(ended.plan.name, error))
        return False


def execute_pass(next_pass: Pass, exit_limit_s: float) -> EndedPass:
    """Make one pass ready, start it under its layers, and wait for the end of its processes.

    A tool that works on for more than `exit_limit_s` after the workload's end, and writes nothing,
    counts as hung.
    """
    next_pass.make_ready()
    tool = ToolPass(next_pass.plan, next_pass.where, exit_limit_s, next_pass.logs)
    execution = next_pass.execute(tool)
    return EndedPass(tool, execution, read_logs(next_pass.logs()))
