"""What Ctrl-C leaves of a run, and the way on from there."""

from __future__ import annotations

import shlex
from pathlib import Path

from profharness.rundir.paths import MANIFEST

PROGRAM = "profharness"


def way_on(root: Path, shown: str, *, is_scan: bool) -> str:
    """What to do after a run that was interrupted while it measured: a scan goes on where it was, a
    command has its report. `shown` is how the user would name `root`.
    """
    if not (root / MANIFEST).exists():
        return f"{PROGRAM}: nothing was measured yet, and nothing is left to clean up"
    named = shlex.quote(shown)
    if is_scan:
        return (
            f"{PROGRAM}: what was measured is kept; go on by `{PROGRAM} run --resume -o {named}`, "
            f"or see what there is by `{PROGRAM} report {named}`"
        )
    return (
        f"{PROGRAM}: what was recorded is kept; `{PROGRAM} report {named}` shows it "
        "(a command starts from its beginning: it cannot be resumed)"
    )


def way_to_report(shown: str) -> str:
    """What to do after a run that was measured whole and whose analysis was interrupted."""
    return (
        f"{PROGRAM}: all that was asked for is measured and kept; "
        f"`{PROGRAM} report {shlex.quote(shown)}` analyses it"
    )
