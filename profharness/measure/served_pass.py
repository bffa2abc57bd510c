"""One pass of a served scan: per target a server under the pass's layers, and a load generator
beside it that is under none.

Telemetry and layers follow the server's processes, since that is where the model runs. Requests are
kept raw while the pass lasts, and as a table once it has ended, so that nothing but the load
disturbs the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.findings import finding
from profharness.launchers import Outcome
from profharness.layers.contract import Where
from profharness.measure.passes import Execution
from profharness.measure.plan import RunPlan, points_of
from profharness.measure.point_results import Around, PointResults
from profharness.measure.recorder import Recorder
from profharness.measure.scan_pass import ServedTarget, Watch, missing, serve_targets
from profharness.measure.served_commands import target_setup
from profharness.rundir import requests as tables
from profharness.rundir import requests_raw
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import Point, PointOutput, Scan, key_of
from profharness.serving import other_backends
from profharness.supervise.pass_plan import BARE, PassPlan
from profharness.supervise.tool import ToolPass
from profharness.workers import pool
from profharness.workers.protocol import write_points
from profharness.workers.server import READY, Server, ServerSetup
from profharness.workers.server_notes import with_notes


@dataclass(frozen=True)
class ServedPass:
    """Points that have a record are not measured again; those of a search come one by one."""

    run_plan: RunPlan
    scan: Scan
    watch: Watch
    plan: PassPlan

    @property
    def where(self) -> Where:
        """The layers stand around the server, which may be our own worker."""
        return self.run_plan.where(self.plan, is_worker=self.run_plan.request.managed)

    @property
    def done(self) -> list[PointRecord]:
        """What this pass has measured so far."""
        return [
            record
            for record in self.watch.recorder.manifest.points
            if record.pass_name == self.plan.name
        ]

    @property
    def points(self) -> int | None:
        """The number of points over all targets; None for a search."""
        return None if self._searches else sum(len(points) for points in self._todo.values())

    @property
    def _searches(self) -> bool:
        return self.scan.adaptive and not self.plan.layers

    @cached_property
    def _todo(self) -> dict[str, tuple[Point, ...]]:
        """The points that are known and not measured when the pass begins, by target."""
        records = self.watch.recorder.manifest.points
        bare = [record for record in records if record.pass_name == BARE]
        return {
            label: missing(
                self.watch.recorder,
                self.plan,
                self.scan.profiled(label, bare)
                if self.plan.layers
                else points_of(self.scan, self.plan, label),
            )
            for label in self.plan.targets
        }

    def todo(self, label: str) -> tuple[Point, ...]:
        """What one target has to measure; of a search the next point."""
        if not self._searches:
            return self._todo[label]
        first = self.next(label)
        return () if first is None else (first,)

    def next(self, label: str) -> Point | None:
        """The search's next point, where it is this target's."""
        point = self.scan.next(self.done)
        return point if point is not None and point.backend == label else None

    def more(self, label: str) -> pool.More | None:
        """Where further points come from; None where all are known."""
        return (lambda: self.next(label)) if self._searches else None

    def make_ready(self) -> None:
        """What the passes after a search are to measure is known once they begin: note it, so that
        missing points can be named.
        """
        self.watch.sampler.count(self.plan.layer_names)
        recorder = self.watch.recorder
        manifest = recorder.manifest
        if not self.scan.adaptive or not self.plan.layers or manifest.scan is None:
            return
        keys = tuple(point.key for points in self._todo.values() for point in points)
        measured = tuple(key_of(record) for record in self.done)
        planned = {**manifest.scan.planned, self.plan.name: (*measured, *keys)}
        recorder.update(scan=msgspec.structs.replace(manifest.scan, planned=planned))

    def logs(self) -> Sequence[Path]:
        """What the servers said."""
        control = self.watch.recorder.run.root / "control" / self.plan.name
        return sorted(control.rglob("server-*.log"))

    def execute(self, tool: ToolPass) -> Execution:
        """Have each target's points measured against its server."""
        watch = self.watch
        known = [] if self._searches else [one for mine in self._todo.values() for one in mine]
        around = Around(known, watch.sampler.present)
        results = PointResults(self.scan, self.plan.name, watch.recorder, watch.progress, around)

        def serve(label: str) -> ServedTarget | None:
            points = self.todo(label)
            return self._serve(label, points, tool, results) if points else None

        try:
            return serve_targets(self.plan.targets, serve, self.run_plan.launcher, tool)
        finally:
            keep_requests(watch.recorder, self.plan.name)

    # part of the contract
    def _serve(
        self, label: str, points: Sequence[Point], tool: ToolPass, results: PointResults
    ) -> ServedTarget:
        """One target's points; the outcomes are those of its server, or of the load generator where
        the server is not ours.
        """
        launcher, sampler = self.run_plan.launcher, self.watch.sampler
        target = target_setup(self.run_plan, self.scan, self.plan, label)
        client = target.client
        fresh(client.folder)
        more = self.more(label)
        listed = ((point.key, point.params) for point in points)
        write_points(client.folder / "points.jsonl", listed, complete=more is None)

        def take(point: Point, output: PointOutput) -> None:
            results.take(point, with_notes(output, client.control, point.key))

        events = pool.Events(lambda _: None, sampler.check, take)
        if target.server is None:
            outcomes = pool.serve(client, points, launcher, events, more)
            return ServedTarget(tuple(outcomes), client.plain())
        server = self._server(target.server, tool)
        watched = replace(client, before=server.ensure, overdue=server.died, blame=server.reason)
        with _stopped_at_the_end(server):
            clients = pool.serve(watched, points, launcher, events, more)
            other_backends.write_for(client.control / READY)
        return ServedTarget(_outcomes(server, clients), target.server.wrapped)

    def _server(self, setup: ServerSetup, tool: ToolPass) -> Server:
        """The target's server, not started yet. Telemetry and the tool follow its processes."""
        sampler = self.watch.sampler

        def started(pid: int) -> None:
            sampler.follow(pid)
            tool.follow(pid)

        ready = replace(setup, before=tool.ready, overdue=tool.overdue)
        return Server(ready, self.run_plan.launcher, started, sampler.check)


def _outcomes(server: Server, clients: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """How the server's processes ended, the last with the signals that the load generator got: the
    server runs beside it.
    """
    if not server.outcomes:
        return tuple(clients)
    forwarded = tuple(number for outcome in clients for number in outcome.forwarded)
    return (*server.outcomes[:-1], replace(server.outcomes[-1], forwarded=forwarded))


@contextmanager
def _stopped_at_the_end(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        server.stop()


def fresh(folder: Path) -> None:
    """Remove what a killed run left for its workers, so that ours do not read it."""
    for name in ("points.jsonl", "levels.jsonl", "windows.jsonl", "server-ready.json"):
        (folder / name).unlink(missing_ok=True)


def keep_requests(recorder: Recorder, pass_name: str) -> None:
    """Raw requests as requests.parquet, point by point; the raw files go once the table is
    whole.
    """
    for folder in sorted((recorder.run.root / "points" / pass_name).glob("*")):
        if not any(folder.glob("requests-*.i64")):
            continue
        try:
            level = requests_raw.read_level(folder)
            tables.write(requests_raw.to_requests(level), folder / tables.NAME)
        except (InputError, OSError) as error:
            recorder.add_finding(
                finding(
                    "point-failed",
                    f"the requests of {folder.name} in the {pass_name} pass could not be kept "
                    f"as a table ({error}); the raw files stay",
                    severity="warning",
                )
            )
            continue
        for path in folder.glob("requests-*.i64"):
            path.unlink()
