"""Ranks that srun starts with each of its plug-ins for MPI: in this machine's Slurm, and in Slurm 24,
whose plug-in for Cray sets more.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.measure.test_ranks import MPI, STEP
from tests.slurm.cluster import ALL_ON_24, Cluster
from tests.slurm.jobs import NAME, done, exit_status, manifest, start, submitted

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

PLUGINS = ("none", "pmi2", "pmix", "cray_shasta")
SHASTA = {"cluster": "cray_shasta of 22.05", "slurm24": "cray_shasta"}
"""By the cluster, which of the recorded environments its plug-in for Cray has at least."""
WAIT_S = 60
TELLS = """\
import json, os, socket
from profharness.measure.ranks import detect
mine = detect(os.environ)
with open(f"rank-{os.environ['SLURM_PROCID']}.json", "w") as file:
    told = {"host": socket.gethostname(), "rank": mine.rank, "local": mine.local_rank}
    json.dump({**told, "job": mine.job, "variables": sorted(os.environ)}, file)
raise SystemExit(mine.rank)
"""
"""What a rank says of itself: its host, and what the harness makes of the launcher's variables."""


def srun(cluster: Cluster, mpi: str, *options: str) -> tuple[str, ...]:
    """Skips where it has no such plug-in."""
    if mpi not in cluster.client("srun", "--mpi=list").split():
        pytest.skip(f"this Slurm has no plug-in {mpi}")
    run = ("srun", f"--mpi={mpi}", *options, sys.executable, "-m", "profharness", "run", "--quiet")
    run = (*run, "--telemetry", "cpu", "--rank-limit", str(WAIT_S))
    return (*run, "--", sys.executable, "-c", TELLS)


def ranks_by_node(folder: Path, variables: set[str]) -> dict[str, list[int]]:
    """Fails where the four ranks of a step did not make one run, which says of each what it says of
    itself, or where one lacks these variables.
    """
    told = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(4)]
    assert all(variables <= set(one["variables"]) for one in told), told
    (name,) = (path.parent.name for path in (folder / "traces").glob("*/manifest.json"))
    assert [(one["rank"], f"{one['job']}-{NAME}") for one in told] == [(n, name) for n in range(4)]
    run = manifest(folder, name)
    assert (run.ranks, run.state) == (4, "done")
    assert not {one.id for one in run.findings} & {"rank-lost", "ranks-apart"}
    ended = sorted((one.rank, one.host, one.exit_status) for one in run.rank_outcomes)
    assert ended == [(rank, one["host"], rank) for rank, one in enumerate(told)]
    assert sorted((one.rank, one.host) for one in run.processes) == [row[:2] for row in ended]
    begins = [one.start_boot_ns for one in run.rank_outcomes]
    assert max(begins) - min(begins) < WAIT_S * 1e9
    nodes = {
        host: [one["rank"] for one in told if one["host"] == host]
        for host in sorted({one["host"] for one in told})
    }
    local = {host: [told[rank]["local"] for rank in ranks] for host, ranks in nodes.items()}
    assert local == {host: list(range(len(ranks))) for host, ranks in nodes.items()}
    sampled = {path.stem for path in (folder / "traces" / name / "telemetry").glob("*.parquet")}
    assert sampled == set(nodes)
    return nodes


def expected(slurm: str, mpi: str) -> set[str]:
    return {*STEP, *MPI[SHASTA[slurm] if mpi == "cray_shasta" else mpi]}


@pytest.mark.parametrize("mpi", PLUGINS)
@pytest.mark.parametrize("slurm", ["slurm24"] if ALL_ON_24 else list(SHASTA))
def test_of_a_script_they_make_one_run(
    slurm: str, mpi: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The exit status of a step is that of its last rank."""
    cluster: Cluster = request.getfixturevalue(slurm)
    script = tmp_path / "job.sh"
    head = "#!/bin/bash\n#SBATCH -N2 -n4 --ntasks-per-node=2\n"
    script.write_text(f"{head}{shlex.join(srun(cluster, mpi))}\n")
    job = submitted(cluster, tmp_path, str(script))
    status = exit_status(cluster, job)
    assert status == 3, (tmp_path / f"slurm-{job}.out").read_text()
    nodes = ranks_by_node(tmp_path, expected(slurm, mpi))
    assert nodes == {"n1": [0, 1], "n2": [2, 3]}


@pytest.mark.parametrize("mpi", PLUGINS)
def test_alone_they_make_one_run_however_many_a_node_has(
    slurm24: Cluster, mpi: str, tmp_path: Path
) -> None:
    """Which is 3 and 1."""
    status, _, err = done(start(slurm24, tmp_path, srun(slurm24, mpi, "-N2", "-n4")))
    assert status == 3, err
    assert ranks_by_node(tmp_path, expected("slurm24", mpi)).keys() == {"n1", "n2"}
