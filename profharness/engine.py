"""The loop of the measuring half: probe the node, plan the passes, run each one, record everything.

Read this first. It starts processes only through launchers, decides nothing about layers (`schedule` does),
and computes no figures (`understand` does, from the run directory that is left here).
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from profharness import __version__, environment, harness_process, layers, ranks, scans, schedule, scrubbing, workers
from profharness.command import Command
from profharness.control import write_points
from profharness.environment import Environment
from profharness.errors import Unavailable, UsageError
from profharness.gather import read_clock_files
from profharness.launchers import Job, Launcher, Outcome
from profharness.launchers.local import LocalLauncher
from profharness.layers import Extras, Layer, Where, around, counters
from profharness.layers.hooks import through_exec_hook, with_hooks
from profharness.manifest import Artifact, LayerOutcome, Manifest, PassRecord, PassState, ScanRecord
from profharness.observe import Observer, clean_hellos, read_hellos
from profharness.point_results import PointResults
from profharness.provenance import git_state
from profharness.ranks import RankInfo
from profharness.recorder import Recorder
from profharness.report.progress import Progress
from profharness.request import Request
from profharness.rundir import RunDir
from profharness.sampling import Sampler
from profharness.scans import Point, Scan
from profharness.schedule import Counting, PassPlan, Plan
from profharness.tool_pass import ToolPass, read_logs
from profharness.tracer_options import COUNTING
from profharness.wrappers_path import wrappers_dir

PROBE_S = 60.0


@dataclass(frozen=True)
class Prepared:
    """Everything decided before anything is written: the dry run prints it, `execute` carries it out."""

    request: Request
    root: Path
    rank: RankInfo
    environment: Environment
    launcher: Launcher
    python: str
    plan: Plan
    scan: Scan | None

    @property
    def host(self) -> str:
        return self.environment.host or socket.gethostname()

    def where(self, plan: PassPlan, *, is_worker: bool) -> Where:
        """Places for the layers of one pass."""
        return Where(run_root=self.root, pass_name=plan.name, wrappers=wrappers_dir(), host=self.host,
                     capture=self.request.capture, hook=self.request.hook, is_worker=is_worker,
                     rank=self.rank.rank if self.rank.world > 1 else None, python=self.python, environment=self.environment,
                     options=self.request.tracer, counters=plan.counters)


@dataclass(frozen=True)
class Result:
    """Where the run lies and how it ended. `exit_status` is the command's own, or 0 or 1 for a scan."""

    run: RunDir
    exit_status: int
    leads: bool = True


def prepare(request: Request, *, dry: bool = False) -> Prepared:
    """Check and plan. Raises UsageError or Unavailable before anything is written.

    A dry run needs neither tool nor device: what the probe cannot find is planned for all the same.
    """
    rank = ranks.detect(os.environ, os.getppid())
    chosen = layers.named(_layer_names(request))
    launcher = LocalLauncher()
    python = request.python or _command_python(request.command) or sys.executable
    found = _probe(launcher, python, dry=dry)
    scan = None if request.command else scans.create(request, found)
    if scan is not None and rank.world > 1:
        raise UsageError(f"a scan is one process, but {rank.world} were started", "start it once, or profile a command: -- python train.py")
    counting = _counting(request, chosen, found)
    plan = (schedule.plan_scan(chosen, scan.backends, counting) if scan is not None else
            schedule.plan_command(chosen, bare=request.bare, allowed=request.passes, agreed=request.yes, counting=counting))
    if not dry:
        _require([layer for layer in chosen if layer.scope == "prefix" or scan is not None or _command_python(request.command)], found)
    if request.command and not dry and shutil.which(request.command[0]) is None:
        raise Unavailable(f"{request.command[0]}: no such program here", "check the spelling, the PATH, or the container")
    prepared = Prepared(request, _root(request, rank), rank, found, launcher, python, plan, scan)
    for each in plan.passes:  # a layer refuses here what its tool's version cannot do
        planned_commands(prepared, each)
    return prepared


def execute(prepared: Prepared, argv: tuple[str, ...], progress: Progress, *, echo_stdout: bool = False) -> Result:
    """Carry the plan out. The run directory is complete when this returns, also after a failure or a signal."""
    if prepared.rank.world > 1 and not prepared.rank.leads:
        from profharness import joining

        return joining.follow(prepared, echo_stdout=echo_stdout)
    run = RunDir.create(prepared.root)
    recorder = Recorder(run, _manifest(prepared, argv))
    try:
        with Sampler(run, prepared.request, prepared.host, recorder) as sampler:
            if prepared.scan is not None:
                status = _run_scan(prepared, prepared.scan, Watch(recorder, sampler, progress))
            else:
                status = _run_command(prepared, recorder, sampler, echo_stdout=echo_stdout)
    except BaseException as error:
        recorder.set_ended(error)
        raise
    _finish(recorder, status)
    return Result(run, status)


# ---------------------------------------------------------------- scans

@dataclass(frozen=True)
class Watch:
    """Those who hear of what happens during a pass."""

    recorder: Recorder
    sampler: Sampler
    progress: Progress


def _run_scan(prepared: Prepared, scan: Scan, watch: Watch) -> int:
    """Every pass over every backend; 1 when a point failed, 128 + n after a signal."""
    for plan in prepared.plan.passes:
        began = time.monotonic()
        outcomes = _scan_pass(prepared, scan, plan, watch)
        watch.progress.pass_done(plan.name, time.monotonic() - began, None)
        if signals := [number for outcome in outcomes for number in outcome.forwarded]:
            return 128 + signals[0]
    return 1 if any(point.state == "failed" for point in watch.recorder.manifest.points) else 0


def _points(scan: Scan, plan: PassPlan, backend: str) -> tuple[Point, ...]:
    """The backend's points: in a layer pass the same ones with few trials."""
    return scan.profiled(backend) if plan.layers else tuple(point for point in scan.points if point.backend == backend)


def _scan_pass(prepared: Prepared, scan: Scan, plan: PassPlan, watch: Watch) -> list[Outcome]:
    recorder, sampler, progress = watch.recorder, watch.sampler, watch.progress
    where = prepared.where(plan, is_worker=True)
    points = {backend: _points(scan, plan, backend) for backend in plan.targets}
    progress.pass_started(plan.name, sum(len(own) for own in points.values()))
    folder = recorder.run.control_dir(plan.name)
    write_points(folder / "points.jsonl", ((p.key, p.params) for own in points.values() for p in own), complete=True)
    recorder.set_pass(_pass_record(plan, "running", start_boot_ns=_boot_ns()))
    tool = ToolPass(plan, where, prepared.request.exit_limit)

    results = PointResults(scan, plan.name, recorder, progress)
    outcomes: list[Outcome] = []
    def started(pid: int) -> None:
        sampler.follow(pid)
        tool.follow(pid)

    argv: list[tuple[str, ...]] = []
    for backend, own in points.items():
        work = replace(_work(prepared, scan, plan, where, backend), before=tool.ready, overdue=tool.overdue)
        argv.append(work.command().argv)
        outcomes += workers.serve(work, own, prepared.launcher, workers.Events(started, sampler.check, results.take))
        if outcomes[-1].interrupted:
            break
    logs = [*folder.glob("worker-*.log"), *(recorder.run.root / "points" / plan.name).glob("*/stderr.log")]
    _conclude(prepared, tool, outcomes[-1], read_logs(sorted(logs)), recorder)
    stopped = any(outcome.interrupted for outcome in outcomes)
    recorder.set_pass(_pass_record(
        plan, "interrupted" if stopped else "done", argv=tuple(argv), env=_difference(work.command()), executions=len(outcomes),
        exit_status=outcomes[-1].exit_status, start_boot_ns=outcomes[0].start_boot_ns, end_boot_ns=outcomes[-1].end_boot_ns))
    return outcomes


def _work(prepared: Prepared, scan: Scan, plan: PassPlan, where: Where, backend: str) -> workers.PassWork:
    return workers.PassWork(
        run=RunDir(prepared.root), pass_name=plan.name, python=prepared.python, wrappers=where.wrappers,
        workload=scan.workload(backend), backend=backend, cache_dir=_cache_dir(), isolate=prepared.request.isolate,
        wrap=lambda command: around.wrap(plan.layers, command, where))


def _conclude(prepared: Prepared, tool: ToolPass, outcome: Outcome, said: str, recorder: Recorder) -> None:
    """After a pass: the tool's own analysis, the files that are there now, and what there is to say about them."""
    found = tool.follow_up(prepared.launcher, outcome)
    recorder.add_artifacts(collected := _collect(tool.plan, tool.where, recorder))
    for one in (*tool.findings(outcome, said, recorder.manifest.artifacts), *found, *scrubbing.findings(recorder.run.root, collected)):
        recorder.add_finding(one)


def _pass_record(plan: PassPlan, state: PassState, **facts: Any) -> PassRecord:
    return PassRecord(name=plan.name, layers=plan.layer_names, counters=plan.counters, perturbing=plan.perturbing, state=state, **facts)


# ---------------------------------------------------------------- commands

def _run_command(prepared: Prepared, recorder: Recorder, sampler: Sampler, *, echo_stdout: bool) -> int:
    """One execution per pass; the first status that is not 0 is the run's."""
    statuses: list[int] = []
    for plan in prepared.plan.passes:
        recorder.set_pass(_pass_record(plan, "running", start_boot_ns=_boot_ns()))
        tool, outcome, said = command_pass(prepared, plan, recorder.run, sampler, echo_stdout=echo_stdout)
        command = wrapped_command(prepared, plan)
        status = tool.status(outcome, said)
        recorder.set_pass(_pass_record(
            plan, "interrupted" if outcome.interrupted else "done", argv=(command.argv,), env=_difference(command), executions=1,
            exit_status=status, start_boot_ns=outcome.start_boot_ns, end_boot_ns=outcome.end_boot_ns))
        if prepared.rank.world > 1:
            from profharness import joining

            joining.gather(prepared, plan, replace(outcome, exit_status=status), recorder)
        _conclude(prepared, tool, outcome, said, recorder)
        statuses.append(status)
        if outcome.interrupted:
            break
    return next((status for status in statuses if status), 0)


def _hooked_command(prepared: Prepared, where: Where) -> Command:
    """The user's command under the hooks, which mark steps in every pass."""
    command = with_hooks(Command(prepared.request.command), where)
    if prepared.rank.world > 1:
        command = command.with_env({"PROFHARNESS_RANK": str(prepared.rank.rank)})
    return through_exec_hook(command, where) if prepared.request.hook == "exec" else command


def wrapped_command(prepared: Prepared, plan: PassPlan) -> Command:
    """The user's command under the hooks and the pass's layers."""
    where = prepared.where(plan, is_worker=False)
    return around.wrap(plan.layers, _hooked_command(prepared, where), where)


def command_pass(prepared: Prepared, plan: PassPlan, run: RunDir, sampler: Sampler, *, echo_stdout: bool) -> tuple[ToolPass, Outcome, str]:
    """Start the command once and wait; its output and signals are passed on untouched.

    Returns the pass's judge, how the started process ended, and what it said on stderr where a tool stood around it.
    """
    run.hooks.mkdir(parents=True, exist_ok=True)
    where = prepared.where(plan, is_worker=False)
    tool = ToolPass(plan, where, prepared.request.exit_limit)
    tool.ready(_hooked_command(prepared, where))
    folder = run.point_dir(plan.name, f"rank{prepared.rank.rank}") if echo_stdout or tool.tool is not None else run.root
    observer = Observer(run.hooks)

    def started(pid: int) -> None:
        sampler.follow(pid)
        tool.follow(pid)
        observer.follow(pid)

    def poll() -> None:
        sampler.check()
        observer.look()

    stderr_log = folder / "stderr.log" if tool.tool is not None else None
    job = Job(wrapped_command(prepared, plan), log=folder / "stdout.log" if echo_stdout else None, echo_stdout=echo_stdout,
              stderr_log=stderr_log, overdue=tool.overdue)
    outcome = prepared.launcher.run(job, started, poll)
    observer.report(sampler.add_finding)
    return tool, outcome, read_logs([stderr_log] if stderr_log else [])


def planned_commands(prepared: Prepared, plan: PassPlan) -> tuple[Command, ...]:
    """What one pass would start: a worker per backend, or the command."""
    if prepared.scan is None:
        return (wrapped_command(prepared, plan),)
    where = prepared.where(plan, is_worker=True)
    return tuple(_work(prepared, prepared.scan, plan, where, backend).command() for backend in plan.targets)


def planned_extras(prepared: Prepared, plan: PassPlan) -> tuple[Extras, tuple[Command, ...]]:
    """What must lie ready for one pass, and what its tools run afterwards."""
    where = prepared.where(plan, is_worker=prepared.scan is not None)
    plain = ([_work(prepared, prepared.scan, plan, where, backend).plain() for backend in plan.targets] if prepared.scan is not None
             else [_hooked_command(prepared, where)])
    each = [around.extras(plan.layers, command, where) for command in plain]
    joined = Extras(files=tuple(file for one in each for file in one.files), notes=tuple(note for one in each for note in one.notes))
    return joined, tuple(command for layer in plan.layers for command in layer.follow_up(where))


# ---------------------------------------------------------------- preparing and finishing

def _layer_names(request: Request) -> tuple[str, ...]:
    return tuple(name for name in request.profile if name not in ("telemetry", "none"))


def _counting(request: Request, chosen: tuple[Layer, ...], found: Environment) -> Counting | None:
    """Which layer collects the counters asked for, and in which passes. Raises UsageError for names that the devices lack."""
    if not request.pmc:
        return None
    layer = next(layer for layer in chosen if layer.name in COUNTING)
    return Counting(layer, counters.groups(request.pmc, found, wrappers_dir()))


def _command_python(command: tuple[str, ...]) -> str:
    """The interpreter that the command names, when it starts with one."""
    return command[0] if command and Path(command[0]).name.startswith("python") else ""


def _probe(launcher: Launcher, python: str, *, dry: bool) -> Environment:
    try:
        return environment.parse(launcher.capture(Command((python, str(wrappers_dir() / "probe.py"))), PROBE_S))
    except Unavailable:
        if dry:
            return Environment(host=socket.gethostname())
        raise


def _require(chosen: Sequence[Layer], found: Environment) -> None:
    for layer in chosen:
        state = layer.probe(found)
        if not state.available:
            # the first line of why says what is missing, the others what to do
            what, _, hint = state.why.partition("\n")
            raise Unavailable(f"{layer.name} is not on this node ({what})" if hint else f"--profile {layer.name} cannot be used here", hint or what)


def _root(request: Request, rank: RankInfo) -> Path:
    if request.output:
        return Path(request.output).absolute()
    name = request.name or (Path(request.command[0]).name if request.command else request.scan)
    base = Path(os.environ.get("PROFHARNESS_OUTPUT", "traces")).absolute()
    if rank.job:
        return base / f"{rank.job}-{name}"
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{name}"
    taken = [base / stem, *(base / f"{stem}-{n}" for n in range(2, 100))]
    return next(path for path in taken if not path.exists())


def _cache_dir() -> Path:
    """Exported models and compile caches live outside the run, so that all passes and runs share them."""
    base = os.environ.get("PROFHARNESS_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "profharness"
    return Path(base)


def _manifest(prepared: Prepared, argv: tuple[str, ...]) -> Manifest:
    request = prepared.request
    chosen = layers.named(_layer_names(request))
    settings: dict[str, object] = msgspec.to_builtins(request)
    return Manifest(
        id=prepared.root.name, created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", profharness=__version__,
        kind="command" if request.command else "scan", argv=argv, cwd=str(Path.cwd()), command=request.command,
        scan=None if prepared.scan is None else ScanRecord(
            name=prepared.scan.name, item=prepared.scan.item, settings=settings,
            planned={plan.name: tuple(point.key for backend in plan.targets for point in _points(prepared.scan, plan, backend)) for plan in prepared.plan.passes}),
        harness=harness_process.identify(),
        nodes=(prepared.environment.node(dict(os.environ)),), git=git_state(), capture=request.capture,
        layers=tuple(LayerOutcome(name=layer.name, available=state.available, version=state.version, why=state.why)
                     for layer in chosen for state in [layer.probe(prepared.environment)]),
        passes=tuple(_pass_record(plan, "planned") for plan in prepared.plan.passes),
        ranks=prepared.rank.world, job=prepared.rank.job)


def _collect(plan: PassPlan, where: Where, recorder: Recorder) -> tuple[Artifact, ...]:
    known = frozenset(artifact.path for artifact in recorder.manifest.artifacts)
    return tuple(artifact for layer in plan.layers for artifact in layer.collect(where, known))


def _difference(command: Command) -> dict[str, str]:
    """What was set for the command; unset names are left out."""
    return {name: value for name, value in command.env.items() if value is not None}


def _finish(recorder: Recorder, status: int) -> None:
    stopped = any(record.state == "interrupted" for record in recorder.manifest.passes)
    state = "interrupted" if stopped else "done"
    recorder.update(state=state, exit_status=status, processes=read_hellos(recorder.run.hooks), clocks=read_clock_files(recorder.run))
    clean_hellos(recorder.run.hooks)


def _boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
