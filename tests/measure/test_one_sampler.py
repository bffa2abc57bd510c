"""Which rank other than 0 owns its node's sampler: two on one node would write the same files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from profharness.measure import engine
from profharness.measure.ranks import RankInfo
from profharness.rundir.manifest import Manifest, NodeRecord
from profharness.rundir.paths import RunDir


@pytest.mark.parametrize(
    ("local_rank", "of_rank_0", "samples"),
    [
        (0, ("this",), False),  # no variable says that both are here
        (0, ("other",), True),
        (0, ("other", "this"), True),  # a node that rank 0 only learnt of
        (1, ("other",), False),
        (0, (), True),
    ],
)
def test_the_first_on_each_node_samples_it(
    tmp_path: Path, local_rank: int, of_rank_0: tuple[str, ...], samples: bool
) -> None:
    run = RunDir.create(tmp_path / "run")
    nodes = tuple(NodeRecord(host=host) for host in of_rank_0)
    manifest = Manifest(
        id="r", created="", profharness="0", kind="command", argv=(), state="running", nodes=nodes
    )
    run.write_manifest(manifest)
    plan = SimpleNamespace(rank=RankInfo(1, 2, local_rank, "job"), host="this")
    assert engine._samples(plan, run) is samples


def test_a_manifest_that_cannot_be_read_leaves_no_node_without_one(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run")
    plan = SimpleNamespace(rank=RankInfo(1, 2, 0, "job"), host="this")
    assert engine._samples(plan, run) is True
