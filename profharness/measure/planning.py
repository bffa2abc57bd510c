"""From a request to a plan: ask the node what it has, check, and decide the passes. Nothing is
written.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from profharness import layers, scans
from profharness.errors import Unavailable, UsageError
from profharness.launchers import Launcher
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers import counters
from profharness.layers.contract import Layer
from profharness.layers.device_counters import check_alone
from profharness.measure import ranks, schedule
from profharness.measure.containers import PYTHON, container_of
from profharness.measure.pass_commands import planned_commands
from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.measure.schedule import Counting, Schedule
from profharness.node import probe
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.scans.contract import Scan

PROBE_S = 60.0


def plan_run(request: Request, *, dry: bool = False) -> RunPlan:
    """Check and plan. Raises UsageError or Unavailable before anything is written.

    A dry run needs neither tool nor device: what the probe cannot find is planned for all the same.
    """
    rank = ranks.detect(os.environ, os.getppid())
    chosen = layers.named(layer_names(request))
    check_alone(request.profile, request.tool_arg)
    root = _root(request, rank)
    container = container_of(request, (root, *_files_of(request)), dry=dry)
    python = _python(request, in_container=container is not None)
    environment = _probe(
        LocalLauncher(container and _without_new_folders(container)), python, dry=dry
    )
    scan = None if request.command else scans.create(request, environment)
    if scan is not None and rank.world > 1:
        raise UsageError(
            f"a scan is one process, but {rank.world} were started",
            "start it once, or profile a command: -- python train.py",
        )
    passes = _schedule(request, chosen, scan, environment, dry=dry)
    if not dry:
        _require(request, chosen, environment)
        if container is None:
            _require_program(request.command)
    run_plan = RunPlan(
        request, root, rank, environment, LocalLauncher(container), python, passes, scan
    )
    for plan in passes.passes:  # a layer refuses here what its tool's version cannot do
        planned_commands(run_plan, plan)
    return run_plan


def layer_names(request: Request) -> tuple[str, ...]:
    """The layers asked for; telemetry is none of them."""
    return tuple(name for name in request.profile if name not in ("telemetry", "none"))


def _schedule(
    request: Request,
    chosen: tuple[Layer, ...],
    scan: Scan | None,
    environment: Environment,
    *,
    dry: bool,
) -> Schedule:
    """The passes, those for hardware counters included. Raises UsageError where they are more than
    was allowed.
    """
    counting = _counting(request, chosen, environment)
    if scan is not None:
        return schedule.plan_scan(chosen, scan.backends, counting)
    return schedule.plan_command(
        chosen,
        bare=request.bare,
        allowed=request.passes,
        agreed=request.yes,
        counting=counting,
        dry=dry,
    )


def _counting(
    request: Request, chosen: tuple[Layer, ...], environment: Environment
) -> Counting | None:
    """Which layer collects the counters asked for, and in which passes. Raises UsageError for names
    that the devices lack.
    """
    if not request.pmc:
        return None
    layer = next(layer for layer in chosen if layer.about.counts)
    return Counting(
        layer,
        counters.groups(request.pmc, environment, wrappers_dir()),
        counters.assumption(environment),
    )


def _files_of(request: Request) -> tuple[Path, ...]:
    """Folders of what a scan's workload reads."""
    named = (*request.models, request.inputs, request.topology)
    return (
        tuple(Path(name).absolute().parent for name in named if name and Path(name).exists())
        if not request.command
        else ()
    )


def _python(request: Request, *, in_container: bool) -> str:
    """The interpreter of the workload: as asked, else the command's, else the container's or our
    own.
    """
    return (
        request.python
        or _command_python(request.command)
        or (PYTHON if in_container else sys.executable)
    )


def _without_new_folders(container: Apptainer) -> Apptainer:
    """As the probe can start it: folders that the run will make cannot be bound yet."""
    return replace(
        container, folders=tuple(folder for folder in container.folders if folder.exists())
    )


def _command_python(command: tuple[str, ...]) -> str:
    """The interpreter that the command names, when it starts with one."""
    return command[0] if command and Path(command[0]).name.startswith("python") else ""


def _probe(launcher: Launcher, python: str, *, dry: bool) -> Environment:
    try:
        return probe.parse(launcher.capture(layers.probe_command(python), PROBE_S))
    except Unavailable:
        if dry:
            return Environment(host=socket.gethostname())
        raise


def _require(request: Request, chosen: Sequence[Layer], environment: Environment) -> None:
    """Raises Unavailable for a layer that this node lacks; what hooks into a program is only asked
    of Python.
    """
    hooks_attach = not request.command or bool(_command_python(request.command))
    for layer in chosen:
        if layer.about.scope == "hook" and not hooks_attach:
            continue
        state = layer.probe(environment)
        if not state.available:
            # the first line of why says what is missing, the others what to do
            reason, _, hint = state.why.partition("\n")
            raise Unavailable(
                f"{layer.name} is not on this node ({reason})"
                if hint
                else f"--profile {layer.name} cannot be used here",
                hint or reason,
            )


def _require_program(command: Sequence[str]) -> None:
    if command and shutil.which(command[0]) is None:
        raise Unavailable(
            f"{command[0]}: no such program here",
            "check the spelling, the PATH, or the container",
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
