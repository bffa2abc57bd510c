"""Where layers are prepared in tests: fixed folders, and a node with the tools of one ROCm
release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profharness.launchers.command import Command
from profharness.layers import around, named
from profharness.layers.contract import Where
from profharness.layers.options import TracerOptions
from profharness.node.probe import Device, Environment, Tool

RUN = Path("/run")
TRAIN = Command(("python", "train.py", "--epochs", "1"))
TOOLS = (
    "rocprofv3",
    "rocprof",
    "rocprof-sys-sample",
    "rocprof-sys-run",
    "rocprof-sys-python",
    "rocprof-compute",
)
OLD_TOOLS = ("rocprof", "omnitrace-sample", "omnitrace-run", "omnitrace-python", "omniperf")


def node(
    release: str, *, architecture: str = "gfx942", tools: tuple[str, ...] | None = None
) -> Environment:
    """A node with ROCm `release`: the tools that came with it, each of that release; "" is a node
    without ROCm.
    """
    if not release:
        return Environment(host="node1")
    patch = release if release.count(".") == 2 else f"{release}.1"
    new = tuple(int(part) for part in release.split(".")) >= (6, 3)
    v3 = ("rocprofv3",) if release == "6.2" else ()
    present = tools if tools is not None else TOOLS if new else (*OLD_TOOLS, *v3)
    return Environment(
        host="node1",
        rocm_version=patch,
        tools={name: Tool(path=name, rocm=patch) for name in present},
        devices=(Device(index=0, kind="rocm", architecture=architecture),),
    )


def where(release: str, layer: str, options: TracerOptions | None = None, **changes: Any) -> Where:
    """A pass of that layer on such a node."""
    facts: dict[str, Any] = {
        "run_root": RUN,
        "pass_name": layer,
        "wrappers": Path("/wrappers"),
        "host": "node1",
        "python": "python",
        "environment": node(release),
        "options": options or TracerOptions(),
        **changes,
    }
    return Where(**facts)


def planned(
    release: str,
    layer: str,
    options: TracerOptions | None = None,
    *,
    command: Command = TRAIN,
    **changes: Any,
) -> Command:
    """The command as it would be started."""
    return around.wrap(named((layer,)), command, where(release, layer, options, **changes))


def words(command: Command) -> str:
    """The argv on one line, unquoted."""
    return " ".join(command.argv)
