"""How a device's units were used, by hardware counters: the derived metrics of rocprofiler, from
the tool or from the raw counters.

Definitions are those of rocprofiler-sdk's counter_defs.yaml. A derived counter that the tool
computed is taken as it is. From raw counters: GRBM counts clocks on every XCC and tools sum over
them, so that it is divided by the number of XCCs; SQ and TCC counts are sums over all units. A
figure whose counters were not collected, or whose device does not say its units (or XCCs), is not
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from profharness.analysis.kernels.accelerators import accelerator
from profharness.analysis.kernels.counter_work import column, first_of
from profharness.node.devices import AmdLimits
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, Trace

_QUAD = 4.0  # SQ_WAVE_CYCLES counts in units of four clocks
_ONE_XCC = frozenset({"gfx908", "gfx90a"})


@dataclass(frozen=True, eq=False)
class Units:
    """Per kernel, of its device: compute units, SIMDs, XCCs, waves that a compute unit holds, lanes
    of a wave; NaN where not known.
    """

    units: F64
    simds: F64
    dies: F64
    waves: F64
    lanes: F64


@dataclass(frozen=True)
class Share:
    """One figure: the tool's names for it (values in per cent unless `whole`), the raw counters,
    and its value from them as a share.
    """

    name: str
    better: str
    derived: tuple[str, ...]
    raw: tuple[str, ...]
    value: Callable[[list[F64], Units], F64]
    whole: bool = False


_MOST = 1.05
"""Counters of one kernel may come from two executions, which differ by so much; beyond that they do
not belong together (rows that stand twice, counts that ran over), and no share comes of them."""

SHARES: tuple[Share, ...] = (
    Share(
        "gpu_util",
        "higher",
        ("GPU_UTIL", "GPUBusy", "GpuUtil"),
        ("GRBM_GUI_ACTIVE", "GRBM_COUNT"),
        lambda c, _: np.minimum(c[0] / c[1], 1.0),
    ),  # the two may be of different executions
    Share(
        "counted_occupancy",
        "higher",
        ("OccupancyPercent",),
        ("SQ_WAVE_CYCLES", "GRBM_GUI_ACTIVE"),
        lambda c, u: _QUAD * c[0] / (c[1] / u.dies) / u.units / u.waves,
    ),
    Share(
        "simd_utilisation",
        "higher",
        ("SIMD_UTILIZATION",),
        ("SQ_BUSY_CU_CYCLES", "GRBM_COUNT"),
        lambda c, u: c[0] / (c[1] / u.dies) / u.units,
        whole=True,
    ),
    Share(
        "valu_busy",
        "higher",
        ("VALUBusy",),
        ("SQ_ACTIVE_INST_VALU", "GRBM_GUI_ACTIVE"),
        lambda c, u: c[0] / u.units / (c[1] / u.dies),
    ),
    Share(
        "mfma_util",
        "higher",
        ("MfmaUtil",),
        ("SQ_VALU_MFMA_BUSY_CYCLES", "GRBM_GUI_ACTIVE"),
        lambda c, u: c[0] / (c[1] / u.dies) / (u.units * u.simds),
    ),
    Share(
        "lane_use",
        "higher",
        ("VALUUtilization",),
        ("SQ_THREAD_CYCLES_VALU", "SQ_ACTIVE_INST_VALU"),
        lambda c, u: c[0] / (c[1] * u.lanes),
    ),
    Share(
        "l2_hit",
        "higher",
        ("L2CacheHit",),
        ("TCC_HIT_sum", "TCC_MISS_sum"),
        lambda c, _: c[0] / (c[0] + c[1]),
    ),
    Share(
        "lds_bank_conflicts",
        "lower",
        ("LDSBankConflict",),
        ("SQ_LDS_BANK_CONFLICT", "GRBM_GUI_ACTIVE"),
        lambda c, u: c[0] / (c[1] / u.dies) / u.units,
    ),
    Share(
        "memory_unit_stalled",
        "lower",
        ("MemUnitStalled",),
        (),
        lambda _c, u: np.full(len(u.units), np.nan),
    ),
)


def of_kernels(trace: Trace) -> dict[str, F64]:
    """Every figure that the counters of a trace give, per kernel (NaN for those without), by
    name.
    """
    units = _units(trace)
    shares = {}
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # a count of zero below a fraction: not measured
        for share in SHARES:
            derived = first_of(trace, share.derived) / (1.0 if share.whole else 100.0)
            computed = (
                share.value([column(trace, name) for name in share.raw], units)
                if share.raw
                else np.full(len(trace.kernels), np.nan)
            )
            values = np.where(np.isfinite(derived), derived, computed)
            with np.errstate(invalid="ignore"):
                possible = (values >= 0.0) & (values <= _MOST)
            values = np.where(possible, values, np.nan)
            if np.isfinite(values).any():
                shares[share.name] = values
    return shares


def _units(trace: Trace) -> Units:
    kernels = len(trace.kernels)
    columns = [np.full(kernels, np.nan) for _ in range(5)]
    for device in distinct(trace.kernels.device).tolist():
        hardware = accelerator(trace, device)
        if hardware is None or device == NULL or not isinstance(hardware.limits, AmdLimits):
            continue
        rows = trace.kernels.device == device
        limits = hardware.limits
        dies = trace.devices[device].dies or (
            1 if hardware.architecture_name in _ONE_XCC else hardware.dies
        )
        values = (hardware.compute_units, limits.simds, dies, limits.waves, limits.wave_size)
        for place, value in zip(columns, values, strict=True):
            place[rows] = np.nan if value is None else value
    return Units(*columns)
