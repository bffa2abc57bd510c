"""`python -m tests.samples.another_user RUN OUT`: read a run, then the same run moved to another
place and write-protected as another user, who may not write into it.

It is a process of its own that has no other threads, as it changes its user. What it found is
`told.json` in the folder OUT, beside the files that it wrote.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from unittest.mock import patch

from profharness.cli import run_cli
from tests.samples.figures import figures_of

NOBODY = 65534
HERE, ELSEWHERE = "here-here", "elsewhere"  # as long as each other: the trace holds the path


def main(run: Path, out: Path) -> None:
    """Read `run`, which is in a folder called HERE, and the same in ELSEWHERE beside it."""
    here = figures_of(run)
    statuses = [_report(run, out / "here.html"), _merge(run, out / "here.pftrace")]
    _take_the_same_ways(run, out)
    moved = run.parent.with_name(ELSEWHERE) / run.name
    moved.parent.mkdir()
    run.rename(moved)
    protect(moved, out)
    told = (out / "told.json").open("w", encoding="utf-8")
    _become_nobody()
    with told:
        may_write = os.access(moved / "manifest.json", os.W_OK)
        same = figures_of(moved) == here
        statuses += [_report(moved, out / "there.html"), _merge(moved, out / "there.pftrace")]
        statuses.append(run_cli(["ls", str(moved.parent)]))
        into_the_run = run_cli(["report", str(moved)])
        json.dump(
            {
                "may_write": may_write,
                "figures": len(here),
                "same": same,
                "statuses": statuses,
                "into_the_run": into_the_run,
            },
            told,
        )


def _take_the_same_ways(run: Path, out: Path) -> None:
    """Import now what the other user's commands will import: Python, its codecs and packages may
    lie where that user may not look, as below the home of root.
    """
    with patch("profharness.understand.report_run.can_keep", return_value=False):
        _report(run, out / "first.html")
        run_cli(["report", str(run)])
    run_cli(["ls", str(run.parent)])


def protect(run: Path, out: Path) -> None:
    """Let others read the run and nobody but root write into it, and let others write to `out`."""
    out.chmod(0o777)
    for path in (run, *run.rglob("*")):
        path.chmod(0o555 if stat.S_ISDIR(path.stat().st_mode) else 0o444)
    for path in (*out.parents, run.parent):
        own = path.stat().st_uid == os.getuid()
        if own and path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o011)


def _become_nobody() -> None:
    """Give up what makes root's reading differ from anyone else's."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _report(run: Path, page: Path) -> int:
    return run_cli(["report", str(run), "-o", str(page)])


def _merge(run: Path, trace: Path) -> int:
    return run_cli(["merge", str(run), "-o", str(trace)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
