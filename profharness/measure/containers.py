"""`--container IMAGE`: which program runs it, what it gets to see, and what must be there. Decided
once per run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from profharness.errors import Unavailable, UsageError
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.wrappers import wrappers_dir
from profharness.options.request import Request

PROGRAMS = ("apptainer", "singularity")
PYTHON = "python3"
# the device files that tell which of Apptainer's switches the node needs
_SWITCHES = (("/dev/kfd", "--rocm"), ("/dev/nvidiactl", "--nv"))


def container_of(request: Request, shared: Sequence[Path], *, dry: bool) -> Apptainer | None:
    """The container of this run, None without one; both sides see the folders in `shared`.

    Raises UsageError for an image that is not there, Unavailable without Apptainer; a dry run needs
    neither.
    """
    if not request.container:
        return None
    program = next((name for name in PROGRAMS if shutil.which(name)), "")
    if not dry:
        _check(request.container, program)
    folders = (wrappers_dir().resolve(), Path.cwd(), *(path.absolute() for path in shared))
    for folder in folders:
        if set(str(folder)) & {":", ","}:
            raise UsageError(
                f"--container: {folder} cannot be bound into it, "
                "since Apptainer takes ':' and ',' as separators",
                "use a folder of another name",
            )
    switches = tuple(switch for device, switch in _SWITCHES if Path(device).exists())
    return Apptainer(
        request.container,
        program or PROGRAMS[0],
        request.container_init,
        (*switches, *request.container_arg),
        folders,
        os.environ.get("PYTHONPATH", ""),
        Path.cwd(),
    )


def _check(image: str, program: str) -> None:
    if "://" not in image and not Path(image).exists():
        raise UsageError(
            f"--container: there is no image {image}",
            "name an Apptainer image (.sif), a sandbox folder, "
            "or an address such as docker://rocm/pytorch",
        )
    if not program:
        raise Unavailable(
            "--container: there is no apptainer (or singularity) here",
            "load its module, or start this on a compute node",
        )
