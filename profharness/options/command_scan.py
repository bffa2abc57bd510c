"""What a scan over axes asks for, of a command or of a server's settings: its axes, its design, how
often each point is measured, what is run around an execution, and which figure of the script counts
(docs/command-line.md#axes).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from profharness.errors import UsageError
from profharness.options import axes, setting_axes
from profharness.options.batch import BatchOptions
from profharness.options.declared import AXES, Limit, Option, TextForm, declared, flag
from profharness.options.workload import for_commands
from profharness.rundir.executions.axes import RANKS, Axis, axes_of, requirement

ALSO_WITH_AXES = frozenset({"warmup", "seed", "strict"})
"""Options of scans that a scan of a command understands too."""
_MOST_RANKS = 1024
_ONLY = for_commands("name a command after --, with {NAME} where a value of the axis belongs")


def _rate_regex(text: str) -> None:
    if not text:
        return
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise UsageError(
            f"--rate-regex: {text!r} is no regular expression ({error})",
            r"write the text around the number: 'img/s: ([\d.]+)'",
        ) from error
    if groups != 1:
        raise UsageError(
            f"--rate-regex: {text!r} has {groups} groups, and one is the rate",
            r"put the number alone in brackets: 'img/s: ([\d.]+)'",
        )


def _requirements(texts: tuple[str, ...]) -> None:
    for text in texts:
        requirement(text)


class CommandScanOptions(BatchOptions, frozen=True, kw_only=True):
    """The options that make a command a scan; `axes` empty where it runs once."""

    axes: Annotated[
        dict[str, tuple[str, ...]],
        Option(
            "NAME=VALUES: execute the command with each value where it says {NAME}: "
            "batch=8,16,32, batch=8..64 (powers of two), workers=0..8:1 (counting), or "
            "env:OMP_NUM_THREADS=1,2,4 for a variable, power-cap=150,200 (watts) for the "
            "devices, or ranks=1,2,4. Of a model NAME is an option: threads=1,2 or "
            "shape:INPUT=64,128, and with --via triton instances=1,2,4 or queue-delay-us=0,1000. "
            "Repeatable: every combination.",
            AXES,
            names=("--scan",),
            metavar="NAME=VALUES",
            gather=axes.gather,
            text=TextForm(axes.parse, schema=axes.SCHEMA),
            check=axes.check,
        ),
    ] = {}  # noqa: RUF012  msgspec gives each struct its own
    design: Annotated[
        str,
        Option(
            "grid: every combination of the values (default); lhs:20: 20 of them, a Latin "
            "hypercube.",
            AXES,
            metavar="grid|lhs:N",
            check=axes.design_size,
        ),
    ] = "grid"
    repeats: Annotated[
        int,
        Option(
            "Executions of each point, in turn and at random (default 3).",
            AXES,
            limit=Limit(least=1, most=1000, says="{} is out of range", hint="ask for 1 to 1000"),
        ),
    ] = 3
    search: Annotated[
        int | None,
        Option(
            "Search the best setting of the grid by so many executions, instead of executing each "
            "point --repeats times.",
            AXES,
            metavar="LEVELS",
            limit=Limit(least=4, most=1000, says="{} is out of range", hint="ask for 4 to 1000"),
        ),
    ] = None
    warm_start: Annotated[
        tuple[str, ...],
        Option(
            "With --search: an earlier run over the same axes, whose points the search knows from "
            "the start. Repeatable.",
            AXES,
            metavar="RUN",
        ),
    ] = ()
    rate_regex: Annotated[
        str,
        Option(
            r"The rate is the median of the numbers that this finds in the output: "
            r"'img/s: ([\d.]+)'.",
            AXES,
            metavar="REGEX",
            only=_ONLY,
            check=_rate_regex,
        ),
    ] = ""
    require: Annotated[
        tuple[str, ...],
        Option(
            'A figure of the script (profharness_mark.value) that a point must keep: "accuracy>='
            '0.7"; of a server "p99_ms<=20". Repeatable.',
            AXES,
            check=_requirements,
        ),
    ] = ()
    setup: Annotated[
        str,
        Option(
            "Shell command before the first execution of each point.",
            AXES,
            metavar="CMD",
            only=_ONLY,
        ),
    ] = ""
    prepare: Annotated[
        str,
        Option("Shell command before each execution.", AXES, metavar="CMD", only=_ONLY),
    ] = ""
    cleanup: Annotated[
        str,
        Option(
            "Shell command after the last execution of each point.",
            AXES,
            metavar="CMD",
            only=_ONLY,
        ),
    ] = ""

    @property
    def all_axes(self) -> tuple[Axis, ...]:
        """The axes in the order in which they were given."""
        return axes_of(self.axes)

    @property
    def discarded(self) -> int:
        """How many executions of each point are discarded before its first that counts."""
        return 0 if self.warmup == "auto" else int(self.warmup)


def check(request: CommandScanOptions, words: Sequence[str]) -> None:
    """Raises UsageError where options of a scan over axes stand alone, or contradict it; `words`
    are those of the command, empty for a model.
    """
    own = [field for field in declared(CommandScanOptions) if field.option.topic is AXES]
    if not request.axes:
        for field in own:
            if getattr(request, field.name) != field.default:
                raise UsageError(
                    f"{flag(field.name)} goes with --scan",
                    "name an axis: --scan batch=8,16,32 -- python train.py {batch}",
                )
        return
    if request.search and request.design != "grid":
        raise UsageError(
            f"--search and --design {request.design}: a search chooses its points itself",
            "leave one of them out",
        )
    if request.warm_start and not request.search:
        raise UsageError(
            "--warm-start is for a search, and this scan measures every point",
            "add --search LEVELS, or leave it out",
        )
    if words:
        _check_ranks(request, words)
        axes.require_used(
            request.all_axes, (*words, request.setup, request.prepare, request.cleanup)
        )
    else:
        setting_axes.check(request, request.all_axes)
    _check_size(request)


def _check_size(request: CommandScanOptions) -> None:
    """Raises UsageError for a design that its grid does not hold, or that nobody waits for."""
    size, points = axes.design_size(request.design), 1
    for axis in request.all_axes:
        points *= len(axis.values)
    if size is not None and size > points:
        raise UsageError(
            f"--design {request.design}: the grid has only {points} points",
            "leave it out: the full grid is measured then",
        )
    if (size or points) > axes.MOST_POINTS:
        raise UsageError(
            f"--scan: the grid has {points} points, more than {axes.MOST_POINTS}",
            "take fewer values, or some of its points: --design lhs:20",
        )


def _check_ranks(request: CommandScanOptions, command: Sequence[str]) -> None:
    """Raises UsageError for numbers of ranks that are none."""
    if not axes.starts_ranks(request.all_axes, command):
        return
    for value in request.axes[RANKS]:
        if not value.isdecimal() or not 1 <= int(value) <= _MOST_RANKS:
            raise UsageError(
                f"--scan {RANKS}: {value} is no number of ranks of one node",
                f"write whole numbers from 1 to {_MOST_RANKS}, such as --scan {RANKS}=1,2,4",
            )
