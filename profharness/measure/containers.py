"""`--container IMAGE`: which program runs it, what it gets to see, and what must be there. Decided
once per run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profharness.errors import Unavailable, UsageError
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.wrappers import wrappers_dir
from profharness.options.request import Request

PROGRAMS = ("apptainer", "singularity")
PYTHON = "python3"
# the device file by which a node with devices of this kind is known
_FILES = {"rocm": "/dev/kfd", "cuda": "/dev/nvidiactl"}
_SWITCHES = {"rocm": "--rocm", "nv": "--nv", "cuda": "--nv"}
_OWN_DEV = frozenset({"--contain", "-c", "--containall", "-C", "--compat"})
"""Options with which a container has a /dev of its own."""


def container_of(
    request: Request, shared: Sequence[Path], *, dry: bool, kind: str = ""
) -> Apptainer | None:
    """The container of this run, None without one; both sides see the folders in `shared`. `kind`
    is that of the devices of another node that is planned for, rocm or cuda. Whether the image
    needs the host's ROCm is seen once it is started: `with_hosts_rocm`.

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
    switches = gpu_words(
        request.container_gpu, _kinds(kind), request.container_arg, needs_hosts=False
    )
    return Apptainer(
        request.container,
        program or PROGRAMS[0],
        request.container_init,
        (*switches, *request.container_arg),
        folders,
        os.environ.get("PYTHONPATH", ""),
        Path.cwd(),
    )


def with_hosts_rocm(container: Apptainer, request: Request) -> Apptainer:
    """The container as an image without a ROCm of its own needs it on this node: the same one where
    it needs nothing more, or the user said how it gets the devices.
    """
    switches = gpu_words(request.container_gpu, _kinds(""), request.container_arg, needs_hosts=True)
    return replace(container, options=(*switches, *request.container_arg))


def gpu_words(
    wanted: str, kinds: Sequence[str], options: Sequence[str], *, needs_hosts: bool
) -> tuple[str, ...]:
    """The words for `apptainer exec` by which a container gets the devices. `kinds` are those of
    the node's devices (rocm, cuda), `options` what the user passes to it besides, and `needs_hosts`
    says that the image is known to lack a ROCm of its own.

    `--rocm` also puts the host's ROCm libraries in front of the image's, which breaks an image that
    has its own (other releases, another libc). Such an image needs the device files alone. They are
    there anyway, but for a container whose /dev is its own. NVIDIA's driver libraries must always
    be those of the host.
    """
    if wanted != "auto":
        return (_SWITCHES[wanted],) if wanted in _SWITCHES else ()
    words: list[str] = []
    for kind in kinds:
        if _SWITCHES[kind] in options:
            continue
        if kind != "rocm" or needs_hosts:
            words.append(_SWITCHES[kind])
        elif _OWN_DEV & set(options):
            words += ["--bind", "/dev/kfd", "--bind", "/dev/dri"]
    return tuple(words)


def _kinds(planned: str) -> tuple[str, ...]:
    """The kinds of devices of the node that is planned for, or of this one."""
    if planned:
        return (planned,)
    return tuple(kind for kind in _FILES if Path(_FILES[kind]).exists())


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
