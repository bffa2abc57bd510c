"""What a file of tests needs of the optional packages, asked without importing them: every process
that runs tests collects all files, and torch alone costs it two seconds.
"""

from __future__ import annotations

import importlib.util

import pytest

TORCH_HERE = pytest.mark.xdist_group("torch-here")
"""Of tests that import torch themselves: one process does it for all of them."""


def packages(*names: str) -> None:
    """Skip the file of tests that calls this, with the names of what is missing."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}", allow_module_level=True)
