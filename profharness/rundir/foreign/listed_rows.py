"""A row of the list of runs: what a manifest says of the run, and what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from profharness.errors import InputError
from profharness.rundir.foreign.listing import ListedFinding, ListedRun, read_listed
from profharness.rundir.harness_process import state_of

SCHEMA = 1
DAMAGED = "damaged"


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as `ls --json` has it.

    `state` is running, done, failed, interrupted, killed (its harness ended without a word) or
    damaged (`error` says why its manifest cannot be read). `exit_status` is that of a recorded
    command, which leaves the run itself done; `points` counts a point once, however often it was
    measured.
    """

    name: str
    path: str
    state: str
    started: str = ""
    kind: Literal["scan", "command", ""] = ""
    scan: str | None = None
    command: tuple[str, ...] | None = None
    exit_status: int | None = None
    points: int = 0
    layers: tuple[str, ...] = ()
    split_passes: dict[str, tuple[str, ...]] = {}
    findings: tuple[ListedFinding, ...] = ()
    error: str = ""


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """The document of `ls --json`."""

    schema: int = SCHEMA
    runs: tuple[RunRow, ...] = ()


def run_row(root: Path) -> RunRow:
    """The row of the run in this folder; that of a damaged one names the reason."""
    try:
        run = read_listed(root)
    except InputError as error:
        return RunRow(name=root.name, path=str(root), state=DAMAGED, error=error.message)
    return RunRow(
        name=root.name,
        path=str(root),
        state=state_of(run),
        started=run.created,
        kind=run.kind,
        scan=None if run.scan is None else run.scan.name,
        command=run.command if run.kind == "command" else None,
        exit_status=run.exit_status,
        points=len({point.id for point in run.points}),
        layers=tuple(layer.name for layer in run.layers),
        split_passes={record.name: record.split for record in run.passes if record.split},
        findings=_each_once(run),
    )


def _each_once(run: ListedRun) -> tuple[ListedFinding, ...]:
    """The findings that were told while the run was made; one of several points stands once."""
    return tuple(dict.fromkeys(run.findings))
