"""One pass of a scan of a command: the bare one executes every point in rounds, one under layers
the few points that the bare pass chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from profharness.launchers import Outcome
from profharness.layers.contract import COMMAND, Where
from profharness.measure.executions.commands import point_command
from profharness.measure.executions.one import Ended, Executor, Watchers
from profharness.measure.pass_commands import difference
from profharness.measure.passes import Execution
from profharness.measure.plan import RunPlan
from profharness.measure.point_results import Around, PointResults
from profharness.measure.scan_pass import Watch, as_execution, missing
from profharness.rundir.manifest import PointRecord
from profharness.scans.command import CommandScan
from profharness.scans.contract import Point, PointOutput
from profharness.supervise.pass_plan import BARE, PassPlan
from profharness.supervise.tool import ToolPass

_UNITS = {
    "items": "it marked items",
    "steps": "it marked steps without items",
    "runs": "it marked no steps",
    "figures": "its output had the rate",
}


@dataclass(frozen=True)
class ExecutionsPass:
    """Points that have a record are not executed again; of a point that failed, the repeats are
    skipped.
    """

    run_plan: RunPlan
    scan: CommandScan
    watch: Watch
    plan: PassPlan

    @property
    def where(self) -> Where:
        """The layers stand around the user's own program."""
        return self.run_plan.where(self.plan, is_worker=False)

    @cached_property
    def todo(self) -> tuple[Point, ...]:
        """The executions that are to be made when the pass begins."""
        planned = self.scan.points
        if self.plan.layers:
            bare = [one for one in self.records if one.pass_name == BARE]
            planned = self.scan.profiled(COMMAND, bare)
        return missing(self.watch.recorder, self.plan, planned)

    @property
    def records(self) -> tuple[PointRecord, ...]:
        """All that has been measured so far."""
        return self.watch.recorder.manifest.points

    @property
    def searches(self) -> bool:
        """Whether each execution is chosen when those before it are known."""
        return self.scan.search is not None and not self.plan.layers

    @property
    def points(self) -> int:
        """The number of executions."""
        if not self.searches:
            return len(self.todo)
        return max(self.scan.executions - len(self._of_this_pass), 0)

    @property
    def _of_this_pass(self) -> list[PointRecord]:
        return [record for record in self.records if record.pass_name == self.plan.name]

    def order(self) -> Iterator[Point]:
        """The executions one after the other; of a search each once the one before has its
        record.
        """
        if not self.searches:
            yield from self.todo
            return
        while (point := self.scan.next(self._of_this_pass)) is not None:
            yield point

    def make_ready(self) -> None:
        """The folder of the hooks' reports."""
        self.where.hooks.mkdir(parents=True, exist_ok=True)
        self.watch.sampler.count(self.plan.layer_names)

    def logs(self) -> Sequence[Path]:
        """What the executions said, where a tool stands around them."""
        if self.plan.tool is None:
            return []
        return sorted((self.watch.recorder.run.root / "points" / self.plan.name).glob("*/*.log"))

    def execute(self, tool: ToolPass) -> Execution:
        """Execute the points one after another, until a signal ends the pass."""
        watch = self.watch
        around = Around(() if self.searches else self.todo, watch.sampler.present)
        results = PointResults(self.scan, self.plan.name, watch.recorder, watch.progress, around)

        def started(pid: int) -> None:
            watch.sampler.follow(pid)
            tool.follow(pid)

        executor = Executor(
            self.run_plan,
            self.scan,
            self.plan,
            lambda point: watch.recorder.run.point_dir(self.plan.name, point.key),
            Watchers(started, watch.sampler.check, tool.overdue),
        )
        turns = _Turns(self, executor, tool, results)
        for point in self.order():
            if not turns.take(point) or tool.refused_so_far():
                break
        return turns.execution()


@dataclass
class _Turns:
    """The executions of a pass so far."""

    scan_pass: ExecutionsPass
    executor: Executor
    tool: ToolPass
    results: PointResults
    outcomes: list[Outcome] = field(default_factory=list)
    argv: list[tuple[str, ...]] = field(default_factory=list)
    last: Ended | None = None

    def take(self, point: Point) -> bool:
        """Execute one point and record it; False where a signal ended it."""
        if self._has_failed(point):
            self.results.take(point, PointOutput(ok=False, begun=False, error="it failed before"))
            return True
        ended = self._executed(point)
        self.outcomes += ended.outcomes
        if ended.output is None:
            return False
        ended = replace(ended, output=self._in_unit(ended.output))
        assert ended.output is not None
        self.results.take(point, ended.output)
        self.last = ended
        composed = self.scan_pass.run_plan.launcher.composed(ended.command)
        if ended.output.ok and composed.argv not in self.argv:
            self.argv.append(composed.argv)
        return self._cleaned(point)

    def _executed(self, point: Point) -> Ended:
        """What stands before the execution, and the execution; the first that fails ends it."""
        if why := self._uncapped(point):
            return Ended(PointOutput(ok=False, error=why))
        request, executor = self.scan_pass.run_plan.request, self.executor
        first = not point.repeat or bool(self.scan_pass.plan.layers) or self.scan_pass.searches
        if first and (ended := executor.around("--setup", request.setup, point)):
            return ended
        for _ in range(request.discarded if first else 0):
            if ended := executor.around("--prepare", request.prepare, point):
                return ended
            if ended := executor.discarded(point):
                return ended
        if ended := executor.around("--prepare", request.prepare, point):
            return ended
        where = self.scan_pass.where
        self.tool.ready(point_command(self.scan_pass.run_plan, self.scan_pass.scan, point, where))
        return self._under_its_cap(executor.execute(point), point)

    def _uncapped(self, point: Point) -> str:
        """Set the point's power cap; why it was not set."""
        watch = self.scan_pass.watch
        if watch.caps is None:
            return ""
        return watch.caps.set_for(point, watched=watch.sampler.alive())

    def _under_its_cap(self, ended: Ended, point: Point) -> Ended:
        """Failed where the cap was not that of the point until its end."""
        caps, output = self.scan_pass.watch.caps, ended.output
        if caps is None or output is None or not output.ok:
            return ended
        why = caps.changed_during(point)
        return replace(ended, output=replace(output, ok=False, error=why)) if why else ended

    def _cleaned(self, point: Point) -> bool:
        """Clean up after the last execution of a point, or the one that failed. What goes wrong
        there changes no figure.
        """
        request = self.scan_pass.run_plan.request
        is_last = (
            bool(self.scan_pass.plan.layers)
            or self.scan_pass.searches
            or point.repeat == request.repeats - 1
            or self._has_failed(point)
        )
        if not is_last:
            return True
        ended = self.executor.around("--cleanup", request.cleanup, point)
        if ended is None:
            return True
        self.outcomes += [one for one in ended.outcomes if one.interrupted]
        return ended.output is not None

    def _has_failed(self, point: Point) -> bool:
        return any(
            record.id == point.id
            and record.pass_name == self.scan_pass.plan.name
            and record.state == "failed"
            for record in self.scan_pass.records
        )

    def _in_unit(self, output: PointOutput) -> PointOutput:
        """The answer failed where its rate counts something else than those before it."""
        units = (
            record.execution.unit
            for record in self.scan_pass.records
            if record.execution is not None and record.state == "ok"
        )
        unit = next(units, None)
        if unit is None or output.execution is None or output.execution.unit == unit:
            return output
        return replace(
            output,
            ok=False,
            execution=None,
            error=f"{_UNITS[output.execution.unit]}, though at the points before "
            f"{_UNITS[unit]}: rates of two kinds cannot be compared",
        )

    def execution(self) -> Execution:
        """What the pass started."""
        env = {} if self.last is None else difference(self.last.command)
        return as_execution(self.outcomes, tuple(self.argv), env)
