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
    }
    assert detect(both).rank == 3
