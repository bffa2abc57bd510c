"""Lustre's client counters by its own tool, where the files lie in a folder that is closed to
users: `lctl get_param llite.*.stats`. Clients of 2025 and newer may answer it by Netlink without
root (LU-11850); older ones read the closed folder, and it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess

PARAMETER = "llite.*.stats"
_PLACES = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin"  # a user's PATH often lacks sbin
_S = 2.0
_HEAD, _TAIL = b"llite.", b".stats="


def find_lctl() -> str:
    """The program's path; empty where there is none."""
    here = os.environ.get("PATH", "")
    return shutil.which("lctl", path=f"{here}:{_PLACES}") or ""


def ask(program: str) -> dict[bytes, bytes]:
    """The text of `stats` by file system (`scratch-ffff8800`), in lctl's order. Raises OSError
    where the program cannot be run, takes too long, or names no file system.
    """
    try:
        done = subprocess.run(
            [program, "get_param", PARAMETER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(0, f"lctl gave no answer within {_S:g} s") from None
    found = split(done.stdout)
    if not found:
        raise OSError(0, f"lctl named no file system (status {done.returncode})")
    return found


def split(text: bytes) -> dict[bytes, bytes]:
    """The parts of an answer: a line `llite.NAME.stats=` stands above each."""
    found: dict[bytes, list[bytes]] = {}
    name = b""
    for line in text.split(b"\n"):
        if line.startswith(_HEAD) and line.rstrip().endswith(_TAIL):
            name = line.rstrip()[len(_HEAD) : -len(_TAIL)]
            found[name] = []
        elif name:
            found[name].append(line)
    return {name: b"\n".join(lines) for name, lines in found.items()}
