"""Several runs in one step of a job, and ranks that nobody can tell apart: real processes under the
variables that a launcher sets. Each execution of the command is in one run, and none is lost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

Started = subprocess.Popen[str]

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("STARTS_ROUNDS", "5"))
_LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "PALS_", "MPI_", "FLUX_", "MV2_", "PROFHARNESS_")


def step(rank: int, world: int, number: int = 2) -> dict[str, str]:
    """Of a rank of `srun`."""
    return {
        "SLURM_JOB_ID": "77",
        "SLURM_STEP_ID": str(number),
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(world),
    }


def untold(rank: int) -> dict[str, str]:
    """Of a rank of MPICH's over ssh: nothing names the start, and half of the ranks are here."""
    return {
        "PMI_RANK": str(rank),
        "PMI_SIZE": "2",
        "MPI_LOCALRANKID": "0",
        "MPI_LOCALNRANKS": "1",
    }


def start(folder: Path, variables: dict[str, str], *options: str, rounds: int = 1) -> Started:
    """`profharness run` so many times, one after the other, as a loop in a job script does. Each
    execution of the command adds a line to `executions`.
    """
    asked = ["--telemetry", "off", "--quiet", "--rank-limit", "300", *options]
    command = ["sh", "-c", f"echo $$ >> '{folder}/executions'"]
    words = [sys.executable, "-m", "profharness", "run", *asked, "--", *command]
    loop = 'n=$1; shift; for i in $(seq "$n"); do "$@" || exit; done'
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_LAUNCHERS) and name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }
    return subprocess.Popen(
        ["sh", "-c", loop, "sh", str(rounds), *words],
        env={**clean, **variables, "PROFHARNESS_OUTPUT": str(folder / "traces")},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(starts: list[Started]) -> list[tuple[int, str]]:
    """Exit statuses with what was said."""
    try:
        said = [one.communicate(timeout=900)[1] for one in starts]
    finally:
        for one in starts:
            one.kill()
    return [(one.returncode, text) for one, text in zip(starts, said, strict=True)]


def outcomes(folder: Path) -> dict[str, list[int]]:
    """The ranks of each run by its directory; all runs ended well."""
    found = {}
    for path in sorted(folder.glob("*/manifest.json")):
        told = json.loads(path.read_text())
        assert (told["state"], told["exit_status"]) == ("done", 0), path
        found[path.parent.name] = [one["rank"] for one in told.get("rank_outcomes", [])]
    return found


def findings(folder: Path) -> Counter[str]:
    return Counter(
        one["id"]
        for path in folder.glob("*/manifest.json")
        for one in json.loads(path.read_text())["findings"]
    )


def executions(folder: Path) -> int:
    return len((folder / "executions").read_text().splitlines())


def test_a_loop_within_a_step_makes_a_run_of_all_ranks_each_time(tmp_path: Path) -> None:
    done = ended([start(tmp_path, step(rank, 2), rounds=2) for rank in range(2)])
    assert [status for status, _ in done] == [0, 0], done
    assert outcomes(tmp_path / "traces") == {"slurm-77-2-sh": [0, 1], "slurm-77-2-sh-2": [0, 1]}
    assert executions(tmp_path) == 4
    assert not findings(tmp_path / "traces")


def test_ranks_that_nobody_can_tell_are_runs_of_their_own_and_say_how_to_join(
    tmp_path: Path,
) -> None:
    done = ended([start(tmp_path, untold(rank)) for rank in range(2)])
    assert [status for status, _ in done] == [0, 0], done
    assert sorted(outcomes(tmp_path / "traces").values()) == [[], []]
    assert findings(tmp_path / "traces") == {"ranks-apart": 2}
    told = json.loads(next((tmp_path / "traces").glob("*/manifest.json")).read_text())
    assert "--run-id" in told["findings"][0]["advice"]
    assert executions(tmp_path) == 2


@pytest.mark.parametrize("options", [("--run-id", "mine"), ("--output", "traces/mine-sh")])
def test_a_name_joins_them(tmp_path: Path, options: tuple[str, str]) -> None:
    done = ended([start(tmp_path, untold(rank), *options) for rank in range(2)])
    assert [status for status, _ in done] == [0, 0], done
    assert outcomes(tmp_path / "traces") == {"mine-sh": [0, 1]}
    assert not findings(tmp_path / "traces")
    # both are told that they lead a node, and are on one: it has one sampler, which had nothing to say
    (log,) = (tmp_path / "traces" / "mine-sh" / "telemetry").glob("*.log")
    assert log.read_text() == ""


def test_a_rank_whose_rank_0_never_begins_measures_by_itself(tmp_path: Path) -> None:
    """The last --rank-limit counts."""
    ((status, said),) = ended([start(tmp_path, step(1, 2), "--rank-limit", "0.5")])
    assert status == 0, said
    assert list(outcomes(tmp_path / "traces")) == ["slurm-77-2-sh-rank1"]
    assert findings(tmp_path / "traces") == {"ranks-apart": 1}
    assert executions(tmp_path) == 1


def test_twenty_starts_at_once_lose_no_run(tmp_path: Path) -> None:
    """Four steps of five ranks, each of which starts its next run as soon as its last one ended;
    the steps share the folder of all runs. `make starts` runs more rounds.
    """
    steps, world = range(4), 5
    done = ended(
        [
            start(tmp_path, step(rank, world, number), rounds=ROUNDS)
            for rank in range(world)
            for number in steps
        ]
    )
    assert [status for status, _ in done] == [0] * len(done), done
    assert outcomes(tmp_path / "traces") == {
        f"slurm-77-{number}-sh{f'-{turn}' if turn > 1 else ''}": list(range(world))
        for number in steps
        for turn in range(1, ROUNDS + 1)
    }
    assert executions(tmp_path) == len(steps) * world * ROUNDS
    assert not findings(tmp_path / "traces")
