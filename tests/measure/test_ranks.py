from __future__ import annotations

import pytest

from profharness.measure.ranks import RankInfo, detect


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
        {"RANK": "3"},
        {"WORLD_SIZE": "4"},
    ],
)
def test_a_single_process_is_an_ordinary_run(environment: dict[str, str]) -> None:
    assert detect(environment) == RankInfo()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {
                "SLURM_PROCID": "5",
                "SLURM_STEP_NUM_TASKS": "8",
                "SLURM_LOCALID": "1",
                "SLURM_JOB_ID": "1234",
                "SLURM_STEP_ID": "7",
            },
            RankInfo(5, 8, 1, "slurm-1234-7"),
        ),
        (
            {
                "RANK": "1",
                "WORLD_SIZE": "2",
                "LOCAL_RANK": "1",
                "LOCAL_WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29500",
                "TORCHELASTIC_RUN_ID": "none",
            },
            RankInfo(1, 2, 1, "rank-none-127.0.0.1-29500-99"),
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "2",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "PMIX_NAMESPACE": "prte@1/2",
            },
            RankInfo(2, 4, 0, "ompi-prte-1-2"),
        ),
    ],
)
def test_each_launcher_names_rank_world_and_job(
    environment: dict[str, str], expected: RankInfo
) -> None:
    assert detect(environment, parent=99) == expected


def test_torchrun_wins_over_the_slurm_step_that_holds_it() -> None:
    both = {
        "SLURM_PROCID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "3",
        "MASTER_ADDR": "n1",
        "MASTER_PORT": "29500",
    }
    assert detect(both).rank == 3
    assert detect({**both, "TORCHELASTIC_RUN_ID": "none"}).rank == 3


STEP = {
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_ID": "2",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}
"""Rank 3 of `srun -N2 -n4`."""
MPI = {
    "none": {},
    "pmi2": {"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_JOBID": "77.2", "PMI_FD": "9"},
    "cray_shasta of 22.05": {"PALS_RANKID": "3", "PALS_NODEID": "1", "PALS_APID": "77.2"},
    "cray_shasta": {
        "PALS_RANKID": "3",
        "PALS_LOCAL_RANKID": "1",
        "PALS_NODEID": "1",
        "PALS_APID": "77.2",
        "PMI_RANK": "3",
        "PMI_LOCAL_RANK": "1",
        "PMI_SIZE": "4",
        "PMI_LOCAL_SIZE": "2",
        "PMI_UNIVERSE_SIZE": "4",
        "PMI_JOBID": "77",
        "PMI_SHARED_SECRET": "1234",
    },
    "pmix": {"PMIX_RANK": "3", "PMIX_NAMESPACE": "slurm.pmix.77.2", "PMIX_HOSTNAME": "n2"},
}


@pytest.mark.parametrize("kind", MPI)
def test_ranks_of_srun_join_over_nodes_whatever_its_mpi(kind: str) -> None:
    """The parent is another process on each node, so its pid must not name the job."""
    found = {detect({**STEP, **MPI[kind]}, parent) for parent in (25920, 8161)}
    assert found == {RankInfo(3, 4, 1, "slurm-77-2")}


def test_variables_by_hand_do_not_hide_the_step_that_they_repeat() -> None:
    by_hand = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}
    assert detect({**STEP, **by_hand}, 9) == RankInfo(3, 4, 1, "slurm-77-2")
    assert detect({**STEP, "RANK": "0", "WORLD_SIZE": "1"}).rank == 3


def test_a_job_that_is_queued_again_has_another_name() -> None:
    assert detect({**STEP, "SLURM_RESTART_COUNT": "0"}).job == "slurm-77-2"
    assert detect({**STEP, "SLURM_RESTART_COUNT": "1"}).job == "slurm-77-2-again1"


def test_the_innermost_launcher_answers_also_when_it_started_one_process() -> None:
    one = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}
    assert detect({**STEP, **one}) == RankInfo()


def hydra(rank: int, *, node: int) -> dict[str, str]:
    """Two processes on each of two nodes; the proxies of the nodes are the tasks of a step."""
    return {
        "SLURM_JOB_ID": "77",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_PROCID": str(node),
        "SLURM_LOCALID": "0",
        "PMI_RANK": str(rank),
        "PMI_SIZE": "4",
        "MPI_LOCALRANKID": str(rank % 2),
        "MPI_LOCALNRANKS": "2",
    }


def test_ranks_of_mpich_meet_over_nodes() -> None:
    assert [detect(hydra(rank, node=rank // 2), 100 + rank // 2) for rank in range(4)] == [
        RankInfo(rank, 4, rank % 2, "pmi-77-0") for rank in range(4)
    ]


def test_jobs_of_torchrun_without_a_name_are_told_apart_by_the_scheduler() -> None:
    torchrun = {
        "RANK": "1",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "n1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none",
    }
    first, second = ({**torchrun, "SLURM_JOB_ID": job} for job in ("77", "78"))
    assert detect(first, 9).job == "rank-none-n1-29500-77"
    assert detect(second, 9).job == "rank-none-n1-29500-78"
    assert detect({**first, "TORCHELASTIC_RESTART_COUNT": "2"}, 9).job.endswith("-77-again2")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {
                "FLUX_TASK_RANK": "3",
                "FLUX_TASK_LOCAL_ID": "1",
                "FLUX_JOB_SIZE": "4",
                "FLUX_JOB_ID": "fAbC",
                "PMI_RANK": "3",
                "PMI_SIZE": "4",
            },
            RankInfo(3, 4, 1, "flux-fAbC"),
        ),
        (
            {
                "PALS_RANKID": "3",
                "PALS_LOCAL_RANKID": "1",
                "PALS_LOCAL_SIZE": "2",
                "PALS_APID": "a-b-c",
                "PBS_JOBID": "12.host",
                "PMI_RANK": "3",
                "PMI_SIZE": "4",
                "PMI_LOCAL_RANK": "1",
            },
            RankInfo(3, 4, 1, "pals-a-b-c-12.host"),
        ),
        (
            {
                "MV2_COMM_WORLD_RANK": "3",
                "MV2_COMM_WORLD_SIZE": "4",
                "MV2_COMM_WORLD_LOCAL_RANK": "1",
                "MPIRUN_ID": "5",
            },
            RankInfo(3, 4, 1, "mv2-5"),
        ),
        (
            {
                "PMI_RANK": "3",
                "PMI_SIZE": "4",
                "MPI_LOCALRANKID": "1",
                "MPI_LOCALNRANKS": "2",
                "I_MPI_HYDRA_UUID": "e0f1",
            },
            RankInfo(3, 4, 1, "pmi-e0f1"),
        ),
    ],
)
def test_other_launchers_of_large_machines(environment: dict[str, str], expected: RankInfo) -> None:
    assert {detect(environment, parent) for parent in (25920, 8161)} == {expected}


def untold(rank: int, *, node: int) -> dict[str, str]:
    """MPICH over ssh, on two nodes: no variable is the same on both and names this start."""
    of_slurm = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS")
    found = hydra(rank, node=node)
    return {name: found[name] for name in found if name not in of_slurm}


def test_ranks_without_anything_in_common_are_runs_of_their_own() -> None:
    for rank in range(4):
        found = detect(untold(rank, node=rank // 2), 100 + rank // 2)
        assert (found.rank, found.world, found.job) == (0, 1, "")
        assert f"one of 4 processes (PMI_RANK={rank})" in found.apart
    one_node = {**untold(1, node=0), "MPI_LOCALNRANKS": "4"}
    assert detect(one_node, 9) == RankInfo(1, 4, 1, "pmi-9")


def test_a_name_of_the_run_or_of_its_directory_joins_them() -> None:
    of_node = [untold(rank, node=rank // 2) for rank in range(4)]
    for options, job in (({"run_id": "mine"}, "mine"), ({"named": True}, "")):
        assert [detect(one, 100 + at // 2, **options) for at, one in enumerate(of_node)] == [
            RankInfo(rank, 4, rank % 2, job) for rank in range(4)
        ]
    assert detect({**STEP, **MPI["none"]}, run_id="mine") == RankInfo(3, 4, 1, "mine")


def test_a_number_of_ranks_without_a_rank_is_said() -> None:
    found = detect({"PMI_SIZE": "4"}, 9)
    assert (found.world, found.rank) == (1, 0)
    assert "PMI_SIZE says that 4 processes were started" in found.apart
    assert not detect({"PMI_SIZE": "1"}, 9).apart
    assert not detect({}, 9).apart
