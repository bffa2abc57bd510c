"""How many ranks a run has: telemetry and the launcher's own process are none."""

from __future__ import annotations

import pytest

from profharness.analysis.time.counts import count, ranks_of
from profharness.trace.model import Source
from tests.analysis.scene import Scene


@pytest.mark.parametrize(
    ("pass_name", "ranks"),
    [("torch", 2), ("", 3)],
)
def test_sources_without_a_rank_are_none_of_a_run(pass_name: str, ranks: int) -> None:
    scene = Scene(
        sources=tuple(
            Source(f"{rank}.json", "kineto", rank=rank, pass_name=pass_name)
            for rank in (0, 1, None)
        )
    )
    assert count(scene.build()).ranks == ranks


def test_a_run_that_names_no_rank_has_one() -> None:
    assert ranks_of({None}, of_run=True) == {None}
