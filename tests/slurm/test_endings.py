"""How runs begin and end under a real Slurm: each way to start them, and each way to lose them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.rundir.manifest import Manifest, decode
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import (
    NAME,
    SLEEPS,
    begun,
    done,
    ending,
    findings,
    only_job,
    start,
    words,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

KILLS_RANK_1 = """\
import os, signal, time
if os.environ["SLURM_PROCID"] == "1":
    os.kill({victim}, signal.SIGKILL)
"""
# of the processes between the command and srun's, the harness is the first of srun's step
HARNESS = """\
import os, signal
pid = os.getpid()
while os.environ["SLURM_PROCID"] == "1":
    parent = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    if "slurmstepd" in open(f"/proc/{parent}/comm").read():
        os.kill(pid, signal.SIGKILL)
    pid = parent
"""


Limited = tuple["subprocess.Popen[str]", Path]


def reported(cluster: Cluster, folder: Path, run: str) -> Manifest:
    """The run's record; fails where `report` cannot read the run."""
    line = (sys.executable, "-m", "profharness", "report", run)
    status, _, err = done(start(cluster, folder, line))
    assert status == 0, err
    return decode((folder / run / "manifest.json").read_bytes(), "manifest")


@pytest.fixture(scope="module", autouse=True)
def limited(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """A job with a time limit of a minute, which passes while other tests of this file run."""
    folder = tmp_path_factory.mktemp("limited")
    process = start(cluster, folder, words("--time-limit", "1", program=SLEEPS))
    yield process, folder
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        done(process)


def test_a_rank_whose_command_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    line = words(program=KILLS_RANK_1.format(victim="os.getpid()"))
    status, _, err = done(start(cluster, tmp_path, line))
    assert status == 137, err
    job = only_job(tmp_path)
    run = reported(cluster, tmp_path, f"traces/slurm-{job}-{NAME}")
    assert sorted(one.exit_status for one in run.rank_outcomes) == [0, 137]
    assert (ending(tmp_path, job).cause, ending(tmp_path, job).exit_status) == ("", 137)


def test_a_rank_whose_harness_is_killed_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    """The run says which, and rank 0 waits no longer than it was told."""
    line = words("--rank-limit", "3", program=HARNESS)
    status, _, err = done(start(cluster, tmp_path, line))
    assert status == 137, err
    job = only_job(tmp_path)
    run = reported(cluster, tmp_path, f"traces/slurm-{job}-{NAME}")
    assert [one.rank for one in run.rank_outcomes] == [0]
    (lost,) = (found for found in run.findings if found.id == "rank-lost")
    assert lost.message.startswith("rank 1 of 2 left no outcome")
    assert "rank-lost" in findings(tmp_path, job)


def test_scancel(cluster: Cluster, tmp_path: Path) -> None:
    process = start(cluster, tmp_path, words(program=SLEEPS))
    job = begun(tmp_path)
    cluster.client("scancel", job)
    status, _, err = done(process)
    assert (status, f"job {job} was cancelled" in err) == (143, True), err
    run = reported(cluster, tmp_path, f"traces/slurm-{job}-{NAME}")
    assert run.state == "interrupted"
    assert "cancelled" in findings(tmp_path, job)
    assert "time-limit" not in findings(tmp_path, job)


def test_the_real_time_limit(cluster: Cluster, limited: Limited) -> None:
    """Of which Slurm's signal is given up to a minute early."""
    process, folder = limited
    status, _, err = done(process)
    job = only_job(folder)
    assert (status, f"job {job} came to the end of its time" in err) == (143, True), err
    reported(cluster, folder, f"traces/slurm-{job}-{NAME}")
    assert "time-limit" in findings(folder, job)


def test_a_node_whose_daemon_is_killed_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """Of the node whose script is lost with it, the scheduler tells: test_waiting."""
    process = start(cluster, tmp_path, words(program=SLEEPS))
    try:
        job = begun(tmp_path)
        cluster.kill_node("n2")
        status, _, err = done(process)
        assert (status, f"job {job} ended because node n2 failed" in err) == (1, True), err
    finally:
        cluster.start_node("n2")
        cluster.await_idle()
    assert (ending(tmp_path, job).cause, ending(tmp_path, job).lost) == ("node-lost", "n2")
    run = reported(cluster, tmp_path, f"traces/slurm-{job}-{NAME}")
    assert run.state == "interrupted"
    assert findings(tmp_path, job) >= {"node-lost", "rank-lost", "run-incomplete"}
