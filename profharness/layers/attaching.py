"""What layers share that attach to a process which runs already. Pure."""

from __future__ import annotations

from profharness.errors import Unavailable
from profharness.launchers.command import Command
from profharness.layers.contract import Description
from profharness.layers.releases import Version
from profharness.layers.rocm_versions import Installed

OTHERWISE = "--profile telemetry attaches to everything; or start the program anew under the layer"


def words_of_tool(command: Command) -> tuple[str, ...]:
    """The words that stand before `--` and the program's own in a prepared command."""
    return command.argv[: command.argv.index("--")]


def require(about: Description, tool: Installed, since: Version) -> None:
    """Raises Unavailable for a tool that is there and older than `since`, its own version."""
    if tool.found and tool.own < since:
        raise Unavailable(
            f"the {about.name} here (of ROCm {tool.release}) cannot attach to a running process",
            f"that came with {about.attaches}\n{OTHERWISE}",
        )
