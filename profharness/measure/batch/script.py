"""The text of a Slurm job that makes one run: a function of what was asked, and of nothing else.

The script starts the tasks by srun, ends them a while before the time limit, and leaves word of how
the job ended (`rundir.jobs`) beside the runs and in the run. Submitting it: `scheduler`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from profharness.options.batch import minutes
from profharness.options.request import Request
from profharness.rundir.jobs.records import JOBS

_QUARTER_OF_A_MINUTE = 15
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")

_ENDING = """\
cause= status= lost=
record() {  # how the job ended, for those who wait for it and for the report: in each file named
    case $cause in
        time-limit | cancelled) status=143 ;;
        node-lost) status=1 ;;
    esac
    told='{"job":"%s","cause":"%s","exit_status":%d,"nodes":"%s","lost":"%s"}\\n'
    for end; do
        [ -d "${end%/*}" ] || continue
        printf "$told" "$id" "$cause" "$status" "${SLURM_JOB_NODELIST-}" "$lost" >"$end.part" &&
            mv -f "$end.part" "$end"
    done
}
early() {  # the signal that Slurm sends before the time limit: end the tasks, not this script
    cause=time-limit
    scancel --signal=TERM "$id"
}
ended() {  # Slurm has sent it to the tasks as well, and kills what is left soon
    case $(scontrol show job -o "$id") in
        *JobState=NODE_FAIL* | *Reason=NodeDown*)
            cause=node-lost
            lost=$(sinfo -h -N -t down -o %N -n "$SLURM_JOB_NODELIST" | sort -u | paste -sd, -)
            ;;
        *JobState=TIMEOUT* | *Reason=TimeLimit*) cause=time-limit ;;
        *) cause=${cause:-cancelled} ;;
    esac
    record "$run/job.json"
}
trap early USR1
trap ended TERM
"""

_WAIT = """\
step=$!
wait "$step"
status=$?
while kill -0 "$step" 2>/dev/null; do  # a signal interrupts the wait, and the tasks go on
    wait "$step"
    status=$?
done
record "$run/job.json" "$jobs/$id.end"
exit "$status"
"""


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a script needs beside the request: `tasks` is the srun line but for the run directory,
    which follows `--output` at its place in it; `root` is that directory where the user named it,
    otherwise `runs` holds one that has the job's number and `name` for its name. With `array`
    (tasks as sbatch takes them) that is the folder of all tasks, in which each has a run.
    """

    tasks: tuple[str, ...]
    after: tuple[str, ...]
    name: str
    runs: Path
    root: Path | None
    cwd: Path
    array: str = ""


def jobs_folder(plan: JobPlan) -> Path:
    """Where scripts, logs and endings of jobs lie, beside their runs."""
    return (plan.runs if plan.root is None else plan.root.parent) / JOBS


def run_of(plan: JobPlan, job: str) -> Path:
    """The run directory of the job of that number."""
    return plan.root or plan.runs / f"slurm-{job}-{plan.name}"


_AGAIN = "${SLURM_RESTART_COUNT:+-again$SLURM_RESTART_COUNT}"


def text(request: Request, plan: JobPlan) -> str:
    """The whole script."""
    output = "tasks" if plan.array else "run"
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {_directive(word)}" for word in _directives(request, plan)),
        "# how it was asked for: profharness run --launcher slurm",
        f"jobs={shlex.quote(str(jobs_folder(plan)))}",
        *_identity(plan),
        *(f"module load {shlex.quote(name)}" for name in request.module),
        *request.job_line,
        _ENDING.rstrip("\n"),
        f'{shlex.join(plan.tasks)} --output "${output}" {shlex.join(plan.after)}'.rstrip() + " &",
        _WAIT,
    ]
    return "\n".join(lines)


def _identity(plan: JobPlan) -> tuple[str, ...]:
    """What Slurm calls the job, or its task, and the run that it makes. A job that is queued again
    keeps its number, and makes a run of its own.

    The number of an array's last task is also that of the whole array: `scancel` would end all.
    """
    number = "$SLURM_ARRAY_JOB_ID" if plan.array else f"$id{_AGAIN}"
    place = f'{shlex.quote(str(plan.runs))}/"slurm-{number}"{shlex.quote(f"-{plan.name}")}'
    place = place if plan.root is None else shlex.quote(str(plan.root))
    if not plan.array:
        return ("id=$SLURM_JOB_ID", f"run={place}")
    return (
        "id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID",
        f"tasks={place}",
        'run=$tasks/$(printf %04d "$SLURM_ARRAY_TASK_ID")-$SLURM_JOB_ID' + _AGAIN,
    )


def _directives(request: Request, plan: JobPlan) -> list[str]:
    """The words of sbatch. Those of the user stand last, so that they win."""
    log = str(jobs_folder(plan)).replace("%", "%%")
    asked = (
        ("--account", request.account),
        ("--partition", request.partition),
        ("--nodes", request.nodes),
        ("--gpus-per-task", request.gpus_per_task),
        ("--cpus-per-task", request.cpus_per_task),
        ("--time", request.time_limit),
    )
    return [
        f"--job-name={plan.name}",
        f"--output={log}/{'%A_%a' if plan.array else '%j'}.log",
        *((f"--array={plan.array}",) if plan.array else ()),
        f"--chdir={plan.cwd}",
        "--open-mode=append",
        "--no-requeue",
        f"--signal=B:USR1@{stop_before_s(request)}",
        f"--ntasks={request.ranks}",
        *(f"{name}={value}" for name, value in asked if value not in (None, "")),
        *request.sbatch_arg,
    ]


def stop_before_s(request: Request) -> int:
    """How many seconds before the time limit the run is ended."""
    if not request.time_limit:
        return request.stop_before
    quarter = int(minutes(request.time_limit) * _QUARTER_OF_A_MINUTE)
    return max(1, min(request.stop_before, quarter))


def _directive(word: str) -> str:
    """A word as the reader of #SBATCH lines takes it: one with blanks in double quotes."""
    if _PLAIN.fullmatch(word):
        return word
    name, equals, value = word.partition("=")
    if not equals or not _PLAIN.fullmatch(name):
        name, equals, value = "", "", word
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}{equals}"{quoted}"'


def srun_words(request: Request) -> tuple[str, ...]:
    """Options of srun that its job does not hand on in every release of Slurm."""
    asked: Sequence[tuple[str, int | None]] = (
        ("--nodes", request.nodes),
        ("--gpus-per-task", request.gpus_per_task),
        ("--cpus-per-task", request.cpus_per_task),
    )
    return (*(f"{name}={value}" for name, value in asked if value), *request.launcher_arg)
