"""What `profharness run` would do with an agent's arguments. No code here can start a run, and
nothing is started for the plan either: neither the workload's Python nor a container.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from profharness.cli import carry_out, split_line
from profharness.cli.agents.records import Plan
from profharness.cli.agents.roots import Roots
from profharness.cli.parsing.commands import OptionsOf, Settings, command_of
from profharness.cli.run import RunSwitches, build_request, planned_for
from profharness.errors import UsageError
from profharness.options.request import Request

_READ = ("model", "inputs", "topology", "body", "token_file", "ca")


def plan_run(roots: Roots, arguments: Sequence[str]) -> Plan:
    """The plan of `profharness run ARGUMENTS`, as its --dry-run prints it but for what only
    starting a program could tell (devices, versions of tools).

    Raises UsageError for arguments that ask for no plan, and for files outside of the roots.
    """
    words, rest = split_line(("run", *arguments))
    made: list[str] = []

    def run(
        ctx: typer.Context,
        switches: RunSwitches,
        settings: Annotated[Settings, OptionsOf(Request)],
    ) -> None:
        if switches.resume:
            raise UsageError("--resume goes on with a run: it is no plan", "leave it out")
        dry = msgspec.structs.replace(switches, dry_run=True)
        elsewhere = planned_for(dry)
        request = build_request(_scan(roots, dry.scan), settings, ctx.obj)
        _require_inside(roots, request)
        from profharness.cli.running.plan_text import dry_run_text
        from profharness.measure.planning import plan_run as planned

        prepared = planned(request, dry=True, elsewhere=elsewhere, starts=False)
        made.append(dry_run_text(prepared))

    carry_out(command_of("run", run), words[1:], rest)
    if not made:
        raise UsageError(
            "these arguments ask for no plan", "give those of `profharness run`, without --help"
        )
    return Plan(command=("profharness", "run", *arguments), plan=made[0])


def _scan(roots: Roots, scan: str | None) -> str | None:
    """The scan as it was named, and a scan file by its place in the roots."""
    return str(roots.find(scan)) if scan is not None and scan.endswith(".toml") else scan


def _require_inside(roots: Roots, request: Request) -> None:
    """Raises UsageError where the request would read a file that lies outside of the roots."""
    for name in _READ:
        for named in str(getattr(request, name)).split(","):
            if named and Path(named).exists():
                roots.find(str(Path(named).absolute()))
