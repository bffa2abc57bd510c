"""Going on with a run that somebody else may have made: its manifest names the interpreter, the
model and the commands that are started, and files and addresses that these open, so that the user
is shown them first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from profharness.cli.running.plan_text import asked_text, starts_text
from profharness.errors import UsageError
from profharness.measure.planning import plan_run
from profharness.options.request import Request
from profharness.rundir.shown.screen import one_line


def require_consent(recorded: Request, root: Path, *, agreed: bool) -> None:
    """Show what going on would start, with which model, files and addresses, and ask, unless it was
    `agreed` to on the line. Nothing is started for that.

    Raises UsageError where the user does not agree, or cannot be asked.
    """
    prepared = plan_run(recorded, dry=True, starts=False)
    print(
        f"resume  {one_line(str(root))} has no seal of yours: somebody else made this run, "
        "or changed it, or you did on another host, in another folder or by an older version.\n"
        f"        Going on starts, in {one_line(str(Path.cwd()))}:\n{starts_text(prepared)}\n"
        f"        as it was asked to:\n{asked_text(recorded)}",
        file=sys.stderr,
    )
    if agreed:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"--resume: {root} was not made by you on this host, and nobody can be asked",
            "look at what it starts, above; if you want that: --yes",
        )
    print("Start this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError(f"--resume: nothing was started in {root}", "make a new run of your own")
