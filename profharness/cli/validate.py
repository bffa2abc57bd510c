"""`profharness validate`: check a Perfetto trace for faults that viewers pass over silently."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.rundir.shown.screen import encoded, lines_text, one_line

if TYPE_CHECKING:
    from profharness.readers.perfetto.faults import Check


def validate(
    path: Annotated[
        Path,
        typer.Argument(
            help=(
                "Perfetto protobuf trace of any writer, plain or gzipped; of a run, "
                "its merged trace."
            ),
            metavar="FILE.pftrace|RUN",
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Check a Perfetto trace. Exit code 1 when it has a fault, 4 when it is no readable Perfetto
    trace.
    """
    from profharness.readers.border import reading
    from profharness.readers.perfetto.check import check_file

    path = _merged(path) if path.is_dir() else path
    with reading(path):
        check = check_file(path)
    typer.echo(f"{_as_json(path, check)}\n" if json else _as_text(path, check), nl=False)
    if check.faults:
        raise typer.Exit(1)


def _merged(run: Path) -> Path:
    """The merged trace of a run directory. Raises InputError where there is none."""
    from profharness.errors import InputError
    from profharness.rundir.foreign.inside import Inside
    from profharness.rundir.paths import RunDir

    merged = RunDir.open(run).merged
    if not merged.is_file():
        raise InputError(
            f"{run} holds no merged trace yet", f"make it with `profharness merge {run}`"
        )
    return Inside(run).require(merged)


def _as_json(path: Path, check: Check) -> str:
    import msgspec

    faults = [
        {
            "rule": f.rule,
            "count": f.count,
            "packet": f.packet,
            "offset": f.offset,
            "message": f.message,
        }
        for f in check.faults
    ]
    return encoded(
        {
            "schema": 1,
            "source": str(path),
            "holdings": msgspec.to_builtins(check.holdings),
            "faults": faults,
            "notes": check.notes,
        }
    ).decode()


def _as_text(path: Path, check: Check) -> str:
    from profharness.units import format_bytes, format_ns, format_number

    held = check.holdings
    counts = (
        ("GPU events", held.gpu_events),
        ("slices", held.slices),
        ("instants", held.instants),
        ("counter values", held.counter_values),
        ("arrows", held.arrows),
        ("tracks", held.tracks),
        ("sequences", held.sequences),
        ("machines", held.machines),
    )
    lines = [
        f"{one_line(str(path))}: {format_bytes(held.bytes)}, {format_number(held.packets)} packets",
        "  holds  "
        + (
            ", ".join(
                f"{format_number(count)} {what if count > 1 else what[:-1]}"
                for what, count in counts
                if count
            )
            or "nothing"
        ),
    ]
    if held.first_ns is not None and held.last_ns is not None:
        lines.append(f"  spans  {format_ns(held.last_ns - held.first_ns)} from {held.first_ns} ns")
    lines += [f"  note   {note}" for note in check.notes]
    for fault in check.faults:
        lines.append(
            f"  FAULT  {fault.rule}: {format_number(fault.count)} x {fault.message}"
            f" (first: packet {fault.packet}, byte {fault.offset})"
        )
    lines.append(
        f"  {len(check.faults)} kind{'s' if len(check.faults) > 1 else ''} of fault"
        if check.faults
        else "  no faults"
    )
    return lines_text(lines)
