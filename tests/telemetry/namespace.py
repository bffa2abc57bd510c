"""Runs a command in a mount namespace of its own in which an emulated tree stands at /sys."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.telemetry.emulated import Tree

# /sys is replaced by a file system that holds the real one's other branches and the tree's classes,
# devices and bus. /dev/shm is private too: AMD's library leaves lock files there.
SCRIPT = """
set -e; tree=$1; new=$2; shift 2
mount -t tmpfs tmpfs "$new"
for entry in /sys/*; do name=${entry##*/}; case $name in class|devices|bus|module) ;; *) if [ -d "$entry" ]; then mkdir "$new/$name"; mount --rbind "$entry" "$new/$name"; fi;; esac; done
mkdir "$new/devices"; for entry in /sys/devices/*; do name=${entry##*/}; [ "$name" = virtual ] || { mkdir "$new/devices/$name"; mount --rbind "$entry" "$new/devices/$name"; }; done
cp -r --no-dereference --preserve=links,mode "$tree/." "$new/"
mount --rbind "$new" /sys
if [ -d /dev/shm ]; then mount -t tmpfs tmpfs /dev/shm; fi
exec "$@"
"""


def wrapped(
    tree: Tree, folder: Path, *command: str | Path, unprivileged: bool = False
) -> list[str]:
    """The command inside the namespace; `folder` must be empty and is used as a mount point."""
    folder.mkdir(exist_ok=True)
    flags = ["-U", "-r", "-m"] if unprivileged or os.geteuid() else ["-m"]
    return [
        "unshare",
        *flags,
        "--propagation",
        "private",
        "sh",
        "-c",
        SCRIPT,
        "sh",
        str(tree.root),
        str(folder),
        *map(str, command),
    ]


@functools.cache
def why_not(*, unprivileged: bool = False) -> str:
    """Why namespaces cannot be used here; empty where they can."""
    if not shutil.which("unshare"):
        return "needs unshare (util-linux)"
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder) / "tree")
        done = subprocess.run(
            wrapped(tree, Path(folder) / "sys", "true", unprivileged=unprivileged),
            capture_output=True,
            text=True,
            check=False,
        )
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"needs root or unprivileged user namespaces ({said})" if done.returncode else ""
