"""`--launcher slurm`: within a job srun starts this command line once per rank; elsewhere sbatch
submits a job that does so.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import msgspec

from profharness.cli.running.answers import near
from profharness.errors import Unavailable, UsageError
from profharness.launchers import slurm
from profharness.measure import ranks
from profharness.measure.batch import arrays, scheduler, script
from profharness.measure.planning import name_of, plan_run, runs_folder
from profharness.options import array
from profharness.options.request import Request
from profharness.rundir.jobs.arrays import is_array
from profharness.rundir.jobs.records import Submitted
from profharness.rundir.outputs import make_folder
from profharness.rundir.paths import write_atomic
from profharness.rundir.shown.screen import mention


def is_rank() -> bool:
    """Whether a launcher (or --ranks itself) started this process as one of several."""
    return ranks.detect(os.environ, named=True).world > 1


def of_task(request: Request, *, dry: bool = False) -> Request:
    """What this task of a job array measures; the same request where it is of none. Raises
    UsageError outside of one.
    """
    if not request.array:
        return request
    return arrays.of_this_task(request, _name(request), os.environ, dry=dry)


def is_in_job() -> bool:
    """Whether nodes are given to this process already."""
    return bool(os.environ.get("SLURM_JOB_ID"))


def job_text(request: Request) -> str:
    """What would be started: the srun line within a job, elsewhere the script for sbatch."""
    if is_in_job():
        return f"launcher        {shlex.join(_tasks(request))}"
    return f"launcher        sbatch, with this script:\n\n{script.text(request, _plan(request))}"


def as_planned(request: Request) -> Request:
    """The request with the run directory that a job would make, whose number is not known yet."""
    if request.launcher != "slurm" or is_in_job():
        return of_task(request, dry=True)
    return msgspec.structs.replace(request, output=str(script.run_of(_plan(request), "JOB")))


def in_job(request: Request) -> Submitted:
    """Become srun within a job, whose exit status and signals are the run's; elsewhere submit a
    job, and return at once. Raises UsageError inside of a step, Unavailable without Slurm.
    """
    if is_rank():
        raise UsageError(
            "--launcher slurm: srun has started this already",
            "leave it out: all tasks of the step join one run",
        )
    if not is_in_job():
        scheduler.require()
    elif shutil.which("srun") is None:
        raise Unavailable(
            "--launcher slurm: there is no srun here",
            "start this where jobs are submitted, or leave it out for this node alone",
        )
    # what is wrong with the request is told once, not by every task; an image is started by those
    plan_run(request, dry=True, starts=not request.container)
    if is_in_job():
        _become_srun(request)
    return _submitted(request)


def _become_srun(request: Request) -> NoReturn:
    words = _tasks(request)
    os.execvp(words[0], words)  # noqa: S606  by PATH, as a user would start it


def _line() -> tuple[str, ...]:
    """The command line of this process, as any node of the cluster can start it."""
    return (sys.executable, "-m", "profharness", *sys.argv[1:])


def _tasks(request: Request) -> tuple[str, ...]:
    """The srun line that starts this same command line once per rank."""
    return slurm.words(
        _line(), request.ranks, script.srun_words(request), is_command=bool(request.command)
    )


def _plan(request: Request) -> script.JobPlan:
    words = _tasks(request)
    tasks = arrays.planned(request, _name(request)) if request.array else None
    at = words.index("--") if "--" in words else len(words)
    return script.JobPlan(
        tasks=words[:at],
        after=words[at:],
        name=_name(request),
        runs=runs_folder(),
        root=Path(request.output).absolute() if request.output else None,
        cwd=Path.cwd(),
        array="" if tasks is None else arrays.chosen(request, tasks),
    )


def _name(request: Request) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name_of(request)).strip("-") or "run"


def _submitted(request: Request) -> Submitted:
    """Submit the job, and keep its script and what it makes. Raises Unavailable where Slurm refuses
    it, UsageError where its folder cannot be written or its run exists.
    """
    plan = _plan(request)
    text = script.text(request, plan)
    folder = script.jobs_folder(plan)
    stands = plan.root is not None and plan.root.exists() and any(plan.root.iterdir())
    if stands and not (plan.array and plan.root is not None and is_array(plan.root)):
        raise UsageError(
            f"{plan.root} exists and is not an empty folder", "name another with --output"
        )
    make_folder(folder, "name another place with --output")
    job = scheduler.submit(text)
    submitted = Submitted(
        job=job,
        run=str(script.run_of(plan, job)),
        log=str(folder / f"{job}.log"),
        submitted=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        tasks=array.numbers(plan.array) or () if plan.array else (),
    )
    if plan.array:
        arrays.keep(Path(submitted.run), arrays.planned(request, plan.name))
    write_atomic(folder / f"{job}.sh", text.encode())
    write_atomic(folder / f"{job}.json", msgspec.json.encode(submitted))
    mention(
        f"profharness: job {job} {_makes(submitted)} {near(Path(submitted.run))}; Ctrl-C "
        f"cancels it, and without this session `profharness attach-run {job}` waits for it"
    )
    return submitted


def _makes(submitted: Submitted) -> str:
    count = len(submitted.tasks)
    if not count:
        return "makes the run"
    return f"has {count} task{'s' * (count > 1)}, whose runs go to"
