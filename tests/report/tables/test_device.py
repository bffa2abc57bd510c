"""The panel of a device: what the driver calls busy beside what counters say."""

from __future__ import annotations

from profharness.analysis.records import TelemetryRow
from profharness.report.tables.device import device_lines, device_panel


def row(metric: str, mean: float, device: str = "0") -> TelemetryRow:
    return TelemetryRow(
        metric=metric, unit="", device=device, mean=mean, low=mean, high=mean, samples=1
    )


AMD = (
    row("gpu_percent", 100.0),
    row("wave_fill", 0.5),
    row("cu_active", 0.38),
    row("cu_occupancy", 0.11),
    row("matrix_busy", 0.04),
    row("fabric_read", 83.2e9),
    row("cpu_node", 3.0, ""),
)


def test_one_line_and_one_row_say_it_together() -> None:
    assert device_lines(AMD) == (
        "GPU 100 %, CUs active 38.0 %, CU occupancy 11.0 %, matrix cores (MFMA) 4.0 %",
    )
    panel = device_panel(AMD)
    assert panel is not None
    assert [column.title for column in panel.columns] == [
        "device",
        "GPU %",
        "CUs active",
        "CU occupancy",
        "matrix cores (MFMA)",
        "fabric read",
        "wave fill",
    ]
    assert [cell.text for cell in panel.rows[0]] == [
        "0",
        "100 %",
        "38.0 %",
        "11.0 %",
        "4.0 %",
        "83.2 GB/s",
        "50.0 %",
    ]


def test_nvidia_has_the_same_panel_under_its_own_names() -> None:
    nvidia = (
        row("gpu_percent", 100.0),
        row("sm_activity", 0.5),
        row("sm_occupancy", 0.2),
        row("tensor_activity", 0.1),
    )
    assert device_lines((*nvidia, row("gpu_percent", 3.0, "1"))) == (
        "0: GPU 100 %, SM activity 50.0 %, SM occupancy 20.0 %, tensor activity 10.0 %",
        "1: GPU 3 %",
    )


def test_hidden_units_leave_the_drivers_wave_fill() -> None:
    hidden = (row("gpu_activity_mean", 97.0), row("wave_fill", 0.039), row("fabric_read", 1e9))
    assert device_lines(hidden) == ("GPU 97 %, wave fill 3.9 %",)


def test_without_counters_there_is_no_panel() -> None:
    plain = (row("gpu_percent", 100.0), row("wave_fill", 0.5))
    assert device_panel(plain) is None
    assert device_lines(plain) == ()
