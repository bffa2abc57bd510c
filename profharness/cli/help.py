"""`profharness help`: the help of a command, or of one topic of its options."""

from __future__ import annotations

from typing import Annotated

import msgspec

from profharness.cli import COMMANDS, run_cli
from profharness.options.declared import TOPICS, Option


class HelpLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `help` asks for."""

    command: Annotated[
        str | None,
        Option(
            "The command (default: a list of all).",
            argument=True,
            metavar="[COMMAND]",
            examples=tuple(name for name, _ in COMMANDS),
        ),
    ] = None
    topic: Annotated[
        str | None,
        Option(
            "A topic that the help of the command names, such as serving of run.",
            argument=True,
            metavar="[TOPIC]",
            examples=tuple(topic.word for topic in TOPICS),
        ),
    ] = None


def help(line: HelpLine) -> int:  # noqa: A001  a command's function has its name
    """Show the help of a command, or of one topic of its options.

    \b
    profharness help run
    profharness help run serving
    """
    words = (line.command, "--help", line.topic)
    return run_cli([word for word in words if word is not None])
