"""A real client of `profharness mcp`: the protocol's own, which starts the command as a process and
checks each answer against the schema that the server told.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client


@dataclass(frozen=True)
class Agent:
    """The client, from code that is not asynchronous; `portal` runs what is."""

    client: Client
    portal: BlockingPortal

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool that gives one."""
        result = self.portal.call(self.client.call_tool, tool, arguments)
        assert not result.is_error, result.content[0].text
        assert result.structured_content is not None
        return result.structured_content

    def refused(self, tool: str, **arguments: Any) -> str:
        """What a tool says that gives none."""
        result = self.portal.call(self.client.call_tool, tool, arguments)
        assert result.is_error, result.structured_content
        assert result.structured_content is None
        return str(result.content[0].text)


@contextmanager
def agent(*roots: Path, cwd: Path | None = None) -> Iterator[Agent]:
    """A client of a server that may read below these folders (none: below `cwd`)."""
    # the protocol's library takes a second: here, and not where each process collects the tests
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters, stdio_client

    words = [word for root in roots for word in ("--root", str(root))]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "profharness", "mcp", *words], cwd=cwd
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(server))) as client,
    ):
        yield Agent(client, portal)
