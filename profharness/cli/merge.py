"""`profharness merge`: runs or loose trace files into one Perfetto trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.errors import UsageError
from profharness.options.declared import OUTPUT, SELECTION, Limit, Option
from profharness.options.many_files import ManyFiles
from profharness.options.steps import StepRange
from profharness.rundir.shown.screen import mention, one_line

if TYPE_CHECKING:
    from profharness.trace.parts.cutting import Cut


class MergeLine(ManyFiles, frozen=True, kw_only=True):
    """What a line of `merge` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option("Run directories or trace files.", argument=True, metavar="RUN|FILE..."),
    ]
    output: Annotated[
        Path | None,
        Option(
            "Where to write; .gz compresses. A single run: its own merged.pftrace.",
            OUTPUT,
            names=("--output", "-o"),
        ),
    ] = None
    overlay: Annotated[bool, Option("Shift each pass, point by point, onto the bare pass.")] = False
    allow_unaligned: Annotated[
        bool, Option("Merge sources that cannot be put on one clock, marked.")
    ] = False
    window: Annotated[
        str | None,
        Option(
            "Only records that start between these times after the first record: 1.5s:2s, "
            "250ms:, :30s.",
            SELECTION,
            metavar="A:B",
        ),
    ] = None
    steps: Annotated[
        str | None,
        Option(
            "Only steps of these numbers (B not included) and what was launched in them: "
            "10:30, 10:, :30.",
            SELECTION,
            metavar="A:B",
        ),
    ] = None
    step_range: StepRange = ""
    only_ranks: Annotated[
        str | None, Option("Only these ranks: 0,3,8-15.", SELECTION, metavar="LIST")
    ] = None
    max_kernels: Annotated[
        int | None,
        Option(
            "Only the first N kernels; a viewer needs about 1.4 kB for each.",
            SELECTION,
            limit=Limit(least=1),
        ),
    ] = None
    critical_path: Annotated[
        bool,
        Option("Also the critical path of each process, as a track beside its steps."),
    ] = False
    gpu_repr: Annotated[
        str,
        Option(
            "render-stage, or track-event for viewers older than Perfetto v55.",
            choices=("render-stage", "track-event"),
        ),
    ] = "render-stage"
    force: Annotated[bool, Option("Overwrite the output.", OUTPUT)] = False
    verbose: Annotated[
        bool,
        Option(
            "Print how each source was aligned, and every note of the readers.",
            OUTPUT,
            names=("--verbose", "-v"),
        ),
    ] = False


def merge(line: MergeLine) -> None:
    """Merge runs or trace files into one Perfetto trace on one clock, and list what was left
    out.
    """
    from profharness.cli.sharing.many import workers_of
    from profharness.understand.merge.command import MergeOptions, merge_to_file

    report = merge_to_file(
        list(line.paths),
        line.output,
        MergeOptions(
            overlay=line.overlay,
            allow_unaligned=line.allow_unaligned,
            gpu_repr=line.gpu_repr,
            force=line.force,
            cut=_cut(line),
            max_kernels=line.max_kernels,
            workers=workers_of(line),
            critical_path=line.critical_path,
        ),
    )
    for sentence in report.lines if line.verbose else report.brief:
        mention(sentence)
    typer.echo(one_line(str(report.path)))


def _cut(line: MergeLine) -> Cut:
    """What is kept. Raises UsageError for a range or list of a wrong form."""
    from profharness.trace.parts import step_ranges
    from profharness.trace.parts.cutting import Cut
    from profharness.trace.parts.cutting import StepRange as Ranges
    from profharness.units import parse_duration_ns

    if line.step_range:
        step_ranges.compiled(line.step_range)
        if line.steps is None:
            raise UsageError(
                "--step-range belongs to --steps",
                "it says which ranges are steps; --steps A:B says which of them to keep",
            )
    return Cut(
        window=None
        if line.window is None
        else _range(line.window, "--window", lambda end: parse_duration_ns(end, "--window")),
        steps=None if line.steps is None else _range(line.steps, "--steps", _step),
        ranks=None if line.only_ranks is None else _ranks(line.only_ranks),
        step_range=Ranges(line.step_range) if line.step_range else None,
    )


def _range(text: str, option: str, end: Callable[[str], int]) -> tuple[int | None, int | None]:
    """Both ends of `A:B`; an end that is not given is open. Raises UsageError for anything else,
    and for an empty range.
    """
    low, colon, high = text.partition(":")
    if not colon or not (low or high):
        raise UsageError(f"{option}: {text!r} is not a range", "write A:B, A: or :B")
    ends = (end(low) if low else None, end(high) if high else None)
    if ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
        raise UsageError(f"{option}: the range {text} is empty", "the second end is not included")
    return ends


def _step(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(
            f"--steps: {text!r} is not the number of a step", "write A:B, such as 10:30"
        )
    return int(text)


def _ranks(text: str) -> frozenset[int]:
    ranks: set[int] = set()
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if not low.isdecimal() or not (high or low).isdecimal() or int(high or low) < int(low):
            raise UsageError(
                f"--only-ranks: {part.strip()!r} is not a rank or a range of ranks",
                "write a list such as 0,3,8-15",
            )
        ranks |= set(range(int(low), int(high or low) + 1))
    return frozenset(ranks)
