"""How well each device's units work, side by side: what the driver calls busy, and what counters of
the hardware say of the compute units (AMD) or the SMs (NVIDIA), each under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.records import TelemetryRow
from profharness.report.table import Cell, Column, Table
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.report.text.sampled import sample_value_text

COUNTED = (
    "cu_active",
    "cu_occupancy",
    "matrix_busy",
    "valu_busy",
    "vmem_busy",
    "lds_busy",
    "fabric_read",
    "fabric_write",
    "exporter_valu_busy",
    "exporter_mfma_util",
    "exporter_occupancy",
    "exporter_simd_utilization",
    "exporter_gpu_util",
    "sm_activity",
    "sm_occupancy",
    "tensor_activity",
    "dram_activity",
)
"""The metrics that make a panel worth showing."""
_BUSY = ("gpu_activity_mean", "gpu_percent")  # the first that there is
_FILL = "wave_fill"  # the driver's own, where no counter of the compute units is
_IN_A_LINE = frozenset(
    {"cu_active", "cu_occupancy", "matrix_busy", "sm_activity", "sm_occupancy", "tensor_activity"}
)


def device_panel(rows: Sequence[TelemetryRow]) -> Table | None:
    """A row per device with the means over the sampled time; None where no unit was counted."""
    devices = _devices(rows)
    if not devices:
        return None
    shown = [
        metric
        for metric in (*_BUSY, *COUNTED, _FILL)
        if any(metric in means for means in devices.values())
    ]
    columns = (
        Column("device"),
        *(Column(names.title_of(metric), "right", names.meaning_of(metric)) for metric in shown),
    )
    return Table(
        "Device",
        columns,
        tuple(
            (
                Cell(device),
                *(
                    Cell(sample_value_text(metric, means[metric]) if metric in means else "")
                    for metric in shown
                ),
            )
            for device, means in devices.items()
        ),
    )


def device_lines(rows: Sequence[TelemetryRow]) -> tuple[str, ...]:
    """One line per device: `GPU 100 %, CUs active 38.0 %, CU occupancy 11.0 %, ...`; none where no
    unit was counted.
    """
    devices = _devices(rows)
    lines = []
    for device, means in devices.items():
        parts = [
            f"{names.title_of(metric)} {sample_value_text(metric, value)}"
            for metric, value in means.items()
            if metric in _IN_A_LINE
        ]
        busy = next((means[metric] for metric in _BUSY if metric in means), None)
        head = [] if busy is None else [f"GPU {busy:.0f} %"]
        fill = means.get(_FILL)
        if not parts and fill is not None:
            parts = [f"{names.title_of(_FILL)} {sample_value_text(_FILL, fill)}"]
        name = f"{device}: " if len(devices) > 1 else ""
        lines.append(name + ", ".join((*head, *parts)))
    return tuple(lines)


def _devices(rows: Sequence[TelemetryRow]) -> dict[str, dict[str, float]]:
    """Means by metric of each device, in the order of the metrics; empty where no unit was
    counted.
    """
    devices: dict[str, dict[str, float]] = {}
    for metric in (*_BUSY, *COUNTED, _FILL):
        for row in rows:
            mean = finite(row.mean)
            if row.metric == metric and row.device and mean is not None:
                devices.setdefault(row.device, {})[metric] = mean
    counted = any(metric in COUNTED for means in devices.values() for metric in means)
    return dict(sorted(devices.items())) if counted else {}
