"""`profharness doctor`: what works here, what is missing, and the fix."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    try_: Annotated[bool, typer.Option("--try", help="Run each layer on a tiny program.")] = False,
    python: Annotated[str, typer.Option(help="The workload's interpreter (default: this one).")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what works on this node, what is missing, and the fix."""
    import msgspec

    from profharness.doctor import examine

    checkup = examine(python, try_layers=try_)
    if json:
        typer.echo(msgspec.json.encode(checkup).decode())
        return
    typer.echo(f"node       {checkup.host}, workload python {checkup.python}")
    for device in checkup.devices:
        memory = f", {device.memory_bytes / 2**30:.0f} GiB" if device.memory_bytes else ""
        typer.echo(f"device     {device.kind} {device.index}: {device.name or 'unnamed'}{memory}")
    for layer in checkup.layers:
        first, *rest = (layer.version or layer.why).splitlines() or [""]
        typer.echo(f"layer      {layer.name:<15} {'ready' if layer.available else 'missing':<8} {first}")
        for line in [*rest, *([layer.tried] if layer.tried else [])]:
            typer.echo(f"           {'':<15} {'':<8} {line}")
    for source in checkup.telemetry:
        typer.echo(f"telemetry  {source.name:<15} {'ready' if source.available else 'missing':<8} {source.why}")
    slept = f"; the host slept {checkup.clocks.suspended_ns / 1e9:.1f} s since boot" if checkup.clocks.suspended_ns else ""
    typer.echo(f"clocks     {', '.join(f'{name} {ns} ns' for name, ns in checkup.clocks.resolution_ns.items())}{slept}")
    if not try_:
        typer.echo("           `profharness doctor --try` runs each layer on a tiny program", err=True)
