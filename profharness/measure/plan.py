"""A run as it was decided: what the dry run prints and the engine carries out, down to each command
line.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profharness.launchers import Launcher
from profharness.launchers.command import Command
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers import around
from profharness.layers.contract import Extras, Where
from profharness.layers.hooks import through_exec_hook, with_hooks
from profharness.measure import spill
from profharness.measure.ranks import RankInfo
from profharness.measure.schedule import PassPlan, Plan
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.rundir.manifest import PassRecord, PassState
from profharness.rundir.paths import RunDir
from profharness.scans.contract import Point, Scan
from profharness.workers import pool as workers


@dataclass(frozen=True)
class Prepared:
    """Everything decided before anything is written: the dry run prints it, `engine.execute`
    carries it out.
    """

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

    @property
    def capture(self) -> str:
        """As asked; a server of another's, which has no steps, is recorded whole where the hooks
        open no window for each level (`served_works.LEVELS`), and its records are cut by the
        levels' windows.
        """
        external = self.request.served and not self.request.serving.managed
        return "all" if external and self.request.capture == "default" else self.request.capture

    def where(self, plan: PassPlan, *, is_worker: bool) -> Where:
        """Places for the layers of one pass."""
        return Where(
            run_root=self.root,
            pass_name=plan.name,
            wrappers=wrappers_dir(),
            host=self.host,
            capture=self.capture,
            hook=self.request.hook,
            is_worker=is_worker,
            rank=self.rank.rank if self.rank.world > 1 else None,
            python=self.python,
            environment=self.environment,
            options=self.request.tracer,
            counters=plan.counters,
            spill=spill.folder(self.root, Path.cwd()),
        )


def points_of(scan: Scan, plan: PassPlan, backend: str) -> tuple[Point, ...]:
    """The backend's points: in a layer pass the same ones with few trials."""
    return (
        scan.profiled(backend)
        if plan.layers
        else tuple(point for point in scan.points if point.backend == backend)
    )


def pass_work(
    prepared: Prepared, scan: Scan, plan: PassPlan, where: Where, backend: str
) -> workers.PassWork:
    """What the workers of one backend need in one pass."""
    return workers.PassWork(
        run=RunDir(prepared.root),
        pass_name=plan.name,
        python=prepared.python,
        wrappers=where.wrappers,
        workload=scan.workload(backend),
        backend=backend,
        cache_dir=_cache_dir(),
        isolate=prepared.request.isolate,
        wrap=lambda command: around.wrap(plan.layers, command, where),
    )


def hooked_command(prepared: Prepared, where: Where) -> Command:
    """The user's command under the hooks, which mark steps in every pass."""
    command = with_hooks(Command(prepared.request.command), where)
    if prepared.rank.world > 1:
        command = command.with_env({"PROFHARNESS_RANK": str(prepared.rank.rank)})
    return through_exec_hook(command, where) if prepared.request.hook == "exec" else command


def wrapped_command(prepared: Prepared, plan: PassPlan) -> Command:
    """The user's command under the hooks and the pass's layers."""
    where = prepared.where(plan, is_worker=False)
    return around.wrap(plan.layers, hooked_command(prepared, where), where)


def planned_commands(prepared: Prepared, plan: PassPlan) -> tuple[Command, ...]:
    """What one pass would start, in its container if there is one: a worker per backend, or the
    command.
    """
    return tuple(prepared.launcher.composed(command) for command in _bare_commands(prepared, plan))


def _bare_commands(prepared: Prepared, plan: PassPlan) -> tuple[Command, ...]:
    if prepared.scan is None:
        return (wrapped_command(prepared, plan),)
    if is_served(prepared.scan):
        from profharness.measure.served_commands import commands

        return commands(prepared, prepared.scan, plan)
    where = prepared.where(plan, is_worker=True)
    return tuple(
        pass_work(prepared, prepared.scan, plan, where, backend).command()
        for backend in plan.targets
    )


def is_served(scan: Scan) -> bool:
    """Whether servers stand between the load and the models."""
    return scan.server(scan.backends[0]) is not None


def _plain_commands(prepared: Prepared, plan: PassPlan, where: Where) -> list[Command]:
    """What the pass's layers are put around."""
    scan = prepared.scan
    if scan is None:
        return [hooked_command(prepared, where)]
    if is_served(scan):
        from profharness.measure.served_commands import server_command

        return [server_command(prepared, scan, plan, label) for label in plan.targets]
    return [pass_work(prepared, scan, plan, where, backend).plain() for backend in plan.targets]


def planned_extras(prepared: Prepared, plan: PassPlan) -> tuple[Extras, tuple[Command, ...]]:
    """What must lie ready for one pass, and what its tools run afterwards."""
    where = prepared.where(plan, is_worker=prepared.scan is not None)
    each = [
        around.extras(plan.layers, command, where)
        for command in _plain_commands(prepared, plan, where)
    ]
    joined = Extras(
        files=tuple(file for one in each for file in one.files),
        notes=tuple(note for one in each for note in one.notes),
        cut=next((one.cut for one in each if one.cut), ""),
    )
    return joined, tuple(command for layer in plan.layers for command in layer.follow_up(where))


def pass_record(prepared: Prepared, plan: PassPlan, state: PassState, **facts: Any) -> PassRecord:
    """The manifest's record of a pass."""
    return PassRecord(
        name=plan.name,
        layers=plan.layer_names,
        counters=plan.counters,
        perturbing=plan.perturbing,
        state=state,
        cut=planned_extras(prepared, plan)[0].cut if plan.layers else "",
        **facts,
    )


def difference(command: Command) -> dict[str, str]:
    """What was set for the command; unset names are left out."""
    return {name: value for name, value in command.env.items() if value is not None}


def _cache_dir() -> Path:
    """Exported models and compile caches live outside the run, so that all passes and runs share
    them.
    """
    base = (
        os.environ.get("PROFHARNESS_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "profharness"
    )
    return Path(base)
