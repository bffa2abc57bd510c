"""`profharness merge`: runs or loose trace files into one Perfetto trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import UsageError
from profharness.options.many_files_flags import Dask, DaskWorkers, Processes
from profharness.options.step_flags import StepRange


def merge(
    paths: Annotated[
        list[Path], typer.Argument(help="Run directories or trace files.", metavar="RUN|FILE...")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write; .gz compresses. A single run: its own merged.pftrace.",
        ),
    ] = None,
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Shift each pass, point by point, onto the bare pass.")
    ] = False,
    allow_unaligned: Annotated[
        bool,
        typer.Option(
            "--allow-unaligned", help="Merge sources that cannot be put on one clock, marked."
        ),
    ] = False,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="A:B",
            help=(
                "Only records that start between these times after the first record: 1.5s:2s, "
                "250ms:, :30s."
            ),
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            metavar="A:B",
            help=(
                "Only steps of these numbers (B not included) and what was launched in them: "
                "10:30, 10:, :30."
            ),
        ),
    ] = None,
    step_range: StepRange = "",
    only_ranks: Annotated[
        str | None, typer.Option("--only-ranks", metavar="LIST", help="Only these ranks: 0,3,8-15.")
    ] = None,
    max_kernels: Annotated[
        int | None,
        typer.Option(
            "--max-kernels",
            min=1,
            help="Only the first kernels; a viewer needs about 1.4 kB for each.",
        ),
    ] = None,
    gpu_repr: Annotated[
        str, typer.Option(help="render-stage, or track-event for viewers older than Perfetto v55.")
    ] = "render-stage",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Say the alignment of every source and every note of the readers.",
        ),
    ] = False,
    processes: Processes = None,
    dask: Dask = None,
    dask_workers: DaskWorkers = 0,
) -> None:
    """Merge runs or trace files into one Perfetto trace on one clock. What was left out is said."""
    from profharness.trace.parts import step_ranges
    from profharness.trace.parts.cutting import Cut
    from profharness.trace.parts.cutting import StepRange as Ranges
    from profharness.understand.many.jobs import Workers
    from profharness.understand.merge.sources import MergeOptions, merge_to_file
    from profharness.units import parse_duration_ns

    if step_range:
        step_ranges.compiled(step_range)
        if steps is None:
            raise UsageError(
                "--step-range belongs to --steps",
                "it says which ranges are steps; --steps A:B says which of them to keep",
            )
    wanted = Cut(
        window=None
        if window is None
        else _range(window, "--window", lambda end: parse_duration_ns(end, "--window")),
        steps=None if steps is None else _range(steps, "--steps", _step),
        ranks=None if only_ranks is None else _ranks(only_ranks),
        step_range=Ranges(step_range) if step_range else None,
    )
    report = merge_to_file(
        paths,
        output,
        MergeOptions(
            overlay=overlay,
            allow_unaligned=allow_unaligned,
            gpu_repr=gpu_repr,
            force=force,
            cut=wanted,
            max_kernels=max_kernels,
            workers=Workers(processes, dask, dask_workers),
        ),
    )
    for line in report.lines if verbose else report.brief:
        typer.echo(line, err=True)
    typer.echo(str(report.path))


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
