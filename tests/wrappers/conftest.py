"""The workers' modules are plain scripts: tests that call into them find them as the scripts do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.wrappers.control import WORKLOADS, Control


@pytest.fixture(scope="session")
def workloads() -> Path:
    """The folder of the workers, on the path."""
    if str(WORKLOADS) not in sys.path:
        sys.path.insert(0, str(WORKLOADS))
    return WORKLOADS


@pytest.fixture
def toy(tmp_path: Path) -> Control:
    """A control folder for the framework-less worker."""
    return Control(tmp_path, {"backend": "toy", "model": "none"})
