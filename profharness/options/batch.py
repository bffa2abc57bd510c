"""What a batch job asks its scheduler for, the fifth chapter of `Request`.

Each value becomes one line of a job script (`measure.batch.script`), so that none may hold more
than one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from profharness.errors import UsageError
from profharness.options import array
from profharness.options.declared import BATCH, Limit, Option, declared
from profharness.options.pinning import PinningOptions

_NAME = re.compile(r"[A-Za-z0-9_.,:@%+-]+")
_MODULE = re.compile(r"[A-Za-z0-9_./:@+-]+")
_TIME = re.compile(r"(?:\d+-)?\d+(?::\d+){0,2}")
_WORD = re.compile(r"-[^\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LINE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]+")

_OURS = (
    *("--signal", "--output", "-o", "--chdir", "-D", "--job-name", "-J", "--parsable", "--wrap"),
    *("--array", "-a"),
)
_AT_LEAST_ONE = Limit(least=1, says="{} is too few", hint="ask for at least 1")
Check = Callable[[str | tuple[str, ...]], None]


def _each(pattern: re.Pattern[str], option: str, hint: str) -> Check:
    """A check that raises UsageError for a value, or one of several, that is no such text."""

    def check(values: str | tuple[str, ...]) -> None:
        for text in (values,) if isinstance(values, str) else values:
            if (text or not isinstance(values, str)) and not pattern.fullmatch(text):
                raise UsageError(f"{option}: {text!r} cannot be written into a job script", hint)

    return check


def _sbatch_args(words: tuple[str, ...]) -> None:
    _each(_WORD, "--sbatch-arg", "write one option in one line, such as --sbatch-arg=--qos=debug")(
        words
    )
    for word in words:
        name = word.partition("=")[0]
        if name in _OURS:
            raise UsageError(
                f"--sbatch-arg: {name} is set by profharness",
                "leave it out; --output, --name and --array of profharness say where runs go",
            )


class BatchOptions(PinningOptions, frozen=True, kw_only=True):
    """What `--launcher slurm` asks for a job; empty where the site's default holds."""

    account: Annotated[
        str,
        Option(
            "The account, or project, that the job is charged to.",
            BATCH,
            check=_each(_NAME, "--account", "write the name as `sacctmgr show user` has it"),
        ),
    ] = ""
    partition: Annotated[
        str,
        Option(
            "The partition of nodes that the job runs in.",
            BATCH,
            check=_each(_NAME, "--partition", "`sinfo` lists the partitions"),
        ),
    ] = ""
    nodes: Annotated[
        int | None, Option("Nodes that the ranks are spread over.", BATCH, limit=_AT_LEAST_ONE)
    ] = None
    gpus_per_task: Annotated[
        int | None, Option("Devices of each rank.", BATCH, limit=_AT_LEAST_ONE)
    ] = None
    cpus_per_task: Annotated[
        int | None, Option("Cores of each rank.", BATCH, limit=_AT_LEAST_ONE)
    ] = None
    time_limit: Annotated[
        str,
        Option(
            "Time limit of the job: 30 (minutes), 1:30:00 or 1-12:00:00.",
            BATCH,
            check=_each(_TIME, "--time-limit", "write minutes, H:MM:SS or D-HH:MM:SS"),
        ),
    ] = ""
    stop_before: Annotated[
        int,
        Option(
            "Seconds before the time limit at which the run is ended so that it can be read "
            "(default 120, and at most a quarter of --time-limit).",
            BATCH,
            limit=Limit(least=1, most=65535, says="{} is out of range", hint="ask for 1 to 65535"),
        ),
    ] = 120
    module: Annotated[
        tuple[str, ...],
        Option(
            "A module that the job script loads first. Repeatable.",
            BATCH,
            check=_each(_MODULE, "--module", "write one module's name, such as rocm/6.4.1"),
        ),
    ] = ()
    sbatch_arg: Annotated[
        tuple[str, ...],
        Option(
            "One more #SBATCH line, for example --sbatch-arg=--qos=debug. Repeatable.",
            BATCH,
            check=_sbatch_args,
        ),
    ] = ()
    array: Annotated[
        str,
        Option(
            "One task of a job array for each value of a scan, or for each number of a command: "
            "all, missing (those not done yet), 7, or 0-19%4 (4 at a time). All write into "
            "--output, each into a run of its own.",
            BATCH,
            metavar="TASKS",
            check=array.check,
        ),
    ] = ""
    job_line: Annotated[
        tuple[str, ...],
        Option(
            "One more line of shell in the job script, before the run starts. Repeatable.",
            BATCH,
            check=_each(_LINE, "--job-line", "give each line by an option of its own"),
        ),
    ] = ()

    @property
    def asks_for_a_job(self) -> tuple[str, ...]:
        """The options of this chapter that were given, as they are spelled."""
        return tuple(
            field.names[0]
            for field in declared(BatchOptions)
            if field.option.topic is BATCH
            and field.name != "array"  # a script of the user's own may start its tasks
            and getattr(self, field.name) != field.default
        )


def minutes(time: str) -> float:
    """The minutes of a time limit in Slurm's forms: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, mins, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, mins, seconds = parts
    else:
        hours, (mins, seconds) = 0, (*parts, 0)[:2]
    return int(days or 0) * 1440 + hours * 60 + mins + seconds / 60
