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
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.findings import finding
from profharness.launchers import Outcome
from profharness.launchers.command import Command
from profharness.measure import pass_end
from profharness.measure.plan import Prepared, difference, pass_record, points_of
from profharness.measure.point_results import PointResults
from profharness.measure.progress import Progress
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.measure.schedule import BARE, PassPlan
from profharness.measure.served_commands import forget_tokens, works
from profharness.rundir import requests as tables
from profharness.rundir import requests_raw
from profharness.rundir.manifest import PointRecord
from profharness.rundir.paths import RunDir
from profharness.scans.contract import Point, Scan, key_of
from profharness.supervise.tool import ToolPass, read_logs
from profharness.workers import pool as workers
from profharness.workers.protocol import write_points
from profharness.workers.server import Server


@dataclass(frozen=True)
class ServedPass:
    """What all targets of one pass share."""

    prepared: Prepared
    scan: Scan
    plan: PassPlan
    recorder: Recorder
    sampler: Sampler

    @property
    def done(self) -> list[PointRecord]:
        """What this pass has measured so far."""
        return [
            record for record in self.recorder.manifest.points if record.pass_name == self.plan.name
        ]

    def todo(self, label: str) -> tuple[Point, ...]:
        """The target's points that are known and not measured yet; those of a search come one by
        one.
        """
        if self._searches:
            first = self.next(label)
            return () if first is None else (first,)
        bare = [record for record in self.recorder.manifest.points if record.pass_name == BARE]
        known = (
            self.scan.profiled(label, bare)
            if self.plan.layers
            else points_of(self.scan, self.plan, label)
        )
        return pass_end.missing(self.recorder, self.plan, known)

    def next(self, label: str) -> Point | None:
        """The search's next point, where it is this target's."""
        point = self.scan.next(self.done)
        return point if point is not None and point.backend == label else None

    def more(self, label: str) -> workers.More | None:
        """Where further points come from; None where all are known."""
        return (lambda: self.next(label)) if self._searches else None

    @property
    def _searches(self) -> bool:
        return self.scan.adaptive and not self.plan.layers


def run_pass(
    prepared: Prepared,
    scan: Scan,
    plan: PassPlan,
    recorder: Recorder,
    sampler: Sampler,
    progress: Progress,
) -> tuple[list[Outcome], bool, str]:
    """The outcomes of its servers, whether the tool's counters were refused, and what was said."""
    own = ServedPass(prepared, scan, plan, recorder, sampler)
    todo = {label: own.todo(label) for label in plan.targets}
    progress.pass_started(
        plan.name,
        None if own.more("") is not None else sum(len(points) for points in todo.values()),
    )
    recorder.set_pass(pass_record(prepared, plan, "running", start_boot_ns=pass_end.boot_ns()))
    _plan_replay(own, todo)
    where = prepared.where(plan, is_worker=prepared.request.serving.managed)
    tool = ToolPass(plan, where, prepared.request.exit_limit, lambda: _logs(recorder.run, plan))
    results = PointResults(scan, plan.name, recorder, progress)
    outcomes: list[Outcome] = []
    argv: list[tuple[str, ...]] = []
    command = Command(())
    try:
        for label in plan.targets:
            points = todo[label] if own.more(label) is None else own.todo(label)
            if not points:
                continue
            served, command = _target(own, label, points, tool, results)
            argv.append(prepared.launcher.composed(command).argv)
            outcomes += served
            if outcomes[-1].interrupted or tool.refused_so_far():
                break
    finally:
        keep_requests(recorder, plan.name)
    outcomes = outcomes or [pass_end.nothing_to_do()]
    said = read_logs(_logs(recorder.run, plan))
    refused = pass_end.conclude(prepared, tool, outcomes[-1], said, recorder)
    stopped = any(outcome.interrupted for outcome in outcomes)
    recorder.set_pass(
        pass_record(
            prepared,
            plan,
            "interrupted" if stopped else "done",
            argv=tuple(argv),
            env=difference(command),
            executions=len(outcomes),
            exit_status=outcomes[-1].exit_status,
            start_boot_ns=outcomes[0].start_boot_ns,
            end_boot_ns=outcomes[-1].end_boot_ns,
        )
    )
    return outcomes, refused and not stopped, said


def _target(
    own: ServedPass, label: str, points: Sequence[Point], tool: ToolPass, results: PointResults
) -> tuple[list[Outcome], Command]:
    """Serve one target's points; the outcomes of its server (of the load generator where the server
    is not ours), and its command.
    """
    prepared, sampler = own.prepared, own.sampler
    server_work, client = works(prepared, own.scan, own.plan, label)
    _fresh(client.folder)
    write_points(
        client.folder / "points.jsonl",
        ((point.key, point.params) for point in points),
        complete=own.more(label) is None,
    )

    def take_server(pid: int) -> None:
        sampler.follow(pid)
        tool.follow(pid)

    if server_work is None:
        try:
            outcomes = workers.serve(
                client,
                points,
                prepared.launcher,
                workers.Events(lambda _: None, sampler.check, results.take),
                own.more(label),
            )
        finally:
            forget_tokens(client.control)
        return outcomes, client.plain()
    server = Server(
        replace(server_work, before=tool.ready, overdue=tool.overdue),
        prepared.launcher,
        take_server,
        sampler.check,
    )
    watched = replace(client, before=server.ensure, overdue=server.died, blame=server.reason)
    events = workers.Events(lambda _: None, sampler.check, results.take)
    with _stopped_at_the_end(server, client.control):
        clients = workers.serve(watched, points, prepared.launcher, events, own.more(label))
    forwarded = tuple(number for outcome in clients for number in outcome.forwarded)
    ended = (
        [*server.outcomes[:-1], replace(server.outcomes[-1], forwarded=forwarded)]
        if server.outcomes
        else clients
    )
    return ended, server_work.wrapped


@contextmanager
def _stopped_at_the_end(server: Server, control: Path) -> Iterator[None]:
    try:
        yield
    finally:
        server.stop()
        forget_tokens(control)


def _plan_replay(own: ServedPass, todo: dict[str, tuple[Point, ...]]) -> None:
    """What the passes after a search are to measure is known once they begin: note it, so that
    missing points can be named.
    """
    manifest = own.recorder.manifest
    if not own.scan.adaptive or not own.plan.layers or manifest.scan is None:
        return
    keys = tuple(point.key for points in todo.values() for point in points)
    there = tuple(key_of(record) for record in own.done)
    planned = {**manifest.scan.planned, own.plan.name: (*there, *keys)}
    own.recorder.update(scan=msgspec.structs.replace(manifest.scan, planned=planned))


def _fresh(folder: Path) -> None:
    """What a killed run left of the conversation with its workers must not be taken for this
    one's.
    """
    for name in ("points.jsonl", "levels.jsonl", "windows.jsonl", "server-ready.json"):
        (folder / name).unlink(missing_ok=True)


def _logs(run: RunDir, plan: PassPlan) -> list[Path]:
    return sorted((run.root / "control" / plan.name).rglob("server-*.log"))


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
