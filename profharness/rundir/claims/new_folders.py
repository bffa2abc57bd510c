"""New folders of runs: made in one step, so that of many starts at once each gets its own.

`mkdir` either makes the folder or says that it is there: asking first and making it afterwards
would give one folder to two starts.
"""

from __future__ import annotations

import os
import stat
from itertools import count
from pathlib import Path

HOLDER = "holder.json"
"""The file of the process that measures in the folder."""
BESIDE_HOLDER = ".holder."
"""How the names of the files begin with which a process makes itself the holder."""

_ALONE, _AS_THE_UMASK_SAYS = 0o700, 0o777


def make(path: Path, *, shared: bool) -> bool:
    """Make the folder with its parents; False where it is there already, as it is then.

    A new one is its owner's alone, unless it is to be `shared` or its parent gives what is made in
    it to a group (its set-group-id bit). Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = _AS_THE_UMASK_SAYS if shared or is_the_groups(path.parent) else _ALONE
    try:
        path.mkdir(mode)
    except FileExistsError:
        return False
    return True


def make_next(first: Path, *, shared: bool) -> Path:
    """Make the folder `first`, or the next one that is not there: NAME-2, NAME-3 and so on. Raises
    OSError.
    """
    for number in count(1):
        path = numbered(first, number)
        if make(path, shared=shared):
            return path
    raise AssertionError  # the numbers have no end


def numbered(first: Path, number: int) -> Path:
    """The n-th name: NAME, NAME-2, NAME-3 and so on."""
    return first if number == 1 else first.with_name(f"{first.name}-{number}")


def is_taken(path: Path) -> bool:
    """Whether it is no folder, or one that holds more than what says who holds it. Raises
    OSError.
    """
    if not path.is_dir():
        return True
    with os.scandir(path) as entries:
        return any(
            entry.name != HOLDER and not entry.name.startswith(BESIDE_HOLDER) for entry in entries
        )


def is_the_groups(path: Path) -> bool:
    """Whether the folder gives what is made in it to its own group."""
    try:
        return bool(path.stat().st_mode & stat.S_ISGID)
    except OSError:
        return False
