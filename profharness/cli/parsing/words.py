"""What the commands share with the dispatcher: the words after `--`, and the end by Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rest:
    """What stood after the first `--` of the line, and whether there was one."""

    words: tuple[str, ...]
    given: bool


class Interrupted(Exception):  # noqa: N818  named by what happened
    """Ctrl-C, which newer versions of typer would make a silent exit of."""
