"""What a run of several nodes keeps of its telemetry."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec

from profharness.understand import telemetry_products
from tests.run_files import run_of


def test_one_log_of_all_nodes_on_one_clock(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", kernels=8)
    made = telemetry_products.write(run, run.read_manifest())
    assert {path.name for path in made} == {
        "n0.parquet",
        "n1.parquet",
        "ResourceLog.csv",
        "ResourceLog.txt",
    }
    log = next(path for path in made if path.name == "ResourceLog.csv")
    rows = list(csv.DictReader(log.read_text().splitlines(), skipinitialspace=True))
    assert {(row["Host"], row["Device"]) for row in rows} == {
        (host, device) for host in ("n0", "n1") for device in "01"
    }
    first = {row["Host"]: row["Timestamp"] for row in reversed(rows)}
    assert first["n0"] == first["n1"], "the second host's wall clock is 1 ms off; the run's is not"
    assert "on the clock of n0" in (log.parent / "ResourceLog.txt").read_text()


def test_a_node_whose_clock_nobody_read_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", kernels=8)
    manifest = run.read_manifest()
    manifest = msgspec.structs.replace(
        manifest, clocks=tuple(one for one in manifest.clocks if one.host == "n0")
    )
    telemetry_products.write(run, manifest)
    rows = (run.telemetry / "ResourceLog.csv").read_text().splitlines()[1:]
    assert {row.split(", ")[0] for row in rows} == {"n0"}
    assert "nobody read their clocks: n1" in (run.telemetry / "ResourceLog.txt").read_text()


def test_one_node_keeps_the_classic_log(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", kernels=8)
    (run.telemetry / "n1.samples.bin").unlink()
    manifest = run.read_manifest()
    node = msgspec.structs.replace(manifest.nodes[0], cpus=4, memory_bytes=1 << 30)
    manifest = msgspec.structs.replace(manifest, nodes=(node,))
    telemetry_products.write(run, manifest)
    head = (run.telemetry / "ResourceLog.csv").read_text().splitlines()[0]
    assert head == "Timestamp, GPU Util (%), GPU Mem (%), CPU Util (%), RAM Util (%)"
