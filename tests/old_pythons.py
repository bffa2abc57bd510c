"""Interpreters of other versions that tests start, where this machine has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest


@cache
def found(version: str) -> str:
    """The path of a Python of this version (`3.8`): on the PATH, or among pyenv's, whose own
    `python3.8` on the PATH starts none that was not chosen; empty where there is none.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for path in (shutil.which(f"python{version}"), *map(str, installed)):
        if path is None:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if said.stdout.startswith(f"Python {version}."):
            return path
    return ""


def needed(version: str) -> str:
    """The same; the test is skipped where there is none."""
    path = found(version)
    if not path:
        pytest.skip(f"no Python {version} here")
    return path
