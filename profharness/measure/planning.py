"""From a request to a plan: ask the node what it has, check, and decide the passes. Nothing is
written.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from profharness import layers, scans
from profharness.errors import Unavailable, UsageError
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers import counters, exporter, planned_node
from profharness.layers.clashes import Planned, clashes
from profharness.layers.contract import Layer, framework_of
from profharness.layers.device_counters import NAME as COUNTING
from profharness.layers.device_counters import check_alone
from profharness.layers.planned_node import PlannedNode
from profharness.measure import ranks, schedule
from profharness.measure.caps.asked import asked_caps
from profharness.measure.containers import PYTHON, container_of, with_hosts_rocm
from profharness.measure.meeting.asking import AskedOnce, Asking
from profharness.measure.meeting.board import Board
from profharness.measure.pass_commands import planned_commands
from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.measure.schedule import OwnPasses, Schedule
from profharness.node import probe
from profharness.node.probe import Environment
from profharness.options import trace_ranks
from profharness.options.request import Request
from profharness.scans.contract import Scan

PROBE_S = 60.0
_OLD_PYTHON = (  # what Python 3.7 says to our programs, and older ones
    "cannot import name 'metadata' from 'importlib'",
    "SyntaxError: ",
)
_HOSTS_LIBRARIES = "/.singularity.d/libs/"  # where --rocm and --nv bind them in a container
_HERE = re.compile(r"\bhere\b")  # of a layer's reason, which is about another node then


def plan_run(
    request: Request,
    *,
    dry: bool = False,
    elsewhere: PlannedNode | None = None,
    starts: bool = True,
) -> RunPlan:
    """Check and plan. Raises UsageError or Unavailable before anything is written.

    A dry run needs neither tool nor device: what the probe cannot find is planned for all the same.
    One for `elsewhere` plans for that node, and refuses layers whose tools it does not have.
    Without `starts` a dry run starts nothing at all, the probe included: it shows what a request
    of somebody else would start.
    """
    rank = _rank(request)
    chosen = layers.named(layer_names(request))
    check_alone(request.profile, request.tool_arg, os.environ)
    if request.device_counters_from:
        exporter.check(request.device_counters_from, counts=COUNTING in request.profile)
    root = root_of(request, rank)
    container = container_of(
        request,
        (root, *_files_of(request)),
        dry=dry,
        kind=elsewhere.kind if elsewhere else "",
    )
    python = _python(request, in_container=container is not None)
    environment = Environment(host=socket.gethostname())
    if starts:
        asked = _Asked(request, root, rank, dry)
        container, python, environment = asked.settled(container, python, elsewhere)
    if elsewhere is not None:
        environment = planned_node.facts(elsewhere, environment)
        _require_tools(chosen, environment)
    scan = _scan(request, environment, rank) if request.axes or not request.command else None
    passes = _schedule(request, chosen, scan, environment, dry=dry)
    if not dry:
        _require(request, chosen, environment, in_container=container is not None)
    run_plan = RunPlan(
        request,
        root,
        rank,
        environment,
        LocalLauncher(container),
        python,
        passes,
        scan,
        elsewhere.about if elsewhere else "",
    )
    words = frozenset(  # a layer refuses here what its tool's version cannot do
        word
        for plan in passes.passes
        for line in planned_commands(run_plan, plan)
        for word in line.argv
    )
    if elsewhere is not None:
        return run_plan
    planned = Planned(chosen, _torch_of(request, scan, chosen), words)
    axes = {} if dry else request.axes
    return replace(run_plan, clashes=clashes(environment, planned), caps=asked_caps(axes))


def _rank(request: Request) -> RankInfo:
    """Raises UsageError for a rank that is to be traced and is none."""
    rank = ranks.detect(os.environ, os.getppid(), run_id=request.run_id, named=bool(request.output))
    if not rank.apart:
        trace_ranks.check(request.trace_ranks, max(rank.world, request.ranks))
    return rank


@dataclass(frozen=True)
class _Asked:
    """Who asks the node for what it has, and for which run. Of several ranks the leader of the node
    asks, unless this is a dry run.
    """

    request: Request
    root: Path
    rank: RankInfo
    dry: bool

    def probed(self, container: Apptainer | None, python: str) -> tuple[str, Environment]:
        """The interpreter that our programs around the workload run under, and the facts of the
        node. A command whose own is too old for them is started all the same, with this one around
        it.
        """
        launcher = self._launcher(container)
        try:
            return python, self._of_rank(probe_node(launcher, python, dry=self.dry))
        except _TooOld:
            if self.request.python or container is not None:
                raise
        probed = probe_node(launcher, sys.executable, dry=self.dry)
        return sys.executable, self._of_rank(probed)

    def settled(
        self, container: Apptainer | None, python: str, elsewhere: PlannedNode | None
    ) -> tuple[Apptainer | None, str, Environment]:
        """As `probed`; the container has the host's ROCm where its image was seen to lack one, and
        the devices of this node are those that count.
        """
        python, environment = self.probed(container, python)
        if container is None or elsewhere is not None or not environment.lacks_rocm:
            return container, python, environment
        helped = with_hosts_rocm(container, self.request)
        if helped == container:
            return container, python, environment
        return helped, *self.probed(helped, python)

    def _launcher(self, container: Apptainer | None) -> Asking:
        launcher = LocalLauncher(container and _without_new_folders(container))
        rank = RankInfo() if self.dry else self.rank
        board = Board.at(self.root, rank, named=bool(self.request.output))
        return AskedOnce(launcher, board, rank)

    def _of_rank(self, environment: Environment) -> Environment:
        """A launcher may bind each rank to CPUs of its own, whoever asked."""
        if self.dry or self.rank.world == 1 or self.rank.leads_node:
            return environment
        own = tuple(sorted(os.sched_getaffinity(0)))
        return msgspec.structs.replace(environment, cpus_allowed=own)


def _scan(request: Request, environment: Environment, rank: RankInfo) -> Scan:
    """Raises UsageError where several processes were started, and as the scan does."""
    scan = scans.create(request, environment)
    if rank.world > 1:
        raise UsageError(
            f"a scan is one process, but {rank.world} were started",
            "start it once, or profile a command: -- python train.py",
        )
    return scan


def _torch_of(
    request: Request, scan: Scan | None, chosen: Sequence[Layer]
) -> Literal["yes", "maybe", "no"]:
    """Whether torch is imported by what runs under the probed interpreter."""
    if scan is not None and not request.command:
        return "yes" if "torch" in map(framework_of, scan.backends) else "no"
    is_asked = any(layer.name == "torch" for layer in chosen)
    if not _command_python(request.command):  # srun, or a script: elsewhere, or another torch
        return "maybe" if is_asked else "no"
    return "yes" if is_asked else "maybe"


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
    own = own_passes(request, chosen, environment)
    if scan is not None:
        return schedule.plan_scan(chosen, scan.backends, own)
    return schedule.plan_command(
        chosen,
        bare=request.bare,
        allowed=request.passes,
        agreed=request.yes,
        own=own,
        dry=dry,
    )


def own_passes(
    request: Request, chosen: tuple[Layer, ...], environment: Environment
) -> tuple[OwnPasses, ...]:
    """What was asked for that has passes of its own: counters, samples, thread traces. Raises
    UsageError for names of counters that the devices lack.
    """
    return (*_counting(request, chosen, environment), *_purposes(request, chosen))


def _counting(
    request: Request, chosen: tuple[Layer, ...], environment: Environment
) -> tuple[OwnPasses, ...]:
    """Which layer collects the counters asked for, and in which passes. Raises UsageError for names
    that the devices lack.
    """
    if not request.pmc:
        return ()
    wanted = {"pmc", "replay_mode"} if request.replay_mode else {"pmc"}
    layer = next(layer for layer in chosen if wanted <= layer.about.honours)
    groups = counters.groups(request.pmc, environment, wrappers_dir())
    assumed = counters.assumption(environment)
    return (OwnPasses(layer, groups, assumed, replayed=request.replay_mode == "kernel"),)


def _purposes(request: Request, chosen: Sequence[Layer]) -> tuple[OwnPasses, ...]:
    """What was asked for that a layer records in a pass of its own, counters apart."""
    return tuple(
        OwnPasses(layer, purpose=purpose)
        for layer in chosen
        for purpose in layer.about.purposes
        if getattr(request, purpose.option)
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


class _TooOld(Unavailable):
    """The interpreter cannot run our programs."""


def probe_node(launcher: Asking, python: str, *, dry: bool) -> Environment:
    """The facts of the node. Raises Unavailable where the probe fails, unless it is a dry run and
    the interpreter is not too old either.
    """
    try:
        return probe.parse(launcher.capture(layers.probe_command(python), PROBE_S))
    except Unavailable as error:
        if any(words in error.message for words in _OLD_PYTHON):
            raise _TooOld(
                f"{python} is older than Python 3.8, which the programs need that measure beside "
                "or inside the workload",
                "name another with --python",
            ) from error
        if dry:
            return Environment(host=socket.gethostname())
        if _HOSTS_LIBRARIES in error.message:
            raise Unavailable(
                error.message,
                "the host's ROCm libraries do not fit the image: --container-gpu none leaves them "
                "out",
            ) from error
        raise


def _require(
    request: Request, chosen: Sequence[Layer], environment: Environment, *, in_container: bool
) -> None:
    """Raises Unavailable for what this node lacks: a layer (what hooks into a program is only
    asked of Python), an exporter of counters, the command.
    """
    _require_layers(request, chosen, environment)
    if request.device_counters_from:
        exporter.require(request.device_counters_from)
    if not in_container:
        _require_program(request.command)


def _require_layers(request: Request, chosen: Sequence[Layer], environment: Environment) -> None:
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


def _require_tools(chosen: Sequence[Layer], planned: Environment) -> None:
    """Raises Unavailable for a layer whose tool the node that is planned for does not have."""
    for layer in chosen:
        state = layer.probe(planned)
        if layer.about.scope == "prefix" and not state.available:
            why, _, hint = state.why.partition("\n")
            raise Unavailable(
                f"{layer.name} is not on such a node ({_HERE.sub('there', why)})",
                hint or "plan for another node, or for another layer",
            )


def _require_program(command: Sequence[str]) -> None:
    if command and shutil.which(command[0]) is None:
        raise Unavailable(
            f"{command[0]}: no such program here",
            "check the spelling, the PATH, or the container",
        )


def root_of(request: Request, rank: RankInfo) -> Path:
    """The run directory: as asked, or a new one named by job or time and by program (where another
    run has that name as this one begins, it gets a number).
    """
    if request.output:
        return Path(request.output).absolute()
    name, base = name_of(request), runs_folder()
    if job := rank.job or request.run_id:
        return base / f"{job}-{name}"
    return base / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{name}"


def name_of(request: Request) -> str:
    """What the name of a run ends in: as asked, or its program or scan."""
    return request.name or (Path(request.command[0]).name if request.command else request.scan)


def runs_folder() -> Path:
    """Where runs lie that were given no place."""
    return Path(os.environ.get("PROFHARNESS_OUTPUT", "traces")).absolute()
