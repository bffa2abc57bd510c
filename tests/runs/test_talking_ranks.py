"""Two real processes that exchange tensors over gloo, under the torch layer: what is said of their
collectives.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from profharness.report.tables import communication as shown
from profharness.understand import report_run as understand
from tests import started

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

CALLS, ELEMENTS, LATE_S = 24, 1 << 14, 0.06
SCRIPT = f"""
import time
import torch, torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
own, weights = torch.ones({ELEMENTS}), torch.randn(64, 64)
parts = [torch.empty_like(own) for _ in range(world)]
for _ in range({CALLS}):
    weights @ weights
    if rank == 1:
        time.sleep({LATE_S})
    dist.all_reduce(own)
    own /= world
    dist.all_gather(parts, own)
    dist.broadcast(own, 0)
assert float(own[0]) == 1
dist.destroy_process_group()
"""
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("talking")
    (folder / "talk.py").write_text(SCRIPT)
    done = started.run(
        "run",
        "--ranks",
        "2",
        "--profile",
        "torch",
        "--telemetry",
        "off",
        "-o",
        "run",
        "--",
        sys.executable,
        "talk.py",
        cwd=folder,
        env={**PLAIN, "OMP_NUM_THREADS": "1"},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_time_bytes_and_bandwidths(run: Path) -> None:
    found = understand.summarise(understand.load([run])).communication
    assert found is not None
    rows = {row.kind: row for row in found.collectives}
    size = 4 * ELEMENTS
    assert {
        kind: (row.calls, row.ranks, row.group_size, row.bytes, row.dtype)
        for kind, row in rows.items()
    } == {
        "all_reduce": (2 * CALLS, 2, 2, size, "Float"),
        "all_gather": (2 * CALLS, 2, 2, 2 * size, "Float"),
        "broadcast": (2 * CALLS, 2, 2, size, "Float"),
    }
    for kind, factor in (
        ("all_reduce", 1.0),
        ("all_gather", 0.5),
        ("broadcast", 1.0),
    ):  # nccl-tests: 2 (n - 1) / n, (n - 1) / n, 1
        row = rows[kind]
        assert row.algorithm_bandwidth == pytest.approx((row.bytes or 0) / row.transfer_ns * 1e9)
        assert row.bus_bandwidth == pytest.approx(factor * (row.algorithm_bandwidth or 0))
    times = {one.rank: one for one in found.devices}
    assert sorted(times, key=str) == [0, 1]
    assert all(
        one.on_host and one.exposed_ns + one.overlapped_ns == one.total_ns > 0
        for one in times.values()
    )
    assert (
        times[0].exposed_ns - times[1].exposed_ns > CALLS * LATE_S * 1e9 / 2
    )  # rank 0 waits for the other


def test_the_rank_that_sleeps_before_the_collective_is_named(run: Path) -> None:
    summary = understand.summarise(understand.load([run]))
    assert summary.communication is not None
    found = summary.communication.skew
    assert found is not None
    assert (found.ranks, found.matched, found.unmatched, found.aligned) == (
        2,
        3 * CALLS,
        0,
        "on the run's clock",
    )
    assert found.max_ns > LATE_S * 1e9 / 2
    told = {one.id: one for one in summary.findings}
    assert told["straggler"].figures["rank"] == "rank 1"
    assert float(told["exposed-communication"].figures["exposed_share"]) > 0.1
    assert any("rank 1: last in" in line for line in shown.lines(summary.communication))


def test_it_stands_in_the_runs_own_products(run: Path) -> None:
    stored = json.loads((run / "summary.json").read_text())
    assert {row["kind"] for row in stored["communication"]["collectives"]} == {
        "all_reduce",
        "all_gather",
        "broadcast",
    }
    page = (run / "report.html").read_text()
    assert "Communication by device" in page
    assert "Arrival of ranks" in page
