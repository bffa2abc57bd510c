"""One pass of a scan: one worker process per backend, under the pass's layers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from profharness.launchers import Launcher, Outcome
from profharness.launchers.command import Command
from profharness.layers.contract import Where
from profharness.measure.caps.session import PowerCaps
from profharness.measure.pass_commands import difference
from profharness.measure.passes import EndedPass, Execution
from profharness.measure.plan import RunPlan, points_of, worker_setup
from profharness.measure.point_results import Around, PointResults
from profharness.measure.progress import Progress
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import Point, Scan, key_of
from profharness.supervise.pass_plan import PassPlan
from profharness.supervise.tool import ToolPass
from profharness.workers import pool
from profharness.workers.protocol import write_points


@dataclass(frozen=True)
class Watch:
    """The objects that are informed of what happens during the passes of a scan."""

    recorder: Recorder
    sampler: Sampler
    progress: Progress
    caps: PowerCaps | None = None


@dataclass(frozen=True)
class ScanPass:
    """Points that have a record are not measured again."""

    run_plan: RunPlan
    scan: Scan
    watch: Watch
    plan: PassPlan

    @property
    def where(self) -> Where:
        """The layers stand around our own workers."""
        return self.run_plan.where(self.plan, is_worker=True)

    @cached_property
    def todo(self) -> dict[str, tuple[Point, ...]]:
        """The points to be measured when the pass begins, by backend."""
        return {
            backend: missing(
                self.watch.recorder, self.plan, points_of(self.scan, self.plan, backend)
            )
            for backend in self.plan.targets
        }

    @property
    def points(self) -> int:
        """The number of points over all backends."""
        return sum(len(points) for points in self.todo.values())

    def make_ready(self) -> None:
        """The list of points, which the workers of all backends read."""
        path = self.watch.recorder.run.control_dir(self.plan.name) / "points.jsonl"
        path.unlink(missing_ok=True)
        listed = ((point.key, point.params) for points in self.todo.values() for point in points)
        write_points(path, listed, complete=True)
        self.watch.sampler.count(self.plan.layer_names)

    def logs(self) -> Sequence[Path]:
        """What each worker said, and what it said while it was on one point."""
        run, name = self.watch.recorder.run, self.plan.name
        return sorted(
            [
                *run.control_dir(name).glob("worker-*.log"),
                *(run.root / "points" / name).glob("*/stderr.log"),
            ]
        )

    def execute(self, tool: ToolPass) -> Execution:
        """Have each backend's points measured by its worker."""
        watch, launcher = self.watch, self.run_plan.launcher
        order = [point for points in self.todo.values() for point in points]
        around = Around(order, watch.sampler.present)
        results = PointResults(self.scan, self.plan.name, watch.recorder, watch.progress, around)

        def started(pid: int) -> None:
            watch.sampler.follow(pid)
            tool.follow(pid)

        events = pool.Events(started, watch.sampler.check, results.take)

        def serve(backend: str) -> ServedTarget | None:
            if not self.todo[backend]:
                return None
            setup = replace(
                worker_setup(self.run_plan, self.scan, self.plan, self.where, backend),
                before=tool.ready,
                overdue=tool.overdue,
                ended=tool.ended,
                hopeless=tool.refused_so_far,
            )
            outcomes = pool.serve(setup, self.todo[backend], launcher, events)
            return ServedTarget(tuple(outcomes), setup.command())

        return serve_targets(self.plan.targets, serve, launcher, tool)


@dataclass(frozen=True)
class ServedTarget:
    """One target whose points were measured: how its processes ended, and the command that the
    layers stood around.
    """

    outcomes: tuple[Outcome, ...]
    command: Command


def serve_targets(
    targets: Sequence[str],
    serve: Callable[[str], ServedTarget | None],
    launcher: Launcher,
    tool: ToolPass,
) -> Execution:
    """Serve each target, until a signal or the tool's refusal of the counters ends the pass.

    `serve` returns None for a target that lacks no point; a pass that lacks none at all ends as it
    begins.
    """
    outcomes: list[Outcome] = []
    argv: list[tuple[str, ...]] = []
    command = Command(())
    for target in targets:
        served = serve(target)
        if served is None:
            continue
        outcomes += served.outcomes
        command = served.command
        argv.append(launcher.composed(command).argv)
        if outcomes[-1].interrupted or tool.refused_so_far():
            break
    return as_execution(outcomes, tuple(argv), difference(command))


def as_execution(
    outcomes: Sequence[Outcome], argv: tuple[tuple[str, ...], ...], env: Mapping[str, str]
) -> Execution:
    """What a pass started; one that had nothing to do ends as it begins."""
    if not outcomes:
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        outcomes = [Outcome(0, 0, now, now)]
    return Execution(tuple(outcomes), argv, env)


def missing(recorder: Recorder, plan: PassPlan, points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that the pass has no record of."""
    recorded = {
        key_of(record) for record in recorder.manifest.points if record.pass_name == plan.name
    }
    return tuple(point for point in points if point.key not in recorded)


def scan_status(passes: Sequence[EndedPass], points: Sequence[PointRecord]) -> int:
    """The exit status of a run: 128 + n after signal n; 1 when a point failed."""
    if passes and (signals := passes[-1].execution.signals):
        return 128 + signals[0]
    return 1 if any(point.state == "failed" for point in points) else 0
