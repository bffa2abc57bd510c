"""Two virtual nodes whose clocks are really apart: MONOTONIC and BOOTTIME by a time namespace,
the wall clock by a preload, each with a boot id and a host name of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir.paths import RunDir
from profharness.trace.clocks import align
from profharness.trace.model import ClockDomain
from profharness.understand.run_clock import reference_host
from profharness.understand.run_files import own_records
from tests.fakes.clock import Clock

AHEAD_S, WALL_S = 1000, 0.05
MOST_NS = 5_000
_WORK = "import time; time.sleep(0.3)"
_NODE = (
    'hostname "$NODE"; mount --bind "$BOOT_ID" /proc/sys/kernel/random/boot_id; shift 0; exec "$@"'
)


def _namespaces() -> str:
    """Why there are none to be had; empty where they are."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "namespaces of time and host name need root and unshare"
    tried = subprocess.run(
        ["unshare", "-m", "-u", "-T", "--monotonic", "1", "true"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


def node(folder: Path, rank: int, *options: str) -> subprocess.Popen[str]:
    """A rank on a virtual node of its own; the second one's clocks are apart."""
    boot_id = folder / f"boot_id{rank}"
    boot_id.write_text(f"0000000{rank}-0000-4000-8000-000000000000\n")
    clock = Clock(folder / f"clock{rank}")
    clock.folder.mkdir()
    apart = dict(clock.env)
    if rank:
        clock.set_wall(WALL_S)
    ahead = [f"--monotonic={AHEAD_S}", f"--boottime={AHEAD_S}"] if rank else []
    told = {
        **os.environ,
        **apart,
        "NODE": f"n{rank}",
        "BOOT_ID": str(boot_id),
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "n0",
        "MASTER_PORT": "29500",
    }
    line = [
        sys.executable,
        "-m",
        "profharness",
        "run",
        "--telemetry",
        "off",
        "--quiet",
        "-o",
        str(folder / "run"),
        *options,
        "--",
        sys.executable,
        "-c",
        _WORK,
    ]
    space = ["unshare", "-m", "-u", "-T", *ahead, "--fork", "sh", "-c", _NODE, "node", *line]
    return subprocess.Popen(
        space, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def error_ns(folder: Path, *options: str) -> tuple[int, str]:
    """How far the second node's clocks are off on the run's clock, by what they were set to, and
    how a source of it would be said to be aligned.
    """
    nodes = [node(folder, rank, *options) for rank in range(2)]
    said = [one.communicate(timeout=120)[0] for one in nodes]
    assert [one.returncode for one in nodes] == [0, 0], said
    run = RunDir.open(folder / "run")
    manifest = run.read_manifest()
    snapshots = own_records(run, manifest).snapshots
    reference = reference_host(manifest, snapshots)
    assert reference == "n0"
    assert set(snapshots) == {"n0", "n1"}
    way = align.route(ClockDomain.BOOTTIME, "n1", snapshots, reference)
    assert not isinstance(way, str), way
    at = np.array([one.boot_ns for one in snapshots["n1"]])
    off = way(at) - (at - AHEAD_S * 1_000_000_000)
    # a source that stamps the wall clock, which is off as well
    wall = align.route(ClockDomain.REALTIME, "n1", snapshots, reference)
    assert not isinstance(wall, str)
    real = np.array([one.realtime_ns for one in snapshots["n1"]])
    both = np.concatenate([off, wall(real) - way(at)])
    print(f"error {np.abs(both).max()} ns: {way.words}")
    return int(np.abs(both).max()), way.words


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_namespaces()), reason=_namespaces() or "there are namespaces"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler"),
]


def test_packets_align_nodes_whose_clocks_are_apart(tmp_path: Path) -> None:
    error, words = error_ns(tmp_path)
    assert error <= MOST_NS, words
    assert "then to the clock of n0" in words
    assert "2 readings by packets" in words


def test_without_packets_the_wall_clocks_mislead_and_the_words_say_so(tmp_path: Path) -> None:
    error, words = error_ns(tmp_path, "--node-clocks", "wall")
    assert abs(error - WALL_S * 1e9) < 1e7, "the alignment by wall clocks misses what they are off"
    assert error > MOST_NS
    assert "whose difference was not measured" in words
