"""The passes of a scan: one worker process per backend, under the pass's layers."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.launchers import Outcome
from profharness.measure import pass_end
from profharness.measure import served_pass as served_run
from profharness.measure.counter_split import Passes
from profharness.measure.plan import (
    Prepared,
    difference,
    is_served,
    pass_record,
    pass_work,
    points_of,
)
from profharness.measure.point_results import PointResults
from profharness.measure.progress import Progress
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.measure.schedule import PassPlan
from profharness.scans.contract import Scan
from profharness.supervise.tool import ToolPass, read_logs
from profharness.workers import pool as workers
from profharness.workers.protocol import write_points


@dataclass(frozen=True)
class Watch:
    """Those who hear of what happens during a pass."""

    recorder: Recorder
    sampler: Sampler
    progress: Progress


def run(prepared: Prepared, scan: Scan, watch: Watch) -> int:
    """Every pass over every backend; 1 when a point failed, 128 + n after a signal."""
    done = {
        record.name for record in watch.recorder.manifest.passes if record.state == "done"
    }  # of a run that is gone on with
    left = Passes(
        tuple(plan for plan in prepared.plan.passes if plan.name not in done),
        pass_end.spare_executions(prepared),
    )
    while (plan := left.take()) is not None:
        began = time.monotonic()
        outcomes, refused, said = _pass(prepared, scan, plan, watch)
        watch.progress.pass_done(plan.name, time.monotonic() - began, None)
        if signals := [number for outcome in outcomes for number in outcome.forwarded]:
            return 128 + signals[0]
        if refused:
            pass_end.record_split(prepared, plan, left.split(plan), said, watch.recorder)
    return 1 if any(point.state == "failed" for point in watch.recorder.manifest.points) else 0


def _pass(
    prepared: Prepared, scan: Scan, plan: PassPlan, watch: Watch
) -> tuple[list[Outcome], bool, str]:
    """The outcomes of its executions, whether its counters were refused, and what was said."""
    recorder, sampler, progress = watch.recorder, watch.sampler, watch.progress
    if is_served(scan):
        return served_run.run_pass(prepared, scan, plan, recorder, sampler, progress)
    where = prepared.where(plan, is_worker=True)
    of_backend = {
        backend: pass_end.missing(recorder, plan, points_of(scan, plan, backend))
        for backend in plan.targets
    }
    progress.pass_started(plan.name, sum(len(own) for own in of_backend.values()))
    folder = recorder.run.control_dir(plan.name)
    (folder / "points.jsonl").unlink(missing_ok=True)
    write_points(
        folder / "points.jsonl",
        ((p.key, p.params) for own in of_backend.values() for p in own),
        complete=True,
    )
    recorder.set_pass(pass_record(prepared, plan, "running", start_boot_ns=pass_end.boot_ns()))

    def logs() -> list[Path]:
        return sorted(
            [
                *folder.glob("worker-*.log"),
                *(recorder.run.root / "points" / plan.name).glob("*/stderr.log"),
            ]
        )

    tool = ToolPass(plan, where, prepared.request.exit_limit, logs)
    results = PointResults(scan, plan.name, recorder, progress)
    outcomes: list[Outcome] = []

    def started(pid: int) -> None:
        sampler.follow(pid)
        tool.follow(pid)

    argv: list[tuple[str, ...]] = []
    work = None
    for backend, own in of_backend.items():
        if not own:
            continue
        work = replace(
            pass_work(prepared, scan, plan, where, backend),
            before=tool.ready,
            overdue=tool.overdue,
            ended=tool.ended,
            hopeless=tool.refused_so_far,
        )
        argv.append(prepared.launcher.composed(work.command()).argv)
        outcomes += workers.serve(
            work, own, prepared.launcher, workers.Events(started, sampler.check, results.take)
        )
        if outcomes[-1].interrupted or tool.refused_so_far():
            break
    outcomes = outcomes or [pass_end.nothing_to_do()]
    said = read_logs(logs())
    refused = pass_end.conclude(prepared, tool, outcomes[-1], said, recorder)
    stopped = any(outcome.interrupted for outcome in outcomes)
    recorder.set_pass(
        pass_record(
            prepared,
            plan,
            "interrupted" if stopped else "done",
            argv=tuple(argv),
            env=difference(work.command()) if work is not None else {},
            executions=len(outcomes),
            exit_status=outcomes[-1].exit_status,
            start_boot_ns=outcomes[0].start_boot_ns,
            end_boot_ns=outcomes[-1].end_boot_ns,
        )
    )
    return outcomes, refused and not stopped, said
