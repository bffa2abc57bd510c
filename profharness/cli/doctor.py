"""`profharness doctor`: what works here, what is missing, and the fix."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.report.table import Column, Table, row_of
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import encoded, mention

if TYPE_CHECKING:
    from profharness.cli.doctor_checks import Checkup


def doctor(
    try_: Annotated[bool, typer.Option("--try", help="Run each layer on a tiny program.")] = False,
    python: Annotated[
        str, typer.Option(help="The workload's interpreter (default: this one).")
    ] = "",
    restore_caps: Annotated[
        bool,
        typer.Option("--restore-caps", help="Set the power caps again that a killed run left."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what works on this node, what is missing, and the fix."""
    from profharness.cli.doctor_checks import examine
    from profharness.cli.running import left_caps

    if restore_caps:
        left_caps.set_again()
    checkup = examine(python, try_layers=try_)
    if json:
        typer.echo(encoded(checkup).decode())
        return
    typer.echo(f"node       {checkup.host}, workload python {checkup.python}")
    for device in checkup.devices:
        memory = f", {device.memory_bytes / 2**30:.0f} GiB" if device.memory_bytes else ""
        typer.echo(f"device     {device.kind} {device.index}: {device.name or 'unnamed'}{memory}")
    width = shutil.get_terminal_size((110, 40)).columns
    for line in listing(_things(checkup), width=width):
        typer.echo(line)
    slept = (
        f"; the host slept {checkup.clocks.suspended_ns / 1e9:.1f} s since boot"
        if checkup.clocks.suspended_ns
        else ""
    )
    clocks = (f"{name} {ns} ns" for name, ns in checkup.clocks.resolution_ns.items())
    typer.echo(f"clocks     {', '.join(clocks)}{slept}")
    if not try_:
        mention("           `profharness doctor --try` runs each layer on a tiny program")


def _things(checkup: Checkup) -> Table:
    """What may work here, each with whether it does, and why or how to mend it."""
    rows = []
    for state in checkup.access:
        word = "open" if state.available else "closed"
        texts = [_one_line(text) for text in (state.why, state.fix) if text]
        rows.append(row_of("access", state.name.removeprefix("/dev/"), word, "\n".join(texts)))
    rows += [
        row_of(clash.severity, "clash", "found", f"{clash.message}\n{clash.advice}")
        for clash in checkup.clashes
    ]
    rows += [
        row_of("power cap", _host_of(one.file), one.state, str(one)) for one in checkup.power_caps
    ]
    for layer in checkup.layers:
        said = f"{layer.version}: {layer.why}" if layer.version and layer.why else ""
        said = said or layer.version or layer.why
        tried = f"\n{_one_line(layer.tried)}" if layer.tried else ""
        rows.append(row_of("layer", layer.name, _word(layer.available), f"{said}{tried}"))
    rows += [
        row_of("telemetry", source.name, _word(source.available), _one_line(source.why))
        for source in checkup.telemetry
    ]
    for plugin in checkup.plugins or ():
        why = _one_line(plugin.why or plugin.family.removeprefix("profharness."))
        rows.append(row_of("plug-in", plugin.name, _word(plugin.available), why))
    columns = (
        Column("kind", width=10),
        Column("name", width=15, gap=" "),
        Column("state", width=8, gap=" "),
        Column("why", gap=" ", wraps=True),
    )
    return Table("What works here", columns, tuple(rows))


def _host_of(file: str) -> str:
    return file.rpartition("/")[2].removesuffix(".json")


def _word(available: bool) -> str:
    return "ready" if available else "missing"


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
