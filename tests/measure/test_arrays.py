"""Which tasks an array has, and what one of them measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profharness.errors import UsageError
from profharness.measure.batch import array_waiting, arrays, waiting
from profharness.measure.batch.array_waiting import ArrayWatch
from profharness.options.request import Request
from profharness.rundir.jobs.arrays import keep_plan, read_plan
from profharness.rundir.jobs.records import JobEnd, Submitted

FOURTH = {"SLURM_JOB_ID": "40", "SLURM_ARRAY_JOB_ID": "36", "SLURM_ARRAY_TASK_ID": "3"}


def scan(**asked: object) -> Request:
    fields: Any = {"array": "all", "batch_sizes": (1, 4, 16, 64), **asked}
    return Request(**fields)


def test_a_task_measures_its_value_into_a_run_of_its_own(tmp_path: Path) -> None:
    asked = scan(output=str(tmp_path / "all"))
    task = arrays.of_this_task(asked, "x", FOURTH)
    assert (task.batch_sizes, task.array) == ((64,), "")
    assert task.output == str(tmp_path / "all/0003-40")
    assert [one.value for one in read_plan(tmp_path / "all").tasks][-1] == "batch_sizes=64"
    assert not (tmp_path / "all/0003-40").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    arrays.of_this_task(scan(output=str(tmp_path / "all")), "x", FOURTH, dry=True)
    assert not (tmp_path / "all").exists()


def test_several_values_make_a_task_for_each_combination(tmp_path: Path) -> None:
    asked = scan(via="triton", batch_sizes=(1, 8), concurrency=(2, 4), output=str(tmp_path))
    assert [task.value for task in arrays.planned(asked, "x").tasks] == [
        "batch_sizes=1 concurrency=2",
        "batch_sizes=1 concurrency=4",
        "batch_sizes=8 concurrency=2",
        "batch_sizes=8 concurrency=4",
    ]
    task = arrays.of_this_task(asked, "x", {**FOURTH, "SLURM_ARRAY_TASK_ID": "2"})
    assert (task.batch_sizes, task.concurrency) == ((8,), (2,))


def test_a_command_has_the_tasks_that_are_named(tmp_path: Path) -> None:
    asked = Request(command=("true",), array="0-3", output=str(tmp_path))
    task = arrays.of_this_task(asked, "true", FOURTH)
    assert (task.command, task.output) == (("true",), str(tmp_path / "0003-40"))
    alone = Request(command=("true",), array="3", output=str(tmp_path))
    assert arrays.of_this_task(alone, "true", FOURTH).output == task.output
    assert len(read_plan(tmp_path).tasks) == 4
    missing = Request(command=("true",), array="missing", output=str(tmp_path))
    assert arrays.chosen(missing, arrays.planned(missing, "true")) == "0-3"


@pytest.mark.parametrize(
    ("asked", "environment", "says"),
    [
        ({}, {}, "this is no task of a job array"),
        ({"batch_sizes": (1, 2)}, FOURTH, "there is no task 3 among 2"),
        ({"batch_sizes": ()}, FOURTH, "names no values"),
        ({"scan": "saturation"}, FOURTH, "names no values"),
    ],
)
def test_what_is_no_task_is_refused(
    tmp_path: Path, asked: dict[str, object], environment: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        arrays.of_this_task(scan(**asked, output=str(tmp_path)), "x", environment)


def test_which_tasks_are_submitted(tmp_path: Path) -> None:
    asked = scan(output=str(tmp_path))
    plan = arrays.planned(asked, "x")
    assert arrays.chosen(asked, plan) == "0-3"
    assert arrays.chosen(scan(array="all%2"), plan) == "0-3%2"
    assert arrays.chosen(scan(array="1,3"), plan) == "1,3"
    with pytest.raises(UsageError, match="there is no task 9"):
        arrays.chosen(scan(array="9"), plan)
    keep_plan(tmp_path, plan)
    for number in (0, 2):
        root = tmp_path / f"{number:04d}-1"
        root.mkdir()
        facts = {"schema": 1, "id": "x", "created": "", "state": "done", "exit_status": 0}
        (root / "manifest.json").write_text(json.dumps(facts))
    assert arrays.chosen(scan(array="missing%9", output=str(tmp_path)), plan) == "1,3%9"


def test_tasks_that_leave_no_word_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the scheduler says of them is left in their place."""
    monkeypatch.setattr(waiting, "LATE_S", 0.1)
    monkeypatch.setattr(waiting, "LOOK_S", (0.01, 0.02))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, body in (
        ("squeue", "echo 'COMPLETED|None|n1'; echo 'TIMEOUT|None|n2'"),
        ("scontrol", "echo 'JobId=41 JobState=TIMEOUT ExitCode=0:15 NodeList=n2'"),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    (tmp_path / "slurm").mkdir()
    (tmp_path / "all/0001-41").mkdir(parents=True)
    (tmp_path / "slurm/40_0.end").write_text('{"job":"40_0","exit_status":0}')
    job = Submitted(
        job="40", run=str(tmp_path / "all"), log=str(tmp_path / "slurm/40.log"), tasks=(0, 1)
    )
    said: list[str] = []
    ends = ArrayWatch(job, said.append).wait()
    lost = JobEnd(job="40_1", cause="time-limit", exit_status=143, nodes="n2")
    assert ends == {0: JobEnd(job="40_0"), 1: lost}
    assert said == ["job 40: 1 of 2 tasks have ended"]
    assert (tmp_path / "all/0001-41/job.json").is_file()
    assert array_waiting.ArrayWatch(job, said.append).ended()
