"""A real Apptainer, from PATH or as `make apptainer` puts it, and an image that is built here.

Nothing can be fetched from a registry of images. So the image's base is a folder without programs,
and the host's `/usr` is bound into it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from profharness.launchers.wrappers import wrappers_dir
from tests.tools.get_apptainer import DEFAULT, PROGRAMS

DEFINITION = wrappers_dir() / "containers/profile.def"
BIND = "/usr"
_LIMIT_S = 120
_INSIDE = ("unshare", "-r", "-m")
"""In a namespace of its own a user may do what %post needs, without being root of the machine."""


def require() -> Path:
    """The program. Skips with the reason where there is none, or it starts no container."""
    found = shutil.which("apptainer") or shutil.which(str(DEFAULT / PROGRAMS[0]))
    if found is None:
        pytest.skip("no Apptainer here: make apptainer fetches it")
    return Path(found)


def base(folder: Path) -> Path:
    """What an image is made from: places for binds, and links as in Debian."""
    for name in (
        "usr",
        "real",
        "etc",
        "tmp",
        "proc",
        "sys",
        "dev",
        "var/tmp",
        "root",
        "home",
        "run",
    ):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (folder / name).symlink_to(f"usr/{name}")
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\n")
    return folder


def build(program: Path, folder: Path) -> Path:
    """The image of our definition file. Skips with the reason where this machine lets nobody build
    images, and fails where the definition is wrong.
    """
    if shutil.which("mksquashfs") is None:
        pytest.skip("no mksquashfs here, without which Apptainer builds no image file")
    image = folder / "profile.sif"
    if subprocess.run((*_INSIDE, "true"), capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here, in which an image would be built")
    done = build_with(program, base(folder / "base"), image, (BIND,))
    assert done.returncode == 0, done.stderr
    return image


def build_with(
    program: Path, root: Path, image: Path, binds: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Build the image from this base, with these folders of the host in it meanwhile."""
    arguments = ("BOOTSTRAP=localimage", f"BASE={root}")
    return subprocess.run(
        (
            *(*_INSIDE, program, "build"),
            *(word for bind in binds for word in ("--bind", bind)),
            *(word for argument in arguments for word in ("--build-arg", argument)),
            *(image, DEFINITION),
        ),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
        env={**os.environ, "APPTAINER_CACHEDIR": str(image.parent / "cache")},
    )


def started(program: Path, *words: object) -> str:
    """What Apptainer says on stdout. Skips with the reason where it starts no container here."""
    done = subprocess.run(
        (program, *map(str, words)),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if "container creation failed" in done.stderr:
        pytest.skip(f"Apptainer starts no container here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return done.stdout
