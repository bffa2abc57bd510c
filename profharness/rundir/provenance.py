"""Where the code came from that a run executed."""

from __future__ import annotations

import subprocess

from profharness.rundir.manifest import GitState


def git_state() -> GitState | None:
    """The version of the code in the working directory, where it is under git."""

    def ask(*words: str) -> str:
        return subprocess.run(
            ("git", *words), capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return GitState(
            commit=ask("rev-parse", "HEAD"),
            branch=ask("rev-parse", "--abbrev-ref", "HEAD"),
            dirty=bool(ask("status", "--porcelain", "--untracked-files=no")),
        )
    except (OSError, subprocess.SubprocessError):
        return None
