"""`--container IMAGE`: which program runs it, what it gets to see, and what must be there. Decided
once per run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from profharness.errors import Unavailable, UsageError
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.container_setup import (
    Setup,
    first_lines,
    merged,
    of_launcher,
    set_inside,
    source,
)
from profharness.launchers.wrappers import wrappers_dir
from profharness.options.request import Request

PROGRAMS = ("apptainer", "singularity")
PYTHON = "python3"
NO_SITE = Setup()
# the device file by which a node with devices of this kind is known
_FILES = {"rocm": "/dev/kfd", "cuda": "/dev/nvidiactl"}
_SWITCHES = {"rocm": "--rocm", "nv": "--nv", "cuda": "--nv"}
_OWN_DEV = frozenset({"--contain", "-c", "--containall", "-C", "--compat"})
"""Options with which a container has a /dev of its own."""


def container_of(
    request: Request,
    shared: Sequence[Path],
    *,
    dry: bool,
    kind: str = "",
    site: Setup = NO_SITE,
) -> Apptainer | None:
    """The container of this run, None without one; both sides see the folders in `shared`. `kind`
    is that of the devices of another node that is planned for, rocm or cuda. Whether the image
    needs the host's ROCm is seen once it is started: `with_hosts_rocm`. `site` is what is known of
    the site's images; options go before it.

    Raises UsageError for an image or a bind that is not there, Unavailable without Apptainer; a
    dry run needs none of them.
    """
    if not request.container:
        return None
    program = next((name for name in PROGRAMS if shutil.which(name)), "")
    if not dry:
        _check(request.container, program)
    setup = merged(_asked(request, dry=dry), site)
    caches = Path(setup.caches).absolute() if setup.caches else None
    own = shared if caches is None else (*shared, caches)
    folders = (wrappers_dir().resolve(), Path.cwd(), *(path.absolute() for path in own))
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
    if caches is not None and not dry:
        _made(caches)
    return Apptainer(
        request.container,
        program or PROGRAMS[0],
        first_lines(setup),
        (*switches, *request.container_arg),
        folders,
        os.environ.get("PYTHONPATH", ""),
        Path.cwd(),
        (*setup.binds, *of_launcher(os.environ)),
        set_inside(msgspec.structs.replace(setup, caches=str(caches or "")), os.environ),
        setup.verb,
    )


def _asked(request: Request, *, dry: bool) -> Setup:
    """What the options say. Raises UsageError for a bind that is not there."""
    binds = tuple(bind for words in request.container_bind for bind in words.split(",") if bind)
    for bind in binds:
        if not dry and not source(bind).exists():
            raise UsageError(
                f"--container-bind: there is no {source(bind)}",
                "name what is on this node, as SOURCE or SOURCE:INSIDE",
            )
    return Setup(
        binds=binds,
        init=request.container_init,
        caches=request.container_caches,
        verb="run" if request.container_run else "exec",
    )


def _made(caches: Path) -> None:
    """Raises UsageError where the folder cannot be made."""
    try:
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--container-caches: {caches} cannot be made ({error.strerror})",
            "name a folder of this node, below /tmp for instance",
        ) from error


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
