"""One cluster for all tests of this folder that need it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm import cluster as clusters


def _started(programs: Path | None = None) -> Iterator[clusters.Cluster]:
    with tempfile.TemporaryDirectory(prefix="profharness-slurm-") as folder:
        started = clusters.start(Path(folder), programs)
        try:
            yield started
        finally:
            started.stop()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[clusters.Cluster]:
    """Two nodes that run; skipped with the reason where they cannot be had. With SLURM_OF_TESTS=24
    they are those of `slurm24`, for all tests.
    """
    if clusters.ALL_ON_24:
        yield request.getfixturevalue("slurm24")
    else:
        clusters.require()
        yield from _started()


@pytest.fixture(scope="session")
def slurm24() -> Iterator[clusters.Cluster]:
    """Likewise, of the Slurm that `make slurm24` builds."""
    yield from _started(clusters.slurm24())
