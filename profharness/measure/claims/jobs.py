"""Batch jobs: the one that this process belongs to, and whether another one has ended."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from profharness.rundir.claims.record import Holder

SLURM = "slurm"
# the scheduler's name and the variable with the number of its job
_VARIABLES = (
    (SLURM, "SLURM_JOB_ID"),
    ("flux", "FLUX_JOB_ID"),
    ("pbs", "PBS_JOBID"),
    ("lsf", "LSB_JOBID"),
    ("grid engine", "JOB_ID"),
)
_ASK_S = 10.0
_NUMBER = re.compile(r"[0-9]{1,18}")
# states of a job that has processes, or may get them (squeue(1), JOB STATE CODES)
_LIVING = re.compile(
    r"PENDING|RUNNING|SUSPENDED|COMPLETING|CONFIGURING|RESIZING|SIGNALING|STAGE_OUT|STOPPED|"
    r"REQUEUE.*|SPECIAL_EXIT"
)


def own_job(environment: Mapping[str, str]) -> tuple[str, int]:
    """Its name (`slurm 4711`, empty outside of a job), and how often it was started again."""
    for scheduler, variable in _VARIABLES:
        if number := environment.get(variable):
            again = environment.get("SLURM_RESTART_COUNT", "")
            return f"{scheduler} {number}", int(again) if _NUMBER.fullmatch(again) else 0
    return "", 0


def is_over(holder: Holder, own: tuple[str, int]) -> bool | None:
    """Whether the job of the holder has ended; None where that is not known.

    Slurm keeps the number of a job that it starts again: an earlier start of our own job has ended.
    Another job's state is what `squeue` says of it. Other schedulers are not asked.
    """
    job, restart = own
    if job and holder.job == job:
        return True if holder.restart < restart else None
    scheduler, _, number = holder.job.partition(" ")
    if scheduler != SLURM or not _NUMBER.fullmatch(number):
        return None
    try:
        asked = subprocess.run(
            ("squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={number}"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if asked.returncode:
        # the controller has forgotten the job, as it does some minutes after the end
        return True if "Invalid job id" in asked.stderr else None
    states = asked.stdout.split()
    return not any(_LIVING.fullmatch(state) for state in states)
