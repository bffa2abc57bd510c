"""`profharness mcp`: a server of the Model Context Protocol, through which an agent asks for
answers and figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from profharness.errors import Unavailable
from profharness.options.declared import Option


class McpLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `mcp` asks for."""

    root: Annotated[
        tuple[Path, ...],
        Option(
            "A folder whose runs and trace files may be read, with all below it (default: the "
            "current folder). Repeatable.",
            metavar="FOLDER",
        ),
    ] = ()


def mcp(line: McpLine) -> None:
    """Let an agent ask for answers and figures, over stdin and stdout; needs the extra `mcp`.

    \b
    An agent's configuration names this command, for example:
      "profharness": {"command": "profharness", "args": ["mcp", "--root", "FOLDER"]}
    """
    from profharness.cli.agents.roots import roots_of

    roots = roots_of(line.root)
    try:
        from profharness.cli.agents.server import server_of
    except ImportError as error:
        raise Unavailable(
            f"an agent's server needs the package mcp, 2.x ({error})",
            "pip install 'profharness[mcp]'",
        ) from error
    server_of(roots).run()
