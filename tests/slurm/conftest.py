"""One cluster for all tests of this folder that need it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm import cluster as clusters


@pytest.fixture(scope="session")
def cluster() -> Iterator[clusters.Cluster]:
    """Two nodes that run; skipped with the reason where they cannot be had. Munge wants a folder
    that its own user can reach, which pytest's are not.
    """
    clusters.require()
    with tempfile.TemporaryDirectory(prefix="profharness-slurm-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        started = clusters.start(home)
        try:
            yield started
        finally:
            started.stop()
