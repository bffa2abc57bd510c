"""The results folder of a job array, which all of its tasks write into.

    array.json              which tasks there are: a `TaskPlan`
    0007-4718/              the run that task 7 made in job 4718; another try is another job
    report.html, results.csv    of all tasks, made by `profharness report FOLDER`

No file has two writers. The plan is linked into its place when it is whole, by whoever comes first;
the folder of a try is named after its job, whose number no other try has, and `mkdir` claims it. So
a network file system needs no locks. Which try of a task counts is seen by reading.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from profharness.errors import InputError, UsageError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.listed_rows import RunRow, run_row
from profharness.rundir.foreign.listing import runs_below
from profharness.rundir.foreign.small_files import read_file

PLAN = "array.json"
SCHEMA = 1
_MOST_BYTES = 64 << 20
_TRY = re.compile(r"(\d{4,})-\d+(?:-again\d+)?")
_Number = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_Short = Annotated[str, msgspec.Meta(max_length=4096)]
State = Literal["done", "running", "failed", "missing"]


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task by its number, and what it measures (`batch_sizes=64`); empty for a command, which
    reads the number itself.
    """

    number: _Number
    value: _Short = ""


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks of an array, in order, and the name of what they run."""

    schema: int = SCHEMA
    name: _Short = ""
    tasks: tuple[PlannedTask, ...] = ()


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task with what became of it. `run` is the try that counts: the last that was done, else the
    last; None before the first.
    """

    task: PlannedTask
    state: State
    tries: int
    run: RunRow | None = None


def is_array(folder: Path) -> bool:
    """Whether the tasks of an array write into this folder."""
    return os.path.lexists(folder / PLAN)


def try_name(task: int, environment: Mapping[str, str]) -> str:
    """The folder of this try of a task, from Slurm's numbers: a job that is queued again keeps its
    number.
    """
    again = environment.get("SLURM_RESTART_COUNT", "")
    suffix = f"-again{again}" if again.isdecimal() else ""
    return f"{task:04d}-{environment.get('SLURM_JOB_ID', '0')}{suffix}"


def read_plan(folder: Path) -> TaskPlan:
    """Raises InputError for a file that is missing, damaged, or lies elsewhere."""
    path = folder / PLAN
    with reading(path):
        data = read_file(Inside(folder).require(path), _MOST_BYTES)
        plan = msgspec.json.decode(data, type=TaskPlan)
    if plan.schema > SCHEMA:
        raise InputError(f"{path}: schema {plan.schema}", "read it with a newer profharness")
    return plan


def keep_plan(folder: Path, plan: TaskPlan) -> TaskPlan:
    """Write the plan where there is none; the one that stands. Raises UsageError where that is
    another one's, OSError where nothing can be written.
    """
    path = folder / PLAN
    if not is_array(folder):
        own = folder / f".{PLAN}.{socket.gethostname()}.{os.getpid()}.{os.urandom(4).hex()}"
        own.write_bytes(msgspec.json.encode(plan))
        try:
            os.link(own, path)
        except FileExistsError:
            pass  # another task was first; over a network perhaps this one, whose answer was lost
        except OSError:  # no links here: what is put there says the same as the other tasks' plans
            own.replace(path)
        finally:
            own.unlink(missing_ok=True)
    standing = read_plan(folder)
    known = {task.number: task.value for task in standing.tasks}
    for task in plan.tasks:
        if known.get(task.number) != task.value:
            is_now = f"task {task.number} is {task.value or 'a command'}"
            there = known.get(task.number, "not there")
            raise UsageError(
                f"{folder} is of another array: {is_now} now, and in it {there or 'a command'}",
                "name another folder with --output, or give the values that it was made with",
            )
    return standing


def tasks_in(folder: Path) -> tuple[TaskRow, ...]:
    """Every task of the plan with what became of it so far. Raises InputError as `read_plan` does,
    and where the folder cannot be read.
    """
    plan = read_plan(folder)
    with reading(folder):
        roots = runs_below(folder)
    tries: dict[int, list[Path]] = {}
    for root in roots:
        found = _TRY.fullmatch(root.name)
        if found is not None:
            tries.setdefault(int(found[1]), []).append(root)
    return tuple(_row(task, tries.get(task.number, ())) for task in plan.tasks)


def _row(task: PlannedTask, roots: Sequence[Path]) -> TaskRow:
    rows = [run_row(root) for root in roots]
    for row in sorted(rows, key=lambda one: one.started, reverse=True):
        if row.state == "done" and not row.exit_status:
            return TaskRow(task=task, state="done", tries=len(rows), run=row)
    if not rows:
        return TaskRow(task=task, state="missing", tries=0)
    last = max(rows, key=lambda one: one.started)
    state: State = "running" if last.state == "running" else "failed"
    return TaskRow(task=task, state=state, tries=len(rows), run=last)


def lacking(rows: Sequence[TaskRow]) -> tuple[int, ...]:
    """The numbers of the tasks that are not done, nor under way."""
    return tuple(row.task.number for row in rows if row.state in ("failed", "missing"))
