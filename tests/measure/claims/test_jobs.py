from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from profharness.measure.claims import jobs
from profharness.rundir.claims import holder


def test_the_own_job_is_what_its_scheduler_says() -> None:
    assert jobs.own_job({}) == ("", 0)
    assert jobs.own_job({"SLURM_JOB_ID": "42", "SLURM_RESTART_COUNT": "2"}) == ("slurm 42", 2)
    assert jobs.own_job({"PBS_JOBID": "7.server"}) == ("pbs 7.server", 0)


def test_an_earlier_start_of_the_same_job_is_over() -> None:
    before = holder.identify("slurm 42", 1)
    assert jobs.is_over(before, ("slurm 42", 2)) is True
    assert jobs.is_over(before, ("slurm 42", 1)) is None, "another step of it may run"


@pytest.mark.parametrize(
    ("says", "over"),
    [
        ("echo RUNNING", False),
        ("echo REQUEUE_HOLD", False),
        ("echo COMPLETED; echo CANCELLED", True),
        ("echo COMPLETED; echo PENDING", False),
        ("true", True),
        ("echo slurm_load_jobs error: Invalid job id specified >&2; exit 1", True),
        ("echo Unable to contact slurm controller >&2; exit 1", None),
    ],
)
def test_another_job_is_what_squeue_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, over: bool | None
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\n{says}\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert jobs.is_over(holder.identify("slurm 42"), ("slurm 43", 0)) is over


def test_what_cannot_be_asked_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for job in ("slurm 42", "pbs 42", "slurm --all", ""):
        assert jobs.is_over(holder.identify(job), ("", 0)) is None
    forged = msgspec.structs.replace(holder.identify(), job="slurm 1,2;rm")
    assert jobs.is_over(forged, ("", 0)) is None
