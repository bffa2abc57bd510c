"""The workers' modules are plain scripts: tests that call into them find them as the scripts do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wrappers.control import WORKLOADS, Control
from tests.wrappers.running import Runner


@pytest.fixture(scope="session", autouse=True)
def workloads() -> Path:
    """The folder of the workers; the folder above it is on the path."""
    if str(WORKLOADS.parent) not in sys.path:
        sys.path.insert(0, str(WORKLOADS.parent))
    return WORKLOADS


@pytest.fixture
def toy(tmp_path: Path) -> Control:
    """A control folder for the framework-less worker."""
    return Control(tmp_path, {"backend": "toy", "model": "none"})


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Starts small programs with and without the hooks."""
    return Runner(tmp_path)


@pytest.fixture(scope="module")
def shared_runner(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Runner]:
    """A runner for programs whose result several tests look at."""
    return lambda name: Runner(tmp_path_factory.mktemp(name))
