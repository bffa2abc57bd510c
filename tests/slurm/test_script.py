"""The text of a job script: a function of what was asked, in which no value is a line of its own."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import UsageError
from profharness.measure.batch import script
from profharness.options.batch import minutes
from profharness.options.request import Request

NOWHERE = Path("/scratch/me")


def plan(*command: str, root: Path | None = None) -> script.JobPlan:
    return script.JobPlan(
        tasks=("srun", "--ntasks=1", "profharness", "run"),
        after=("--", *(command or ("true",))),
        name="train",
        runs=NOWHERE / "traces",
        root=root,
        cwd=NOWHERE,
    )


def request(**asked: Any) -> Request:
    return Request(command=("true",), launcher="slurm", **asked)


def directives(text: str) -> list[str]:
    """The lines that sbatch reads: those before the first one that is no comment."""
    head = re.match(r"(?:#.*\n|\s*\n)*", text)
    assert head is not None
    return [line for line in head[0].splitlines() if line.startswith("#SBATCH")]


def test_what_is_asked_for_stands_in_its_head() -> None:
    asked = request(
        ranks=8,
        account="project_1",
        partition="dev-g",
        nodes=2,
        gpus_per_task=1,
        cpus_per_task=7,
        time_limit="1:30:00",
        sbatch_arg=("--qos=debug", '--comment=a "b" # c', "--exclusive"),
    )
    assert directives(script.text(asked, plan())) == [
        "#SBATCH --job-name=train",
        "#SBATCH --output=/scratch/me/traces/slurm/%j.log",
        "#SBATCH --chdir=/scratch/me",
        "#SBATCH --open-mode=append",
        "#SBATCH --no-requeue",
        "#SBATCH --signal=B:USR1@120",
        "#SBATCH --ntasks=8",
        "#SBATCH --account=project_1",
        "#SBATCH --partition=dev-g",
        "#SBATCH --nodes=2",
        "#SBATCH --gpus-per-task=1",
        "#SBATCH --cpus-per-task=7",
        "#SBATCH --time=1:30:00",
        "#SBATCH --qos=debug",
        r'#SBATCH --comment="a \"b\" # c"',
        "#SBATCH --exclusive",
    ]


def test_the_same_question_has_the_same_script() -> None:
    asked = request(time_limit="10", module=("rocm/6.4.1",), job_line=("export A=1",))
    assert script.text(asked, plan()) == script.text(asked, plan())
    lines = script.text(asked, plan()).splitlines()
    assert lines.index("module load rocm/6.4.1") + 1 == lines.index("export A=1")
    assert lines.index("export A=1") < next(
        number for number, line in enumerate(lines) if line.startswith("srun ")
    )


@given(st.text(max_size=30))
@pytest.mark.parametrize(
    "option", ["account", "partition", "time_limit", "module", "sbatch_arg", "job_line"]
)
def test_no_value_adds_a_line(option: str, value: str) -> None:
    """It is refused, or stands in one line."""
    several = option in ("module", "sbatch_arg", "job_line")
    plain = script.text(request(), plan())
    try:
        asked = request(**{option: (value,) if several else value})
    except UsageError:
        return
    made = script.text(asked, plan())
    added = 1 if several or value else 0
    assert len(made.splitlines()) == len(plain.splitlines()) + added
    if option in ("job_line", "module"):
        assert directives(made) == directives(plain)
    else:
        assert len(directives(made)) == len(directives(plain)) + added


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("account", "a\n#SBATCH --nodes=9"),
        ("partition", "a b"),
        ("time_limit", "10\r"),
        ("module", ("a; rm -r x",)),
        ("module", ("",)),
        ("sbatch_arg", ("--qos=a\n--nodes=9",)),
        ("sbatch_arg", ("--signal=9",)),
        ("sbatch_arg", ("nodes",)),
        ("job_line", ("a\nb",)),
    ],
)
def test_a_value_that_does_not_fit_is_refused(option: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')}"):
        request(**{option: value})


def test_tasks_of_an_array_have_logs_and_ends_of_their_own() -> None:
    """The last task has the number of the whole array, which no task may signal or ask for."""
    asked = request(array="0-3%2")
    made = script.text(asked, msgspec.structs.replace(plan(), array="0-3%2"))
    lines = directives(made)
    assert "#SBATCH --output=/scratch/me/traces/slurm/%A_%a.log" in lines
    assert "#SBATCH --array=0-3%2" in lines
    assert 'scancel --signal=TERM "$id"' in made
    assert '--output "$tasks" ' in made
    said = subprocess.run(
        ("bash", "-c", made.partition("cause=")[0] + 'echo "$id" "$tasks" "$run"'),
        env={
            "SLURM_ARRAY_JOB_ID": "40",
            "SLURM_ARRAY_TASK_ID": "7",
            "SLURM_JOB_ID": "43",
            "SLURM_RESTART_COUNT": "1",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    tasks = "/scratch/me/traces/slurm-40-train"
    assert said.stdout.split() == ["40_7", tasks, f"{tasks}/0007-43-again1"]


def test_options_of_a_job_need_slurm() -> None:
    with pytest.raises(UsageError, match="--account, --time-limit: only a job has this"):
        Request(command=("true",), account="a", time_limit="10")


def test_words_of_the_command_are_no_directives() -> None:
    text = script.text(request(), plan("python", "-c", "x = 1\n#SBATCH --nodes=9\n"))
    assert directives(text) == directives(script.text(request(), plan()))
    assert subprocess.run(("bash", "-n"), input=text, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("90", 90),
        ("1:30", 1.5),
        ("1:30:00", 90),
        ("1-2", 1560),
        ("1-2:30", 1590),
        ("1-0:0:30", 1440.5),
    ],
)
def test_time_limits(time: str, expected: float) -> None:
    """The forms of sbatch(1)."""
    assert minutes(time) == expected


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ({}, 120),
        ({"time_limit": "60"}, 120),
        ({"time_limit": "4"}, 60),
        ({"time_limit": "1"}, 15),
        ({"time_limit": "60", "stop_before": 300}, 300),
        ({"time_limit": "0:01"}, 1),
    ],
)
def test_a_run_ends_before_the_time_limit(asked: dict[str, object], seconds: int) -> None:
    assert script.stop_before_s(request(**asked)) == seconds


STAND_INS = {
    "srun": 'while [ "$1" != -- ]; do [ "$1" = --output ] && run=$2; shift; done; shift; '
    'mkdir -p "$run"; exec "$@"',
    "scancel": "exit 0",
    "sinfo": 'printf "n2\\nn2\\nn3\\n"',
    "scontrol": 'echo "JobId=7 JobState=${STATE:-RUNNING} Dependency=(null)"',
}
"""Stand-ins for Slurm's clients, which do as much as the script needs of them."""


def carried_out(
    folder: Path, script_text: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    programs = folder / "bin"
    programs.mkdir()
    for name, body in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)
    return subprocess.run(
        ("bash", "-c", script_text),
        env={"PATH": f"{programs}:/usr/bin:/bin", "SLURM_JOB_ID": "7", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("signal", "state", "cause", "status"),
    [
        ("", "RUNNING", "", 5),
        ("USR1", "RUNNING", "time-limit", 143),
        ("TERM", "CANCELLED", "cancelled", 143),
        ("TERM", "TIMEOUT", "time-limit", 143),
        ("TERM", "NODE_FAIL", "node-lost", 1),
        ("TERM", "COMPLETING Reason=NodeDown", "node-lost", 1),
        ("TERM", "COMPLETING Reason=TimeLimit", "time-limit", 143),
    ],
)
def test_how_it_ended_is_left_behind(
    tmp_path: Path, signal: str, state: str, cause: str, status: int
) -> None:
    """Beside the runs and in the run, whose folder has odd characters."""
    runs = tmp_path / "it's mine"
    (runs / "slurm").mkdir(parents=True)
    send = f"kill -{signal} $PPID; " if signal else ""
    # the task sends it to the script, whose child it is
    task = ("bash", "-c", f"{send}sleep 0.2; exit 5")
    job = script.JobPlan(
        tasks=("srun",), after=("--", *task), name="x", runs=runs, root=None, cwd=tmp_path
    )
    done = carried_out(tmp_path, script.text(request(), job), STATE=state)
    assert done.returncode == status, done.stderr
    nodes = {"nodes": "", "lost": "n2,n3" if cause == "node-lost" else ""}
    for path in (runs / "slurm/7.end", runs / "slurm-7-x/job.json"):
        told = json.loads(path.read_text())
        assert told == {"job": "7", "cause": cause, "exit_status": status, **nodes}
