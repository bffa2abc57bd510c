"""One pass over the settings of servers: levels in the order in which the scan asks for them, each
on the server of its setting, which is started anew where the one before was another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import ProfharnessError
from profharness.launchers import Outcome
from profharness.layers.contract import Where
from profharness.measure.executions import served_configs
from profharness.measure.pass_commands import difference
from profharness.measure.passes import Execution
from profharness.measure.plan import worker_setup
from profharness.measure.point_results import Around, PointResults
from profharness.measure.scan_pass import ServedTarget, as_execution
from profharness.measure.served_pass import ServedPass, fresh, keep_requests
from profharness.scans.contract import Point, PointOutput
from profharness.scans.settings_scan import SettingsScan
from profharness.supervise.tool import ToolPass
from profharness.workers import pool
from profharness.workers.protocol import write_points

_LOGS = ("server-*.log", "worker-*.log")


@dataclass(frozen=True)
class SettingsPass(ServedPass):
    """The bare pass asks the scan for each level; a pass under layers has the few that it chose."""

    scan: SettingsScan

    @property
    def points(self) -> int | None:
        """The number of levels."""
        if self.plan.layers:
            return sum(len(points) for points in self._todo.values())
        return max(self.scan.executions - len(self.done), 0)

    @property
    def _searches(self) -> bool:
        return not self.plan.layers

    def next(self, label: str) -> Point | None:
        """The next level, where it is on this server."""
        point = self.scan.next(self.done)
        return point if point is not None and point.backend == label else None

    def execute(self, tool: ToolPass) -> Execution:
        """Measure level after level, until there is none, a signal ends the pass, or the tool
        refuses the counters.
        """
        if self.plan.layers:
            return super().execute(tool)
        watch = self.watch
        around = Around((), watch.sampler.present)
        results = PointResults(self.scan, self.plan.name, watch.recorder, watch.progress, around)
        outcomes: list[Outcome] = []
        argv: dict[tuple[str, ...], None] = {}
        last: ServedTarget | None = None
        try:
            for served in self._visits(tool, results):
                last = served
                outcomes += served.outcomes
                argv[self.run_plan.launcher.composed(served.command).argv] = None
                if served.outcomes and served.outcomes[-1].interrupted:
                    break
        finally:
            keep_requests(watch.recorder, self.plan.name)
            served_configs.write(watch.recorder.run, self.scan, self.done)
        env = {} if last is None else difference(last.command)
        return as_execution(outcomes, tuple(argv), env)

    def _visits(self, tool: ToolPass, results: PointResults) -> Iterator[ServedTarget]:
        """One server after the other, as long as each visit gives a record at least. A setting that
        is refused costs itself; where none is left, what the first one said is raised.
        """
        first: ProfharnessError | None = None
        visits: dict[str, int] = {}
        while (point := self.scan.next(self.done)) is not None:
            before, label = len(self.done), point.backend
            self._keep_logs(label, visits.get(label, 0))
            visits[label] = visits.get(label, 0) + 1
            try:
                served = self._serve(label, (point,), tool, results)
            except ProfharnessError as error:
                first = first or error
                results.take(point, PointOutput(ok=False, error=error.message))
                continue
            yield served
            if len(self.done) == before:
                return
        if first is not None and not any(record.state == "ok" for record in self.done):
            raise first

    @property
    def where(self) -> Where:
        """The layers stand around the server, or around the worker that runs the model itself."""
        direct = self.scan.server(self.scan.backends[0]) is None
        is_worker = direct or self.run_plan.request.managed
        return self.run_plan.where(self.plan, is_worker=is_worker)

    def logs(self) -> Sequence[Path]:
        """What servers and workers said."""
        control = self.watch.recorder.run.control_dir(self.plan.name)
        return sorted([*super().logs(), *control.glob("*/worker-*.log")])

    def _serve(
        self, label: str, points: Sequence[Point], tool: ToolPass, results: PointResults
    ) -> ServedTarget:
        if self.scan.server(label) is not None:
            return super()._serve(label, points, tool, results)
        sampler = self.watch.sampler

        def started(pid: int) -> None:
            sampler.follow(pid)
            tool.follow(pid)

        setup = replace(
            worker_setup(self.run_plan, self.scan, self.plan, self.where, label),
            subfolder=label,
            before=tool.ready,
            overdue=tool.overdue,
            ended=tool.ended,
            hopeless=tool.refused_so_far,
        )
        more = self.more(label)
        fresh(setup.folder)
        listed = ((point.key, point.params) for point in points)
        write_points(setup.folder / "points.jsonl", listed, complete=more is None)
        events = pool.Events(started, sampler.check, results.take)
        outcomes = pool.serve(setup, points, self.run_plan.launcher, events, more)
        return ServedTarget(tuple(outcomes), setup.command())

    def _keep_logs(self, label: str, visit: int) -> None:
        """What a server said on an earlier visit keeps a name of its own."""
        folder = self.watch.recorder.run.control_dir(self.plan.name) / label
        for path in sorted(each for pattern in _LOGS for each in folder.glob(pattern)):
            if ".visit" not in path.name:
                path.rename(path.with_name(f"{path.stem}.visit{visit}{path.suffix}"))
