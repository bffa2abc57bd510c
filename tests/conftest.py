"""Fixtures for all tests. Those that need the shared recorded files skip, saying so, where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# a busy machine must not make a property fail for its time
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PROFHARNESS_SHARED", ROOT.parent / "shared"))


def shared_path(relative: str) -> Path:
    """A file of the shared fixtures; for use in parametrisation, where a missing file must not fail collection."""
    return SHARED / relative


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared recorded files and tools; the test is skipped where it is absent."""
    if not (SHARED / "fixtures").is_dir():
        pytest.skip(f"needs the shared recorded files ({SHARED} is absent)")
    return SHARED


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return ROOT
