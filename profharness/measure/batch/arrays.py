"""Job arrays: which tasks a request makes, and what one task of them measures. The scheduler's own
variables say which task this is.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from profharness.errors import UsageError
from profharness.options import array
from profharness.options.request import Request
from profharness.rundir.jobs.arrays import (
    PlannedTask,
    TaskPlan,
    is_array,
    keep_plan,
    lacking,
    read_plan,
    tasks_in,
    try_name,
)
from profharness.rundir.outputs import make_folder, unwritable

TASK = "SLURM_ARRAY_TASK_ID"
_AXES = ("batch_sizes", "concurrency", "rate", "streams")
_ELSEWHERE = "name another place with --output"


def planned(request: Request, name: str) -> TaskPlan:
    """All tasks of the array: one for each value of a scan, or for each combination of its values;
    of a command one for each number. Raises UsageError where the request names none.
    """
    if request.command:
        return TaskPlan(name=name, tasks=_of_command(request))
    axes = [axis for axis in _AXES if getattr(request, axis)]
    if request.scan == "saturation" or not axes:
        raise UsageError(
            "--array: this scan names no values that could be a task each",
            "name them, for example --batch-sizes 4..2048 (or --concurrency, --rate, --streams)",
        )
    if "concurrency" in axes and "rate" in axes:
        raise UsageError(
            "--array: --concurrency and --rate are two kinds of load",
            "make an array of each, with its own --output",
        )
    values = itertools.product(*(getattr(request, axis) for axis in axes))
    return TaskPlan(
        name=name,
        tasks=tuple(
            PlannedTask(
                number=number,
                value=" ".join(f"{a}={v}" for a, v in zip(axes, each, strict=True)),
            )
            for number, each in enumerate(values)
        ),
    )


def _of_command(request: Request) -> tuple[PlannedTask, ...]:
    """Those of the numbers; else those of the folder, which an earlier array has named."""
    numbers = array.numbers(request.array)
    if numbers is not None:
        return tuple(PlannedTask(number=number) for number in numbers)
    folder = Path(request.output)
    if request.output and is_array(folder):
        return read_plan(folder).tasks
    raise UsageError(
        f"--array {request.array}: a command has no values that say how many tasks there are",
        "name their numbers, such as --array 0-19",
    )


def chosen(request: Request, plan: TaskPlan) -> str:
    """The tasks to submit, as sbatch takes them. Raises UsageError for one that the plan lacks, and
    where none is missing.
    """
    numbers = array.numbers(request.array)
    known = tuple(task.number for task in plan.tasks)
    if numbers is not None:
        if absent := sorted(set(numbers) - set(known)):
            raise UsageError(
                f"--array: there is no task {absent[0]} among {len(known)} (0 to {known[-1]})",
                "a scan has one task for each value, counted from 0",
            )
        return array.spelled(numbers, request.array)
    if request.array.startswith(array.MISSING) and request.output:
        folder = Path(request.output)
        known = lacking(tasks_in(folder)) if is_array(folder) else known
        if not known:
            raise UsageError(
                f"--array missing: all tasks in {folder} are done or run",
                f"look at them with profharness report {folder}",
            )
    return array.spelled(known, request.array)


def of_this_task(
    request: Request, name: str, environment: Mapping[str, str], *, dry: bool = False
) -> Request:
    """What this task of the array measures, and into which folder. Unless it is a `dry` run, the
    plan is kept there. Raises UsageError outside of an array's task, for a task that the plan
    lacks, and where nothing can be written.
    """
    number = environment.get(TASK, "")
    if not number.isdecimal():
        raise UsageError(
            "--array: this is no task of a job array",
            "submit one by --launcher slurm, or start this in the script of `sbatch --array`",
        )
    folder = _folder(request, name, environment)
    plan = planned(request, name)
    task = next((one for one in plan.tasks if one.number == int(number)), None)
    if task is None:
        raise UsageError(
            f"--array: there is no task {number} among {len(plan.tasks)}",
            "a scan has one task for each value, counted from 0: --array=0-"
            f"{len(plan.tasks) - 1} for sbatch",
        )
    if not dry:
        keep(folder, plan)
    # axes are spelled as they are named, so that their values are those of the task
    axes = [part.partition("=")[0] for part in task.value.split()]
    product = itertools.product(*(getattr(request, axis) for axis in axes))
    values = next(itertools.islice(product, task.number, None)) if axes else ()
    return msgspec.structs.replace(
        request,
        array="",
        output=str(folder / try_name(task.number, environment)),
        **{axis: (value,) for axis, value in zip(axes, values, strict=True)},
    )


def keep(folder: Path, plan: TaskPlan) -> None:
    """Make the folder of all tasks, if need be, and keep the plan in it. Raises UsageError."""
    make_folder(folder, _ELSEWHERE)
    try:
        keep_plan(folder, plan)
    except OSError as error:
        raise unwritable(folder, error, _ELSEWHERE) from error


def _folder(request: Request, name: str, environment: Mapping[str, str]) -> Path:
    """The folder of all tasks: as asked, else one of the array's number."""
    if request.output:
        return Path(request.output).absolute()
    base = Path(os.environ.get("PROFHARNESS_OUTPUT", "traces")).absolute()
    return base / f"slurm-{environment.get('SLURM_ARRAY_JOB_ID', '0')}-{name}"
