"""Which rank this harness is when srun, mpirun or torchrun starts it several times
(docs/run-directory.md#ranks). Pure.

All ranks join one run directory, named from the job and its step. The lowest local rank of a node
owns its sampler; global rank 0 owns the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# (global rank, number of ranks, local rank, ranks on this node, identity of the job step) as each
# launcher names them
_LAUNCHERS: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
    ),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ("PMI_PORT",)),
    (
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_LOCALID",
        "",
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ),
)


@dataclass(frozen=True)
class RankInfo:
    """`job` is empty for a single process; otherwise all ranks of one step have the same."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    job: str = ""

    @property
    def leads(self) -> bool:
        """Owns the manifest."""
        return self.rank == 0

    @property
    def leads_node(self) -> bool:
        """Owns the node's sampler and clock snapshots."""
        return self.local_rank == 0


def detect(environment: Mapping[str, str], parent: int = 0) -> RankInfo:
    """From the variables of the first launcher that set them; `parent` is the launcher's pid.

    A single task is an ordinary run.
    """
    for rank, world, local, local_world, identity in _LAUNCHERS:
        if (
            _number(environment.get(world)) in (None, 0, 1)
            or _number(environment.get(rank)) is None
        ):
            continue
        parts = [environment[name] for name in identity if environment.get(name)]
        if parent and (environment.get(local_world) == environment[world] or not parts):
            parts.append(
                str(parent)
            )  # on one node the launcher's pid tells apart runs that reuse a port
        job = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-")
        return RankInfo(
            int(environment[rank]),
            int(environment[world]),
            _number(environment.get(local)) or 0,
            f"{rank.split('_', 1)[0].lower()}-{job}",
        )
    return RankInfo()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
