"""`--dask slurm` whole: dask-jobqueue's SLURMCluster submits jobs to a stand-in for Slurm, whose
jobs are real Dask workers on this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from profharness.errors import Unavailable
from profharness.understand.many import spread
from profharness.understand.many.jobs import FileGroup
from profharness.understand.many.spread import dask_cluster
from profharness.understand.many.tables import tally_of
from tests import needs
from tests.fakes import stand_in_slurm
from tests.generated import Generated, generate

needs.packages("dask", "dask_jobqueue")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]
CONFIGURED = {"cores": 1, "processes": 1, "memory": "1GiB", "queue": "gpu", "walltime": "00:10:00"}
QUIET = {"dashboard_address": "127.0.0.1:0"}  # any free port


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Generated]:
    folder = tmp_path_factory.mktemp("ranks")
    return [
        generate(folder, f"rank{rank}.json", 2_000, "--seed", str(rank), "--rank", str(rank))
        for rank in range(8)
    ]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = stand_in_slurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    import dask
    import dask_jobqueue  # noqa: F401  brings the configuration that is changed here

    with dask.config.set(
        {f"jobqueue.slurm.{key}": value for key, value in CONFIGURED.items()}
        | {
            "jobqueue.slurm.local-directory": str(tmp_path),
            "jobqueue.slurm.scheduler-options": QUIET,
            "distributed.deploy.lost-worker-timeout": "1s",
        }
    ):
        yield folder
    for number in stand_in_slurm.running(folder):  # none, unless the test failed
        stand_in_slurm.kill(folder, number)


def wait_for(what, seconds: float = 60.0):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_metrics_by_the_command_line_through_jobs(ranks, tmp_path):
    """As a user calls it: configuration from the environment, answers equal to this machine's,
    every job cancelled at the end.
    """
    folder = stand_in_slurm.install(tmp_path / "slurm")
    configured = {
        f"DASK_JOBQUEUE__SLURM__{key.upper()}": str(value) for key, value in CONFIGURED.items()
    }
    environment = {
        **os.environ,
        **configured,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }
    words = [
        sys.executable,
        "-m",
        "profharness",
        "metrics",
        *(str(made.path) for made in ranks),
        "--json",
    ]
    here = subprocess.run([*words, "--processes", "1"], check=True, capture_output=True)
    there = subprocess.run(
        [*words, "--dask", "slurm", "--dask-workers", "2"],
        check=False,
        capture_output=True,
        env=environment,
        timeout=280,
    )
    assert there.returncode == 0, there.stderr.decode()
    assert json.loads(there.stdout) == json.loads(here.stdout)
    assert json.loads(there.stdout)["trace"]["kernels"] == 16_000
    assert sorted(stand_in_slurm.jobs(folder)) == [101, 102]
    script = (folder / "job-101.sh").read_text()
    assert "#SBATCH -p gpu" in script
    assert "distributed.cli.dask_worker" in script or "dask worker" in script
    wait_for(lambda: not stand_in_slurm.running(folder))


def test_a_job_that_is_killed_is_submitted_again_and_changes_no_answer(slurm, ranks):
    groups = [FileGroup((made.path,)) for made in ranks]
    with dask_cluster("slurm", 2) as cluster:
        wait_for(lambda: cluster.width == 2)
        results = cluster.each(partial(tally_of, by=None, ops=True), groups)
        found = dict([next(results)])
        stand_in_slurm.kill(slurm, 101)
        found.update(results)
        wait_for(lambda: len(stand_in_slurm.jobs(slurm)) == 3 and cluster.width == 2)
    for position, made in enumerate(ranks):
        assert {
            row.name: (row.calls, row.total_ns) for row in found[position].tally.table().rows
        } == made.totals
    wait_for(lambda: not stand_in_slurm.running(slurm))


def test_nobody_else_can_talk_to_our_scheduler(slurm, monkeypatch, tmp_path):
    """Whoever can has code run as the user: another user of the node, by the port alone."""
    import distributed

    monkeypatch.chdir(tmp_path)
    with dask_cluster("slurm", 1) as cluster:
        address = cluster._client.scheduler.address
        assert address.startswith("tls://")
        (folder,) = tmp_path.glob(".profharness-dask-*")
        assert [folder.stat().st_mode & 0o77, (folder / "key.pem").stat().st_mode & 0o77] == [0, 0]
        for stranger in (
            {"address": address.replace("tls://", "tcp://")},
            {"address": address, "security": distributed.Security.temporary()},
        ):
            with pytest.raises(
                OSError, match=r"(?i)timed out|ssl|closed|TLS certificate does not match"
            ):
                distributed.Client(**stranger, timeout="3s", set_as_default=False)
        (keeper,) = [jobs for jobs in live_clusters() if jobs.scheduler.address == address]
        web = keeper.scheduler.http_server
        assert web.address == "127.0.0.1"
        for page in ("status", "info/main/workers.html", "json/identity.json", "metrics"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{web.port}/{page}", timeout=10)
        script = (slurm / "job-101.sh").read_text()
        assert "--no-dashboard" in script
        assert "--tls-key" in script
        assert "PRIVATE KEY" not in script
        known = distributed.Security(
            require_encryption=True,
            tls_ca_file=str(folder / "certificate.pem"),
            tls_client_cert=str(folder / "certificate.pem"),
            tls_client_key=str(folder / "key.pem"),
        )  # as the jobs do it
        with distributed.Client(address, security=known, set_as_default=False) as client:
            assert client.scheduler_info()
    assert not folder.exists()


def live_clusters():
    from distributed.deploy.spec import SpecCluster

    return [one for one in SpecCluster._instances if hasattr(one, "scheduler")]


def test_without_cryptography_no_scheduler_is_started(slurm, monkeypatch):
    import distributed

    def lacking(**_: object) -> None:
        raise ImportError("Using `Security.temporary` requires `cryptography`")

    monkeypatch.setattr(distributed.Security, "temporary", lacking)
    with (
        pytest.raises(Unavailable, match="needs cryptography") as raised,
        dask_cluster("slurm", 1),
    ):
        pass
    assert raised.value.hint == "pip install 'profharness[dask]'"
    assert not stand_in_slurm.jobs(slurm)


def test_jobs_that_never_start_are_said(slurm, monkeypatch):
    monkeypatch.setattr(spread, "WAIT_S", 1.0)
    (slurm / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 7\n")
    with (
        pytest.raises(Unavailable, match="no Dask worker came within 1 s"),
        dask_cluster("slurm", 1),
    ):
        pass


def test_a_refused_submission_is_said(slurm):
    import dask

    with (
        dask.config.set({"jobqueue.slurm.job-extra-directives": ["--no-such-option"]}),
        pytest.raises(Unavailable, match="unrecognized option '--no-such-option'"),
        dask_cluster("slurm", 1),
    ):
        pass


def test_a_cluster_without_any_worker_is_given_up(slurm, ranks, monkeypatch):
    monkeypatch.setattr(spread, "LOST_S", 1.0)
    monkeypatch.setattr(spread, "WATCH_S", 0.2)
    groups = [FileGroup((made.path,)) for made in ranks]
    with dask_cluster("slurm", 1) as cluster:
        (slurm / "sbatch").write_text(
            "#!/bin/sh\necho Submitted batch job 7\n"
        )  # the queue is full from now on
        results = cluster.each(partial(tally_of, by=None, ops=True), groups)
        next(results)
        stand_in_slurm.kill(slurm, 101)
        with pytest.raises(Unavailable, match="no Dask worker is left"):
            list(results)
