"""The replay of searches on a measured grid, on a made-up run."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.manifest import Manifest, PointRecord, ScanRecord
from profharness.rundir.paths import RunDir

PROGRAM = Path(__file__).resolve().parents[2] / "benchmarks" / "search_served.py"
AXES = {"instances": ["1", "2", "4"], "concurrency": ["1", "2", "4", "8", "16"]}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Rates that grow with the smaller one of both axes, with 2 % of noise."""
    dice = np.random.default_rng(1)
    points = [
        PointRecord(
            id=f"i{instances}-c{clients}",
            pass_name="bare",
            repeat=repeat,
            parameters={"instances": int(instances), "concurrency": int(clients)},
            execution=ExecutionRecord(
                wall_ns=10**9,
                unit="items",
                rate=100.0
                * min(2 * int(instances), int(clients)) ** 0.8
                * float(np.exp(dice.normal(0, 0.02))),
            ),
        )
        for repeat in range(3)
        for instances, clients in product(*AXES.values())
    ]
    made = RunDir.create(tmp_path / "run")
    made.write_manifest(
        Manifest(
            id="run",
            created="2026-01-01T00:00:00Z",
            profharness="0",
            kind="scan",
            argv=(),
            scan=ScanRecord(name="x", settings={"axes": AXES, "repeats": 3}),
            points=tuple(points),
        )
    )
    return made.root


def replayed(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_search_finds_what_chance_finds_less_often(run: Path) -> None:
    done = replayed(run, "--replays", "20", "--levels", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 settings, 45 levels that scatter by" in done.stdout
    assert "20 replays by 8 levels" in done.stdout
    search, random = (
        float(line.rpartition(" ")[2].rstrip("%")) for line in done.stdout.splitlines()[1:3]
    )
    assert search > random


def test_a_run_without_axes_is_refused(tmp_path: Path) -> None:
    made = RunDir.create(tmp_path / "run")
    made.write_manifest(
        Manifest(id="x", created="2026-01-01T00:00:00Z", profharness="0", kind="command", argv=())
    )
    done = replayed(made.root)
    assert done.returncode == 2
    assert "is no scan over axes" in done.stderr
