"""Bytes of RDMA ports, over an emulated /sys/class/infiniband and through a sampler."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from profharness.report.text.names import title_of
from profharness.rundir import telemetry
from profharness.stats.streams import streams
from profharness.telemetry.sources.host.rdma import RdmaSource
from profharness.trace.sample_metrics import unit_of
from tests.telemetry.running import Sampler


def port(sysfs: Path, name: str, received: int | str, sent: int | str) -> None:
    """Sets the counters of `mlx5_0/1`, in units of four bytes."""
    device, _, number = name.partition("/")
    folder = sysfs / "class/infiniband" / device / "ports" / number / "counters"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "port_rcv_data").write_text(f"{received}\n")
    (folder / "port_xmit_data").write_text(f"{sent}\n")


def values(source: RdmaSource) -> dict[str, float]:
    row: list[int | float] = [-1] * len(source.columns)
    source.read(row, 0)
    return {
        column.metric: raw * column.scale for column, raw in zip(source.columns, row, strict=True)
    }


def test_counts_are_of_four_bytes_and_add_up_over_the_ports(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0/1", 1000, 10)
    port(tmp_path, "mlx5_1/1", 7, 3000)
    port(tmp_path, "mlx5_1/2", 0, 0)
    source = RdmaSource(str(tmp_path))
    assert source.probe() == ()
    assert values(source) == {
        "rdma_received": 4028,
        "rdma_sent": 12040,
        "rdma_received:mlx5_1/1": 28,
        "rdma_sent:mlx5_1/1": 12000,
        "rdma_received:mlx5_0/1": 4000,
        "rdma_sent:mlx5_0/1": 40,
    }
    assert {(column.form, column.unit, unit_of(column.metric)) for column in source.columns} == {
        ("counter", "B/s", "B/s")
    }
    assert title_of("rdma_sent:mlx5_0/1") == "RDMA sent, mlx5_0/1"
    assert source.max_hz <= 2


def test_a_single_port_is_the_total(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0/1", 5, 6)
    source = RdmaSource(str(tmp_path))
    source.probe()
    assert values(source) == {"rdma_received": 20, "rdma_sent": 24}


def test_without_an_adapter_or_its_counters_there_is_a_reason(tmp_path: Path) -> None:
    assert [
        (one.metric, "no RDMA adapter" in one.why) for one in RdmaSource(str(tmp_path)).probe()
    ] == [("rdma_received", True), ("rdma_sent", True)]
    port(tmp_path, "irdma0/1", "N/A", 0)
    source = RdmaSource(str(tmp_path))
    assert "irdma0/ports/1/counters: no number in it" in source.probe()[0].why
    assert source.columns == ()
    port(tmp_path, "mlx5_0/1", 5, 6)  # one that works is not held back by it
    assert RdmaSource(str(tmp_path)).probe() == ()


def test_a_port_that_vanishes_leaves_no_smaller_total(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0/1", 5, 6)
    port(tmp_path, "mlx5_1/1", 7, 8)
    source = RdmaSource(str(tmp_path))
    source.probe()
    port(tmp_path, "mlx5_1/1", "", "")
    with pytest.raises(ValueError, match="invalid literal"):
        values(source)


def adapter(sysfs: Path, name: str, driver: str, counts: dict[str, int]) -> None:
    """An adapter whose driver counts plain bytes, beside the standard files that it also has."""
    folder = sysfs / "class/infiniband" / name
    own = folder / "ports/1/hw_counters"
    own.mkdir(parents=True, exist_ok=True)
    for file, count in counts.items():
        (own / file).write_text(f"{count}\n")
    port(sysfs, f"{name}/1", 1, 1)
    if driver:
        (folder / "device").mkdir(exist_ok=True)
        (folder / "device/uevent").write_text(f"PCI_CLASS=20000\nDRIVER={driver}\n")


IONIC = {
    "rx_rdma_ucast_bytes": 1000,
    "rx_rdma_mcast_bytes": 10,
    "tx_rdma_ucast_bytes": 2000,
    "tx_rdma_mcast_bytes": 20,
}
BROADCOM = {"rx_bytes": 300, "tx_bytes": 400}


@pytest.mark.parametrize(
    ("name", "driver", "counts", "received", "sent"),
    [
        ("ionic_0", "ionic", IONIC, 1010, 2020),
        ("rocep1s0", "ionic", IONIC, 1010, 2020),  # renamed by udev
        ("ionic_0", "", IONIC, 1010, 2020),
        ("bnxt_re0", "bnxt_en", BROADCOM, 300, 400),
        ("bnxt_re0", "", BROADCOM, 300, 400),
        ("mlx5_0", "mlx5_core", BROADCOM, 4, 4),  # its own files are of other things
    ],
)
def test_drivers_that_count_plain_bytes(
    tmp_path: Path, name: str, driver: str, counts: dict[str, int], received: int, sent: int
) -> None:
    adapter(tmp_path, name, driver, counts)
    source = RdmaSource(str(tmp_path))
    assert source.probe() == ()
    assert values(source) == {"rdma_received": received, "rdma_sent": sent}


def test_without_its_own_files_such_an_adapter_is_not_read_wrongly(tmp_path: Path) -> None:
    adapter(tmp_path, "ionic_0", "ionic", {})
    source = RdmaSource(str(tmp_path))
    assert "hw_counters: No such file" in source.probe()[0].why
    assert source.columns == ()


@pytest.mark.slow
def test_from_the_counters_to_bytes_per_second(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    port(sysfs, "mlx5_0/1", 0, 0)
    with Sampler(tmp_path, hz=10, sysfs=str(sysfs)) as sampler:
        ready = sampler.ready()
        time.sleep(0.7)
        port(sysfs, "mlx5_0/1", 250_000, 500_000)
        time.sleep(0.7)
        sampler.stop()
    assert [entry["metrics"] for entry in ready["sources"] if entry["name"] == "rdma"] == [
        ["rdma_received", "rdma_sent"]
    ]
    found = {
        one.metric: one.samples for one in streams(telemetry.read(sampler.file("samples.bin")))
    }
    for metric, total in (("rdma_received", 1e6), ("rdma_sent", 2e6)):
        samples = found[metric]
        assert float(
            np.dot(samples.value, samples.until_ns - samples.at_ns)
        ) / 1e9 == pytest.approx(total)
        assert (samples.until_ns > samples.at_ns).all()
