"""The loop of the measuring half: probe the node, plan the passes, run each one, record everything.

Read this first. It starts processes only through launchers, decides nothing about layers
(`schedule` does), and computes no figures (`understand` does, from the run directory that is left
here).
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from profharness import __version__, layers, scans
from profharness.errors import Unavailable, UsageError
from profharness.launchers import Launcher
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers import counters
from profharness.layers.contract import Layer
from profharness.measure import command_pass as command_run
from profharness.measure import ranks, schedule
from profharness.measure import resume as resuming
from profharness.measure import scan_pass as scan_run
from profharness.measure.containers import PYTHON, container_of
from profharness.measure.pass_end import planned_keys
from profharness.measure.plan import Prepared, pass_record, planned_commands
from profharness.measure.progress import Progress
from profharness.measure.provenance import git_state
from profharness.measure.ranks import RankInfo
from profharness.measure.recorder import Recorder
from profharness.measure.sampler import Sampler
from profharness.measure.scan_pass import Watch
from profharness.measure.schedule import Counting
from profharness.node import probe as environment
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.rundir import harness_process
from profharness.rundir.manifest import LayerOutcome, Manifest, ScanRecord
from profharness.rundir.paths import RunDir
from profharness.supervise.hook_reports import clean_hellos, read_hellos
from profharness.understand.run_files import read_clock_files

PROBE_S = 60.0


@dataclass(frozen=True)
class Result:
    """Where the run lies and how it ended. `exit_status` is the command's own, or 0 or 1 for a
    scan.

    `unwritten` says why the manifest on disk is older than the run; empty where it is not.
    """

    run: RunDir
    exit_status: int
    leads: bool = True
    unwritten: str = ""


def prepare(request: Request, *, dry: bool = False) -> Prepared:
    """Check and plan. Raises UsageError or Unavailable before anything is written.

    A dry run needs neither tool nor device: what the probe cannot find is planned for all the same.
    """
    rank = ranks.detect(os.environ, os.getppid())
    chosen = layers.named(_layer_names(request))
    root = _root(request, rank)
    container = container_of(request, (root, *_files_of(request)), dry=dry)
    launcher = LocalLauncher(container)
    python = (
        request.python
        or _command_python(request.command)
        or (PYTHON if container else sys.executable)
    )
    before = LocalLauncher(
        container
        and replace(
            container, folders=tuple(folder for folder in container.folders if folder.exists())
        )
    )
    found = _probe(before, python, dry=dry)
    scan = None if request.command else scans.create(request, found)
    if scan is not None and rank.world > 1:
        raise UsageError(
            f"a scan is one process, but {rank.world} were started",
            "start it once, or profile a command: -- python train.py",
        )
    counting = _counting(request, chosen, found)
    plan = (
        schedule.plan_scan(chosen, scan.backends, counting)
        if scan is not None
        else schedule.plan_command(
            chosen,
            bare=request.bare,
            allowed=request.passes,
            agreed=request.yes,
            counting=counting,
            dry=dry,
        )
    )
    if not dry:
        _require(
            [
                layer
                for layer in chosen
                if layer.about.scope == "prefix"
                or scan is not None
                or _command_python(request.command)
            ],
            found,
        )
    if (
        request.command
        and not dry
        and container is None
        and shutil.which(request.command[0]) is None
    ):
        raise Unavailable(
            f"{request.command[0]}: no such program here",
            "check the spelling, the PATH, or the container",
        )
    prepared = Prepared(request, root, rank, found, launcher, python, plan, scan)
    for each in plan.passes:  # a layer refuses here what its tool's version cannot do
        planned_commands(prepared, each)
    return prepared


def execute(
    prepared: Prepared,
    argv: tuple[str, ...],
    progress: Progress,
    *,
    echo_stdout: bool = False,
    again: bool = False,
) -> Result:
    """Carry the plan out, or (`again`) what an unfinished run lacks of it. The run directory is
    complete when this returns, also after a failure or a signal.
    """
    if prepared.rank.world > 1 and not prepared.rank.leads:
        from profharness.measure import rank_exchange as joining

        return joining.follow(prepared, echo_stdout=echo_stdout)
    recorder = (
        resuming.reopen(prepared)
        if again
        else Recorder(RunDir.create(prepared.root), _manifest(prepared, argv))
    )
    run = recorder.run
    try:
        with Sampler(run, prepared.request, prepared.host, recorder) as sampler:
            if prepared.scan is not None:
                status = scan_run.run(prepared, prepared.scan, Watch(recorder, sampler, progress))
            else:
                status = command_run.run(prepared, recorder, sampler, echo_stdout=echo_stdout)
    except BaseException as error:
        recorder.set_ended(error)
        raise
    _finish(recorder, status)
    return Result(run, status, unwritten=recorder.unwritten)


# ---------------------------------------------------------------- preparing and finishing


def _layer_names(request: Request) -> tuple[str, ...]:
    return tuple(name for name in request.profile if name not in ("telemetry", "none"))


def _counting(request: Request, chosen: tuple[Layer, ...], found: Environment) -> Counting | None:
    """Which layer collects the counters asked for, and in which passes. Raises UsageError for names
    that the devices lack.
    """
    if not request.pmc:
        return None
    layer = next(layer for layer in chosen if layer.about.counts)
    return Counting(
        layer, counters.groups(request.pmc, found, wrappers_dir()), counters.assumption(found)
    )


def _files_of(request: Request) -> tuple[Path, ...]:
    """Folders of what a scan's workload reads."""
    named = (*request.models, request.inputs, request.topology)
    return (
        tuple(Path(name).absolute().parent for name in named if name and Path(name).exists())
        if not request.command
        else ()
    )


def _command_python(command: tuple[str, ...]) -> str:
    """The interpreter that the command names, when it starts with one."""
    return command[0] if command and Path(command[0]).name.startswith("python") else ""


def _probe(launcher: Launcher, python: str, *, dry: bool) -> Environment:
    try:
        return environment.parse(launcher.capture(layers.probe_command(python), PROBE_S))
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
            raise Unavailable(
                f"{layer.name} is not on this node ({what})"
                if hint
                else f"--profile {layer.name} cannot be used here",
                hint or what,
            )


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


def _manifest(prepared: Prepared, argv: tuple[str, ...]) -> Manifest:
    request = prepared.request
    chosen = layers.named(_layer_names(request))
    settings: dict[str, object] = msgspec.to_builtins(request)
    return Manifest(
        id=prepared.root.name,
        created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        profharness=__version__,
        kind="command" if request.command else "scan",
        argv=argv,
        cwd=str(Path.cwd()),
        command=request.command,
        scan=None
        if prepared.scan is None
        else ScanRecord(
            name=prepared.scan.name,
            item=prepared.scan.item,
            settings=settings,
            planned={plan.name: planned_keys(prepared.scan, plan) for plan in prepared.plan.passes},
        ),
        harness=harness_process.identify(),
        nodes=(prepared.environment.node(dict(os.environ)),),
        git=git_state(),
        capture=request.capture,
        step_range=request.step_range,
        container=request.container,
        layers=tuple(
            LayerOutcome(
                name=layer.name,
                available=state.available,
                version=state.version,
                why=state.why,
                facts=layer.about.facts,
            )
            for layer in chosen
            for state in [layer.probe(prepared.environment)]
        ),
        passes=tuple(pass_record(prepared, plan, "planned") for plan in prepared.plan.passes),
        ranks=prepared.rank.world,
        job=prepared.rank.job,
    )


def _finish(recorder: Recorder, status: int) -> None:
    stopped = any(record.state == "interrupted" for record in recorder.manifest.passes)
    state = "interrupted" if stopped else "done"
    recorder.update(
        state=state,
        exit_status=status,
        processes=read_hellos(recorder.run.hooks),
        clocks=read_clock_files(recorder.run),
    )
    clean_hellos(recorder.run.hooks)
