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
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.options.request import Request

PROGRAMS = ("apptainer", "singularity")
PYTHON = "python3"
# the device file by which a node with devices of this kind is known
_FILES = {"rocm": "/dev/kfd", "cuda": "/dev/nvidiactl"}
_SWITCHES = {"rocm": "--rocm", "nv": "--nv", "cuda": "--nv"}
_OWN_DEV = frozenset({"--contain", "-c", "--containall", "-C", "--compat"})
"""Options with which a container has a /dev of its own."""
_ROCM = "/opt/rocm"
_ASK_S = 60.0


def container_of(
    request: Request, shared: Sequence[Path], *, dry: bool, kind: str = "", starts: bool = True
) -> Apptainer | None:
    """The container of this run, None without one; both sides see the folders in `shared`. `kind`
    is that of the devices of another node that is planned for, rocm or cuda. Without `starts` the
    image is not asked for what it has.

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
    kinds = (kind,) if kind else tuple(kind for kind in _FILES if Path(_FILES[kind]).exists())
    asks = request.container_gpu == "auto" and "rocm" in kinds
    own_rocm = asks and starts and brings_rocm(request.container, program, dry=dry)
    switches = gpu_words(request.container_gpu, kinds, request.container_arg, own_rocm=own_rocm)
    return Apptainer(
        request.container,
        program or PROGRAMS[0],
        request.container_init,
        (*switches, *request.container_arg),
        folders,
        os.environ.get("PYTHONPATH", ""),
        Path.cwd(),
    )


def gpu_words(
    wanted: str, kinds: Sequence[str], options: Sequence[str], *, own_rocm: bool
) -> tuple[str, ...]:
    """The words for `apptainer exec` by which a container gets the devices. `kinds` are those of
    the node's devices (rocm, cuda), `options` what the user passes to it besides, and `own_rocm`
    says that the image has a ROCm of its own.

    `--rocm` also puts the host's ROCm libraries in front of the image's, which breaks an image that
    has its own (other releases, another libc). Such an image needs the device files alone. They are
    there anyway, but for a container whose /dev is its own.
    """
    if wanted != "auto":
        return (_SWITCHES[wanted],) if wanted in _SWITCHES else ()
    words: list[str] = []
    for kind in kinds:
        if _SWITCHES[kind] in options:
            continue
        if kind != "rocm" or not own_rocm:
            words.append(_SWITCHES[kind])
        elif _OWN_DEV & set(options):
            words += ["--bind", "/dev/kfd", "--bind", "/dev/dri"]
    return tuple(words)


def brings_rocm(image: str, program: str, *, dry: bool) -> bool:
    """Whether the image has ROCm where it is installed by default. A folder is looked into, an
    image file is asked by starting it; a dry run does not fetch an image from an address for that.
    """
    path = Path(image)
    if path.is_dir():
        return any((path / "opt").glob("rocm*"))
    if not program or (dry and not path.is_file()):
        return False
    inside = LocalLauncher(Apptainer(image, program))
    try:
        inside.capture(Command(("test", "-e", _ROCM)), _ASK_S)
    except Unavailable:  # it has none; or it cannot be started, which the probe will tell
        return False
    return True


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
