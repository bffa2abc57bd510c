"""Commands that end with the harness, however that ends: `wrappers/leash.py` stands around them."""

from __future__ import annotations

import sys

from profharness.launchers.command import Command
from profharness.launchers.wrappers import wrappers_dir


def leashed(command: Command) -> Command:
    """The same command, which would otherwise outlive a harness that is killed. The leash itself is
    under no hook (-S), its child is. Raises Unavailable when the installation lacks it.
    """
    return command.with_prefix((sys.executable, "-S", str(wrappers_dir() / "leash.py"), "--"))
