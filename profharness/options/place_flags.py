"""Where the workload is started: by whom, and inside of what."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _option(*words: Any, **more: Any) -> Any:
    return typer.Option(*words, rich_help_panel="Place", **more)


Python = Annotated[
    str | None,
    _option(help="Interpreter for the workload (default: this one; in a container its python3)."),
]
Launcher = Annotated[
    str | None, _option(help="local, or slurm: srun starts this command line once per rank.")
]
LauncherArg = Annotated[
    list[str] | None,
    _option(help="For srun, for example --launcher-arg=--gpus-per-task=1. Repeatable."),
]
Container = Annotated[
    str | None,
    _option(help="Apptainer image that the workload and its tools run in.", metavar="IMAGE.sif"),
]
ContainerInit = Annotated[
    str | None,
    _option(
        help="Shell text to run in the container first: 'source /opt/conda/bin/activate pytorch'.",
        metavar="SHELL",
    ),
]
ContainerArg = Annotated[
    list[str] | None,
    _option(help="For apptainer exec, for example --container-arg=--bind=/scratch. Repeatable."),
]
Ranks = Annotated[
    int | None,
    _option(
        help=(
            "Commands: start this many ranks (RANK, WORLD_SIZE, LOCAL_RANK; under Slurm its tasks)."
        )
    ),
]
