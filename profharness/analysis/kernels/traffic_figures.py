"""Figures of memory traffic in a trace's windows: what counters say, else the bytes that the
operators' tensors need at least. Each figure says which of them it is.
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.kernels.ceilings import NO_CEILING
from profharness.analysis.kernels.counter_work import ARCHITECTURES
from profharness.analysis.kernels.useful_work import (
    COUNTED_TIMES,
    NO_TRAFFIC,
    lacking,
    lowest,
    seconds,
)
from profharness.analysis.measurement import Measurement
from profharness.analysis.records import Figure

NO_SHAPES = "operators with shapes (--profile torch)"


def _traffic_note(m: Measurement) -> str:
    counted = m.facts.rates.counted & (m.kernel_ns > 0)
    if not counted.any():
        return "at least: every tensor once, by its shape"
    hbm = m.facts.counted is not None and np.isfinite(m.facts.counted.hbm_bytes[counted]).all()
    return (
        f"by counters: {_dram_note(m)}"
        if hbm
        else "by counters, between L2 and fabric: an upper bound of memory traffic"
    )


def _dram_note(m: Measurement) -> str:
    """What requests to DRAM are on this architecture."""
    cached = any(
        ARCHITECTURES.get(roof.device.architecture_name, True) for roof in m.facts.roofs.values()
    )
    return "requests to DRAM" + (", hits of the Infinity Cache included" if cached else "")


def _traffic_coverage(m: Measurement) -> float | None:
    total = int(m.kernel_ns.sum())
    return int(m.kernel_ns[np.isfinite(m.facts.rates.moved)].sum()) / total if total else None


def achieved_bandwidth(m: Measurement) -> Figure:
    """Bytes per second over the windows, of all devices together."""
    moved_bytes = m.moved_bytes
    if moved_bytes is None or not m.facts.timed:
        return lacking("B/s", m, NO_TRAFFIC if m.facts.timed else COUNTED_TIMES)
    return Figure(
        value=moved_bytes / seconds(m) * len(m.devices),
        unit="B/s",
        source=m.origin,
        note=_traffic_note(m),
        coverage=_traffic_coverage(m),
    )


def bandwidth_share(m: Measurement) -> Figure:
    """Bytes per second over the bandwidth ceiling, on average over the devices."""
    moved_bytes, roof = m.moved_bytes, lowest(roof.bandwidth for roof in m.facts.roofs.values())
    if moved_bytes is None or not m.facts.timed:
        return lacking("share", m, NO_TRAFFIC if m.facts.timed else COUNTED_TIMES)
    if roof is None:
        return lacking("share", m, NO_CEILING)
    return Figure(
        value=moved_bytes / seconds(m) / roof.value,
        unit="share",
        source=m.origin,
        note=f"of {roof.source}; {_traffic_note(m)}",
        coverage=_traffic_coverage(m),
    )


def mbu(m: Measurement) -> Figure:
    """The least bytes that the operators' tensors need over the bandwidth ceiling and the windows,
    whatever counters say: what a step that only moves weights can be set against.
    """
    low_bytes = m.facts.work.low_bytes
    if not np.isfinite(low_bytes).any() or not m.facts.timed:
        return lacking("share", m, NO_SHAPES if m.facts.timed else COUNTED_TIMES)
    roof = lowest(roof.bandwidth for roof in m.facts.roofs.values())
    if roof is None:
        return lacking("share", m, NO_CEILING)
    total = int(m.kernel_ns.sum())
    return Figure(
        value=float(np.nansum(low_bytes * m.kernel_shares)) / seconds(m) / roof.value,
        unit="share",
        source=m.origin,
        coverage=int(m.kernel_ns[np.isfinite(low_bytes)].sum()) / total if total else None,
        note=f"of {roof.source}; at least: every tensor once, by its shape",
    )


def fabric_bytes(m: Measurement) -> Figure:
    """Bytes between L2 and fabric, by counters."""
    counted = m.facts.counted
    if counted is None or not np.isfinite(counted.fabric_bytes).any():
        return lacking("B", m, "counters (--pmc FETCH_SIZE WRITE_SIZE)")
    total = int(m.kernel_ns.sum())
    known = np.isfinite(counted.fabric_bytes)
    return Figure(
        value=float(np.nansum(counted.fabric_bytes * m.kernel_shares)),
        unit="B",
        source=m.origin,
        coverage=int(m.kernel_ns[known].sum()) / total if total else None,
        note="upper bound of memory traffic",
    )


def hbm_bytes(m: Measurement) -> Figure:
    """Bytes to and from memory, by counters of DRAM requests; not measured where the architecture's
    were not collected.
    """
    counted = m.facts.counted
    if counted is None or not np.isfinite(counted.hbm_bytes).any():
        return lacking(
            "B",
            m,
            "counters of DRAM requests (--pmc TCC_EA0_RDREQ_DRAM_sum and "
            "TCC_EA0_WRREQ_DRAM_sum, TCC_EA_... before gfx942, "
            "beside FETCH_SIZE and WRITE_SIZE)",
        )
    total, known = int(m.kernel_ns.sum()), np.isfinite(counted.hbm_bytes)
    return Figure(
        value=float(np.nansum(counted.hbm_bytes * m.kernel_shares)),
        unit="B",
        source=m.origin,
        coverage=int(m.kernel_ns[known].sum()) / total if total else None,
        note=_dram_note(m),
    )
