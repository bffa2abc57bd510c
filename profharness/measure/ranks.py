"""Which rank this harness is when srun, mpirun or torchrun starts it several times
(docs/run-directory.md#ranks). Pure.

All ranks join one run directory, named from the job and its step. The lowest local rank of a node
owns its sampler; global rank 0 owns the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Variables = Mapping[str, str]


@dataclass(frozen=True)
class _Launcher:
    """The variables in which a launcher says who a process is; of several that it may set, the
    first one counts.

    `identity` is what its ranks share and other starts do not. Where it has nothing of the kind,
    the scheduler's step tells them apart. A process that lacks `mark` is another launcher's.
    """

    name: str
    rank: str
    world: tuple[str, ...]
    local: tuple[str, ...]
    on_node: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    mark: str = ""


_HAND = _Launcher(
    "rank",
    "RANK",
    ("WORLD_SIZE",),
    ("LOCAL_RANK",),
    ("LOCAL_WORLD_SIZE",),
    ("MASTER_ADDR", "MASTER_PORT"),
)
"""Set by a script, or by a launcher without a mark of its own, such as DeepSpeed's."""
_STEP = _Launcher(
    "slurm", "SLURM_PROCID", ("SLURM_STEP_NUM_TASKS",), ("SLURM_LOCALID",), mark="SLURM_STEP_ID"
)
_INNER = (
    _Launcher(
        "rank",
        "RANK",
        ("WORLD_SIZE",),
        ("LOCAL_RANK",),
        ("LOCAL_WORLD_SIZE",),
        ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
        "TORCHELASTIC_RUN_ID",
    ),
    _Launcher(
        "ompi",
        "OMPI_COMM_WORLD_RANK",
        ("OMPI_COMM_WORLD_SIZE",),
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE",),
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    _Launcher(
        "mv2",
        "MV2_COMM_WORLD_RANK",
        ("MV2_COMM_WORLD_SIZE",),
        ("MV2_COMM_WORLD_LOCAL_RANK",),
        ("MV2_COMM_WORLD_LOCAL_SIZE",),
        ("MPIRUN_ID",),
    ),
    # MPICH and Intel MPI: of those that speak PMI, only their launcher says the local rank so
    _Launcher(
        "pmi",
        "PMI_RANK",
        ("PMI_SIZE",),
        ("MPI_LOCALRANKID",),
        ("MPI_LOCALNRANKS",),
        ("I_MPI_HYDRA_UUID",),
        "MPI_LOCALRANKID",
    ),
    _Launcher(
        "flux",
        "FLUX_TASK_RANK",
        ("FLUX_JOB_SIZE",),
        ("FLUX_TASK_LOCAL_ID",),
        identity=("FLUX_JOB_ID",),
    ),
)
_OUTER = (
    # before what Slurm's plug-ins set beside it: with Cray's or `--mpi=pmi2`, PMI_RANK and PMI_SIZE
    _STEP,
    _Launcher(
        "pals",
        "PALS_RANKID",
        ("PALS_SIZE", "PMI_SIZE"),
        ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
        ("PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"),
        ("PALS_APID",),
    ),
    _Launcher(
        "pmi", "PMI_RANK", ("PMI_SIZE",), ("PMI_LOCAL_RANK",), ("PMI_LOCAL_SIZE",), ("PMI_JOBID",)
    ),
    _HAND,
)
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
_RESTARTS = ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")


@dataclass(frozen=True)
class RankInfo:
    """`job` is empty for a single process, and where the ranks have nothing in common but the run
    directory that the user named; otherwise all ranks of one step have the same.

    `apart` says why one of several processes is a run by itself, empty where it is none.
    `one_node`: the launcher says that all ranks are on this node.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    job: str = ""
    apart: str = ""
    one_node: bool = field(default=False, compare=False)

    @property
    def leads(self) -> bool:
        """Whether it owns the manifest."""
        return self.rank == 0

    @property
    def leads_node(self) -> bool:
        """Whether it owns the node's sampler and clock readings."""
        return self.local_rank == 0


def detect(
    environment: Variables, parent: int = 0, *, run_id: str = "", named: bool = False
) -> RankInfo:
    """From the variables of the innermost launcher, also where it started one process only, while a
    step around it has more; `parent` is the launcher's pid.

    A single task is an ordinary run. `run_id` is the name that the user gave the ranks, and `named`
    says that their run directory has one; otherwise ranks that have nothing in common are runs
    `apart`.
    """
    for launcher in _in_order(environment):
        rank, world = _number(environment, launcher.rank), _number(environment, *launcher.world)
        if rank is None or not world or (launcher.mark and launcher.mark not in environment):
            continue
        if world == 1:
            return RankInfo()
        local = _number(environment, *launcher.local) or 0
        together = _number(environment, *launcher.on_node) == world
        if run_id:
            return RankInfo(rank, world, local, run_id, one_node=together)
        parts = list(_identity(launcher, environment))
        if parent and together:
            # on one node the launcher's pid tells apart runs that reuse a port
            parts.append(str(parent))
        if not parts:
            own = f"{launcher.rank}={rank}"
            if not named:
                return RankInfo(apart=_apart(world, own))
            return RankInfo(rank, world, local, one_node=together)
        job = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-")
        return RankInfo(rank, world, local, f"{launcher.name}-{job}", one_node=together)
    return RankInfo(apart=_without_rank(environment))


def _apart(world: int, own: str) -> str:
    return (
        f"this is one of {world} processes ({own}), and no variable of their launcher says which "
        "of them belong together: each is a run of its own"
    )


def _without_rank(environment: Variables) -> str:
    """Why a process is a run by itself although a launcher says that it started several."""
    for name in ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_SIZE"):
        world = _number(environment, name)
        if world is not None and world > 1:
            return (
                f"{name} says that {world} processes were started, and no variable says which of "
                "them this is: each is a run of its own"
            )
    return ""


def _in_order(environment: Variables) -> Iterator[_Launcher]:
    """Who may have started this process, the innermost first: variables set by hand count as such
    where they name more ranks than the step around them has tasks.
    """
    yield from _INNER
    tasks, stated = _number(environment, *_STEP.world), _number(environment, *_HAND.world)
    if tasks is not None and stated is not None and stated > tasks:
        yield _HAND
    yield from _OUTER


def _identity(launcher: _Launcher, environment: Variables) -> Iterator[str]:
    """What the ranks of this start share: a job that is queued again has its number and steps anew,
    and torchrun calls every job `none` unless it is told a name.
    """
    own = [environment[name] for name in launcher.identity if environment.get(name)]
    job = next((environment[name] for name in _JOBS if environment.get(name)), "")
    yield from own
    if job and job not in own:
        yield job
    step = environment.get("SLURM_STEP_ID", "")
    if step and (launcher.name not in ("ompi", "mv2", "flux", "pals") or not own):
        yield step
    for name in _RESTARTS:
        if count := _number(environment, name):
            yield f"again{count}"


def _number(environment: Variables, *names: str) -> int | None:
    """The first of these variables that is set, where it is a number."""
    text = next((environment[name] for name in names if environment.get(name)), "")
    return int(text) if text.isdecimal() and text.isascii() else None
