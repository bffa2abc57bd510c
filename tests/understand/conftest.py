"""Traces that several tests of understanding read."""

from __future__ import annotations

import pytest

from tests.generated import Generated, generate


@pytest.fixture(scope="session")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Generated]:
    """One generated file per rank, with the truth about it; each on a clock of its own."""
    folder = tmp_path_factory.mktemp("ranks")
    return [
        generate(
            folder,
            f"rank{rank}.json",
            3_000,
            "--seed",
            str(rank + 10),
            "--rank",
            str(rank),
            "--unlinked-fraction",
            "0.05",
            "--kernels-per-step",
            "500",
        )
        for rank in range(3)
    ]
