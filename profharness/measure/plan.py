"""A run as it was decided: what the dry run prints and the engine carries out, down to each command
line.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.launchers import Launcher
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers import around
from profharness.layers.clashes import Clash
from profharness.layers.contract import Where
from profharness.measure.caps.planning import CapPlan
from profharness.measure.ranks import RankInfo
from profharness.measure.schedule import Schedule
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.rundir import spill
from profharness.rundir.paths import RunDir
from profharness.scans.contract import Point, Scan
from profharness.supervise.pass_plan import PassPlan
from profharness.workers.pool import WorkerSetup


@dataclass(frozen=True)
class RunPlan:
    """Everything decided before anything is written: the dry run prints it, `engine.execute`
    carries it out.

    `elsewhere` describes the node that a dry run plans for, empty where it is this one. `clashes`
    are what will keep a profiler from recording here, `caps` whose power caps are changed.
    """

    request: Request
    root: Path
    rank: RankInfo
    environment: Environment
    launcher: Launcher
    python: str
    schedule: Schedule
    scan: Scan | None
    elsewhere: str = ""
    clashes: tuple[Clash, ...] = ()
    caps: CapPlan | None = None

    @property
    def host(self) -> str:
        """The name of this node, as the probe read it."""
        return self.environment.host or socket.gethostname()

    def at(self, root: Path) -> RunPlan:
        """The same plan with another run directory, which lies in the same folder."""
        if root == self.root:
            return self
        return replace(self, root=root, launcher=self.launcher.renamed(self.root, root))

    @property
    def is_traced(self) -> bool:
        """Whether this rank is one that the layers stand around. What is to start the ranks plans
        for one of those; a rank that nobody can number is recorded.
        """
        starts_ranks = self.rank.world == 1 and self.request.ranks > 1
        traced = self.request.trace_ranks
        is_anyhow = starts_ranks or bool(self.rank.apart)
        return not traced or is_anyhow or self.rank.rank in traced

    @property
    def spare_executions(self) -> int | None:
        """How many more executions of a command were allowed than the schedule has; None where any
        number was, and for scans.
        """
        request = self.request
        if self.scan is not None or request.yes:
            return None
        # the bare pass that --bare asks for is allowed by that
        counted = sum(1 for plan in self.schedule.passes if plan.layers or not request.bare)
        return max((request.passes or 1) - counted, 0)

    @property
    def capture(self) -> str:
        """The capture window that was asked for.

        A server that profharness did not start has no steps. Without a window asked for, it is
        recorded from start to end, unless its hooks open a window for each level
        (`served_commands.LEVELS`); its records are cut to the levels on reading.
        """
        external = self.request.served and not self.request.managed
        return "all" if external and self.request.capture == "default" else self.request.capture

    def where(self, plan: PassPlan, *, is_worker: bool) -> Where:
        """Places for the layers of one pass."""
        # layers of a scan stand around an execution with all of its ranks
        world = max(self.rank.world, 1 if self.request.axes else self.request.ranks)
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
            groups=plan.groups,
            purpose=plan.purpose.name if plan.purpose else "",
            traced=self.is_traced,
            ranks=world,
            untraced=0 < len(self.request.trace_ranks) < world,
            spill=spill.folder(self.root, Path.cwd()),
        )


def points_of(scan: Scan, plan: PassPlan, backend: str) -> tuple[Point, ...]:
    """The backend's points: in a layer pass the same ones with few trials."""
    return (
        scan.profiled(backend)
        if plan.layers
        else tuple(point for point in scan.points if point.backend == backend)
    )


def planned_keys(scan: Scan, plan: PassPlan) -> tuple[str, ...]:
    """The keys of the points that a pass is to measure."""
    return tuple(point.key for backend in plan.targets for point in points_of(scan, plan, backend))


def worker_setup(
    run_plan: RunPlan, scan: Scan, plan: PassPlan, where: Where, backend: str
) -> WorkerSetup:
    """What the workers of one backend need in one pass."""
    return WorkerSetup(
        run=RunDir(run_plan.root),
        pass_name=plan.name,
        python=run_plan.python,
        wrappers=where.wrappers,
        workload=scan.workload(backend),
        backend=backend,
        cache_dir=_cache_dir(),
        isolate=run_plan.request.isolate,
        wrap=lambda command: around.wrap(plan.layers, command, where),
    )


def is_served(scan: Scan) -> bool:
    """Whether servers stand between the load and the models."""
    return scan.server(scan.backends[0]) is not None


def _cache_dir() -> Path:
    """Exported models and compile caches live outside the run, so that all passes and runs share
    them.
    """
    base = (
        os.environ.get("PROFHARNESS_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "profharness"
    )
    return Path(base)
