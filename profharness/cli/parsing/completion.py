"""Shell completion by the command-line library's own means: `--install-completion`,
`--show-completion`, and its answers.

The library completes a group of commands. This one knows their names from the literal list, and
imports a command's module only when words behind its name are completed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import typer
import typer.core

from profharness.cli.parsing.commands import load


def answer(commands: Sequence[tuple[str, str]], words: Sequence[str], variable: str) -> int:
    """Answer the shell that asks through the environment, or install or show what makes it ask; the
    exit code.

    `commands` are names, each with what it does; `variable` is the environment variable through
    which the shell asks.
    """
    if _behind_two_dashes():
        return 0  # the words of a command that is no part of profharness: the shell completes files
    app = typer.Typer(add_completion=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(cls=_group(commands))(_nothing)
    try:
        typer.main.get_command(app).main(
            args=list(words), prog_name="profharness", complete_var=variable
        )
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0


def _nothing() -> None:
    """The group has no options of its own beside those of completion."""


def _behind_two_dashes() -> bool:
    before = os.environ.get("COMP_WORDS", "").split()[: int(os.environ.get("COMP_CWORD") or 0)]
    return "--" in before


def _group(commands: Sequence[tuple[str, str]]) -> type[typer.core.TyperGroup]:
    known = dict(commands)

    class Commands(typer.core.TyperGroup):
        """All commands, each loaded when its own words are completed."""

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  typer gives it
            return list(known)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  typer gives it
            """What is listed of a command: its name and what it does."""
            return typer.core.TyperCommand(cmd_name, help=known.get(cmd_name))

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ARG002  typer gives it
            """The command whose words are completed."""
            name, *rest = args
            return (name, load(name), rest) if name in known else (None, None, rest)

    return Commands
