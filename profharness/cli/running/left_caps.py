"""What every command that measures does first: set the power caps again that a dead run left."""

from __future__ import annotations

from profharness.measure.caps.left import restore_left
from profharness.rundir.shown.screen import mention


def set_again() -> None:
    """Set them, and say so; nothing on nearly every node."""
    for told in restore_left():
        mention(f"profharness: {told}")
