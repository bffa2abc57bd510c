"""The answer of a command on stdout: the summary for a terminal, and paths of what was made."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from profharness.analysis.records import Summary
from profharness.rundir.shown.screen import Painted, mention, visible


def show(summary: Summary, root: Path, report: Path) -> None:
    """The summary on stdout; its last lines name what was made."""
    merged = root / "merged.pftrace"
    made = [(near(report), "")]
    if merged.exists():  # not so in a run that cannot be written into
        made.append((near(merged), f"profharness view {near(root)}"))
    show_made(summary, made, report)


def show_made(summary: Summary, made: Sequence[Sequence[str]], kept: Path) -> None:
    """The summary on stdout, and `made` as its last lines; `kept` is where the answer is, too."""
    from profharness.report.text.classic_lines import classic_lines
    from profharness.report.text.terminal import render

    text = render(summary, width(), sys.stdout.isatty() and not os.environ.get("NO_COLOR"), made)
    classic = "".join(f"{line}\n" for line in classic_lines(summary))
    printed(Painted(f"{visible(classic)}\n{text}") if classic else text, kept)


def width() -> int:
    """Of the terminal, or what a pipe gets."""
    return shutil.get_terminal_size((110, 40)).columns


def printed(text: str, kept: Path) -> None:
    """Write to stdout. Where its reader has gone (`| head`), or it takes nothing more, the run is
    as good as ever: say where its answer is kept.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that nothing is tried again at exit
        why = (
            ""
            if isinstance(error, BrokenPipeError)
            else f"stdout takes nothing ({error.strerror}); "
        )
        mention(f"profharness: {why}the answer is in {near(kept)}")


def near(path: Path) -> str:
    """Relative to the working directory where it lies below it, and where there still is one."""
    try:
        absolute, here = path.absolute(), Path.cwd()
    except FileNotFoundError:
        return str(path)
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)
