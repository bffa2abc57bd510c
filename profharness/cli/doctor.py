"""`profharness doctor`: what works here, what is missing, and the fix."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import Annotated

import typer

_NARROWEST = 40  # of the last column


def doctor(
    try_: Annotated[bool, typer.Option("--try", help="Run each layer on a tiny program.")] = False,
    python: Annotated[
        str, typer.Option(help="The workload's interpreter (default: this one).")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what works on this node, what is missing, and the fix."""
    import msgspec

    from profharness.cli.doctor_checks import examine

    checkup = examine(python, try_layers=try_)
    if json:
        typer.echo(msgspec.json.encode(checkup).decode())
        return
    typer.echo(f"node       {checkup.host}, workload python {checkup.python}")
    for device in checkup.devices:
        memory = f", {device.memory_bytes / 2**30:.0f} GiB" if device.memory_bytes else ""
        typer.echo(f"device     {device.kind} {device.index}: {device.name or 'unnamed'}{memory}")
    for state in checkup.access:
        _row(
            "access",
            state.name.removeprefix("/dev/"),
            available=state.available,
            lines=[state.why, *([state.fix] if state.fix else [])],
            words=("open", "closed"),
        )
    for layer in checkup.layers:
        said = (
            (f"{layer.version}: {layer.why}" if layer.why else layer.version)
            if layer.version
            else layer.why
        )
        _row(
            "layer",
            layer.name,
            available=layer.available,
            lines=[*said.splitlines(), *([layer.tried] if layer.tried else [])],
        )
    for source in checkup.telemetry:
        _row("telemetry", source.name, available=source.available, lines=[source.why])
    for plugin in checkup.plugins or ():
        family = plugin.family.removeprefix("profharness.")
        _row("plug-in", plugin.name, available=plugin.available, lines=[plugin.why or family])
    slept = (
        f"; the host slept {checkup.clocks.suspended_ns / 1e9:.1f} s since boot"
        if checkup.clocks.suspended_ns
        else ""
    )
    typer.echo(
        "clocks     "
        f"{', '.join(f'{name} {ns} ns' for name, ns in checkup.clocks.resolution_ns.items())}{slept}"
    )
    if not try_:
        typer.echo(
            "           `profharness doctor --try` runs each layer on a tiny program", err=True
        )


def _row(
    kind: str,
    name: str,
    *,
    available: bool,
    lines: Sequence[str],
    words: tuple[str, str] = ("ready", "missing"),
) -> None:
    """One row of the table, its last column wrapped at the terminal's width."""
    head = f"{kind:<10} {name:<15} {words[0] if available else words[1]:<8} "
    width = max(shutil.get_terminal_size((110, 40)).columns - len(head), _NARROWEST)
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    ] or [""]
    for index, part in enumerate(wrapped):
        typer.echo(f"{head if index == 0 else ' ' * len(head)}{part}".rstrip())
