"""Layers around some ranks only, on a real Slurm of two nodes: telemetry is of all nodes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from profharness.rundir.manifest import decode
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import NAME, done, only_job, start

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

WORKS = """\
import time
until = time.monotonic() + 2
while time.monotonic() < until:
    sum(range(1000))
"""


def test_one_rank_of_each_node_is_traced(cluster: Cluster, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    if not (shutil.which("py-spy") or (programs / "py-spy").exists()):
        pytest.skip("needs py-spy")
    line = (
        *(sys.executable, "-m", "profharness", "run", "--launcher", "slurm", "--ranks", "4"),
        *("--nodes", "2", "--sbatch-arg=--ntasks-per-node=2", "--trace-ranks", "0,2"),
        *("--profile", "py-spy", "--telemetry", "cpu"),
        *("--", sys.executable, "-c", WORKS),
    )
    status, out, err = done(start(cluster, tmp_path, line))
    assert status == 0, (out, err)
    root = tmp_path / f"traces/slurm-{only_job(tmp_path)}-{NAME}"
    run = decode((root / "manifest.json").read_bytes(), "manifest")
    assert (run.traced_ranks, run.ranks) == ((0, 2), 4)
    assert sorted((one.rank, one.host) for one in run.rank_outcomes) == [
        (0, "n1"),
        (1, "n1"),
        (2, "n2"),
        (3, "n2"),
    ]
    traces = {(one.rank, one.host) for one in run.artifacts if one.layer == "py-spy"}
    assert traces == {(0, "n1"), (2, "n2")}
    assert {path.name for path in (root / "telemetry").glob("n*.parquet")} == {
        "n1.parquet",
        "n2.parquet",
    }
