"""Names of telemetry outside: valid, one meaning each, and Omnistat's where the meaning is the
same.
"""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from profharness.trace.sample_metrics import SAMPLE_METRICS
from profharness.trace.series.names import listed, sample_names, series_of


def test_every_metric_has_a_valid_name_of_one_meaning() -> None:
    kinds = defaultdict(set)
    for _, series, _ in listed():
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", series.family)
        assert not series.unit or series.family.endswith(f"_{series.unit}")
        assert not series.family.endswith(("_total", "_info", "_created"))
        kinds[series.family].add((series.kind, series.unit, series.help))
    assert [name for name, found in kinds.items() if len(found) > 1] == []
    named = {metric.partition(":")[0] for metric, _, _ in listed()}
    assert named == {metric.name for metric in SAMPLE_METRICS} - {"throughput"}


def test_own_names_do_not_meet() -> None:
    own = defaultdict(set)
    for metric, series, _ in listed():
        if series.family.startswith("profharness_"):
            own[series.family].add(metric)
    assert [metrics for metrics in own.values() if len(metrics) > 1] == []


@pytest.mark.parametrize(
    ("metric", "vendor", "sample", "labels"),
    [
        ("gpu_percent", "amd", "rocm_utilization_percentage", {}),
        ("gpu_percent", "nvidia", "profharness_telemetry_gpu_percent", {}),
        ("power_w", "amd", "rocm_average_socket_power_watts", {}),
        ("temperature_hotspot", "amd", "rocm_temperature_celsius", {"location": "junction"}),
        ("power_node", "", "omnistat_vendor_power_watts", {"vendor": "cray"}),
        (
            "power_module_energy:accel2",
            "",
            "omnistat_vendor_accel_energy_joules",
            {"vendor": "cray", "accel": "2"},
        ),
        (
            "rdma_received:mlx5_0/1",
            "",
            "omnistat_network_rx_bytes",
            {"device_class": "infiniband", "interface": "mlx5_0:1"},
        ),
        (
            "rdma_sent:bnxt_re1/1",
            "",
            "omnistat_network_tx_bytes",
            {"device_class": "bnxt_re", "interface": "bnxt_re1:1"},
        ),
        (
            "slingshot_sent:cxi3",
            "",
            "omnistat_network_tx_bytes",
            {"device_class": "cxi", "interface": "cxi3"},
        ),
        ("power_cpu", "", "profharness_telemetry_energy_cpu_joules_total", {}),
        ("lustre_calls", "", "profharness_telemetry_lustre_calls_total", {}),
        ("lustre_read:scratch", "", "profharness_telemetry_lustre_read_bytes_total", None),
        ("mine/of.a plug-in", "", "profharness_telemetry_mine_of_a_plug_in", {}),
    ],
)
def test_names_and_labels(
    metric: str, vendor: str, sample: str, labels: dict[str, str] | None
) -> None:
    series = series_of(metric, vendor)
    assert series is not None
    assert series.sample == sample
    expected = {"file_system": "scratch"} if labels is None else labels
    assert dict(series.labels) == expected


def test_raw_counters_and_throughput_are_no_series() -> None:
    assert series_of("counter_rate:GRBM_COUNT", "amd") is None
    assert series_of("throughput") is None
    assert "profharness_telemetry_device_info" in sample_names()
