"""Which rank of how many this process is, by the variables of torchrun, Slurm or Open MPI; and the
group of all.

The scripts that the field trains with read the same ones: MASTER_ADDR, MASTER_PORT and
RANK/WORLD_SIZE (torchrun), SLURM_PROCID/SLURM_NPROCS or OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE.
"""

from __future__ import annotations

import sys
from typing import Any, List, Mapping, NamedTuple, Tuple

# rank, world size, local rank
FAMILIES: Tuple[Tuple[str, str, str], ...] = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NPROCS", "SLURM_LOCALID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
)


class Rank(NamedTuple):
    """`missing`: variables that a group of several would need and that are not set."""

    rank: int = 0
    world: int = 1
    local: int = 0
    missing: Tuple[str, ...] = ()


def find(environ: Mapping[str, str]) -> Rank:
    """The rank of this process; the first family of variables that is set decides."""
    for rank, world, local in FAMILIES:
        if environ.get(rank, "").isdigit() and environ.get(world, "").isdigit():
            absent = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not environ.get(name)]
            place = environ.get(local, "")
            return Rank(
                int(environ[rank]),
                int(environ[world]),
                int(place) if place.isdigit() else int(environ[rank]),
                tuple(absent),
            )
    return Rank()


def join(torch: Any, rank: Rank, device: Any) -> bool:
    """Enter the group of several ranks: RCCL or NCCL on GPUs, gloo on CPUs. False where this
    process is alone.

    As the scripts of the field do, a missing address is warned about, and the process trains alone.
    """
    if rank.world == 1:
        return False
    if rank.missing:
        names: List[str] = list(rank.missing)
        print(
            "warning: rank %d of %d trains alone: %s not set"
            % (rank.rank, rank.world, ", ".join(names)),
            file=sys.stderr,
        )
        return False
    torch.distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo", rank=rank.rank, world_size=rank.world
    )
    return True
