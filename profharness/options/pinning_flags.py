"""The options of multi-process scans."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Multi-process scans")


Topology = Annotated[
    str | None,
    _option("JSON list with a list of CPU ids per process (see `profharness topology`)."),
]
Streams = Annotated[
    str | None,
    _option(
        "Processes at once: 1,2,4 or 1..16 (default 1, 2, 4 ... "
        "and as many as the topology has lists)."
    ),
]
Pin = Annotated[
    str | None,
    _option("core (default): each process on its list; numa: on the nodes of its list; none."),
]
Memory = Annotated[
    str | None,
    _option(
        "Where a process's memory lies among the nodes of its CPUs: interleave (default), "
        "bind, preferred, default."
    ),
]
