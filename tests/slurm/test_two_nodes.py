"""`--launcher slurm` on a real Slurm of two nodes."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from profharness.rundir.manifest import decode
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import (
    NAME,
    SLEEPS,
    begun,
    done,
    ending,
    findings,
    manifest,
    only_job,
    start,
    words,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]


def test_the_script_of_the_plan_is_submitted_and_joins_the_ranks_of_both_nodes(
    cluster: Cluster, tmp_path: Path
) -> None:
    """With a comment and words of the command that sbatch could misread."""
    odd = ("--sbatch-arg", '--comment=a "b" # c', "--time-limit", "5")
    program = "import socket\nprint(socket.gethostname())\n#SBATCH --nodes=9\nraise SystemExit(3)"
    line = words(*odd, program=program)
    dry = done(start(cluster, tmp_path, (*line[:4], "--dry-run", *line[4:])))
    assert (dry[0], (tmp_path / "traces").exists()) == (0, False), dry
    status, out, err = done(start(cluster, tmp_path, line))
    job = only_job(tmp_path)
    assert (status, f"job {job} makes the run" in err) == (3, True), err
    assert f"traces/slurm-{job}-{NAME}/report.html" in out
    assert not findings(tmp_path, job) & {"cancelled", "time-limit", "node-lost", "rank-lost"}
    again = (sys.executable, "-m", "profharness", "attach-run", "--quiet", job)
    assert done(start(cluster, tmp_path, again)) == (3, "", "")
    assert (tmp_path / f"traces/slurm/{job}.sh").read_text().strip() in dry[1]
    facts = cluster.client("scontrol", "show", "job", job)
    assert 'Comment=a "b" # c' in facts
    assert "TimeLimit=00:05:00" in facts
    ended = ending(tmp_path, job)
    assert (ended.cause, ended.exit_status, ended.nodes) == ("", 3, "n[1-2]")
    run = manifest(tmp_path, f"slurm-{job}-{NAME}")
    assert (run.state, run.exit_status, run.ranks) == ("done", 3, 2)
    assert {one.host for one in run.rank_outcomes} == {"n1", "n2"}
    told = json.loads((tmp_path / f"traces/slurm/{job}.json").read_text())
    assert told["run"] == str(tmp_path / f"traces/{run.id}")


def test_within_a_job_srun_is_started_at_once(cluster: Cluster, tmp_path: Path) -> None:
    line = words("--quiet", "-o", str(tmp_path / "run"), program="pass")
    status, _, err = done(start(cluster, tmp_path, ("salloc", "-Q", "-n2", "-N2", *line)))
    assert (status, (tmp_path / "traces").exists()) == (0, False), err
    found = decode((tmp_path / "run/manifest.json").read_bytes(), "manifest")
    assert (found.state, found.ranks) == ("done", 2)


def test_ctrl_c_cancels_it_and_the_run_can_be_read(cluster: Cluster, tmp_path: Path) -> None:
    process = start(cluster, tmp_path, words(program=SLEEPS))
    job = begun(tmp_path)
    process.send_signal(signal.SIGINT)
    status, _, err = done(process)
    assert (status, f"job {job} is cancelled" in err) == (130, True), err
    assert ending(tmp_path, job).exit_status == 143
    line = (sys.executable, "-m", "profharness", "report", f"traces/slurm-{job}-{NAME}")
    assert done(start(cluster, tmp_path, line))[0] == 0
    assert findings(tmp_path, job) >= {"cancelled", "run-incomplete"}
    assert manifest(tmp_path, f"slurm-{job}-{NAME}").state == "interrupted"


def test_it_goes_on_without_the_session_and_ends_at_its_time_limit(
    cluster: Cluster, tmp_path: Path
) -> None:
    """`scancel --batch` gives the script the signal that Slurm gives it before the time limit, which
    is a whole minute at least.
    """
    line = words("--time-limit", "5", "--telemetry", "cpu", program=SLEEPS)
    process = start(cluster, tmp_path, line)
    job = begun(tmp_path)
    process.kill()
    process.communicate()
    cluster.client("scancel", "--batch", "--signal=USR1", job)
    again = (sys.executable, "-m", "profharness", "attach-run", f"traces/slurm-{job}-{NAME}")
    status, _, err = done(start(cluster, tmp_path, again))
    assert (status, f"job {job} came to the end of its time" in err) == (143, True), err
    assert ending(tmp_path, job).cause == "time-limit"
    run = manifest(tmp_path, f"slurm-{job}-{NAME}")
    assert (run.state, {one.exit_status for one in run.rank_outcomes}) == ("interrupted", {143})
    found = findings(tmp_path, job)
    assert "time-limit" in found
    assert not found & {"sampler-gaps", "rank-lost", "cancelled"}


def test_a_site_of_ones_own_gives_the_job_its_defaults(cluster: Cluster, tmp_path: Path) -> None:
    """And `select_gpu` each rank its device, however often it stands in the line."""
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites/mine.toml").write_text(
        'name = "mine"\n[settings]\npartition = "debug"\ntime_limit = "7"\n'
        'sbatch_arg = ["--ntasks-per-node=2"]\njob_line = ["export OF_SITE=yes"]\n'
    )
    select = str(Path(__file__).resolve().parents[2] / "wrappers/select_gpu")
    says = 'echo "$SLURM_PROCID $ROCR_VISIBLE_DEVICES $OF_SITE."'
    line = (sys.executable, "-m", "profharness", "run", "--launcher", "slurm", "--quiet")
    line = (*line, "--ranks", "4", "--nodes", "2", "--site", "mine", "--telemetry", "off")
    line = ("env", f"PROFHARNESS_SITES={tmp_path / 'sites'}", *line)
    process = start(cluster, tmp_path, (*line, "--", select, select, "sh", "-c", says))
    status, _, err = done(process)
    assert status == 0, err
    job = only_job(tmp_path)
    said = (tmp_path / f"traces/slurm/{job}.log").read_text().splitlines()
    assert sorted(set(said) & {f"{n} {n % 2} yes." for n in range(4)}) == sorted(
        f"{n} {n % 2} yes." for n in range(4)
    )
    facts = cluster.client("scontrol", "show", "job", job)
    assert "TimeLimit=00:07:00" in facts
