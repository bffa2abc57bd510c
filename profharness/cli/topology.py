"""`profharness topology`: which CPUs each process of a multi-process scan gets, written for this
node.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import UsageError
from profharness.node import topology as places
from profharness.report.table import Column, Table, row_of
from profharness.report.text.listing import listing
from profharness.rundir.outputs import require_plain
from profharness.rundir.paths import write_atomic
from profharness.rundir.shown.screen import mention


def topology(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: print).")
    ] = None,
    per: Annotated[
        str,
        typer.Option(
            help=(
                "l3 (a process per last-level cache), core, numa (per NUMA node), "
                "gpu (the cores nearest to each GPU)."
            )
        ),
    ] = "l3",
    smt: Annotated[
        bool, typer.Option("--smt", help="Keep every hardware thread, not one per core.")
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(help="lumi: the documented map of a LUMI-G node, in place of this node's."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write the CPU lists of a multi-process scan.

    \b
    profharness topology -o places.json
    profharness run particlenet --topology places.json --streams 1,2 --pin core
    """
    found = (
        places.lumi()
        if _machine(machine)
        else places.propose(places.look(), _grouping(per), smt=smt)
    )
    text = places.render(found)
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.exists() and not force:
        raise UsageError(f"{output} exists", "name another file, or add --force to overwrite it")
    require_plain(output, "name another file, or leave -o out to print it")
    write_atomic(output, text.encode())
    columns = (
        Column("process", "right", width=3),
        Column(gap=": CPUs ", width=0),
        Column("device"),
    )
    rows = (
        row_of(str(number), places.ranges(place.cpus), place.device)
        for number, place in enumerate(found.places)
    )
    for line in listing(Table("processes", columns, tuple(rows))):
        mention(f"process {line}")
    mention(f"made {output}")


def _grouping(per: str) -> places.Grouping:
    known = next((name for name in places.GROUPINGS if name == per), None)
    if known is None:
        raise UsageError(
            f"--per: {per!r} is not a way to group CPUs", f"use {', '.join(places.GROUPINGS)}"
        )
    return known


def _machine(name: str | None) -> bool:
    if name not in (None, "lumi"):
        raise UsageError(
            f"--machine: no map of {name!r} is known", "lumi is; for the node at hand leave it out"
        )
    return name is not None
