"""How many waves the running kernels keep on the compute units, and what the last round of
workgroups wastes (docs/metrics.md#occupancy).

    occupancy         resident waves over the waves that the units hold: min(workgroups / units,
                      slots) x waves per
                      workgroup / waves per unit, as CUPTI and Kineto estimate it
    wave_quantisation workgroups / (ceil(workgroups / (slots x units)) x slots x units): an upper
    bound of what the last,
                      partly empty round costs; only for kernels of more than one round
    slots_full_time   share of the window in which the running kernels offer at least slots x units
                      workgroups: no room
                      was left, which does not say that the units worked

It rests on registers and LDS per kernel, which not every tool records; `coverage` is the share of
kernel time that has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.kernels.accelerators import accelerator
from profharness.analysis.kernels.grouping import pack
from profharness.analysis.kernels.slots import Shapes, slots, waves_per_workgroup
from profharness.node.devices import Accelerator
from profharness.stats import intervals
from profharness.stats.intervals import F64, I64, Intervals
from profharness.trace.columns.keys import distinct, first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.model import Kernels, Trace


@dataclass(frozen=True, eq=False)
class Residency:
    """One entry per kernel. `slots` is NULL and the rest NaN where it cannot be known.

    `offered` is workgroups over what all units hold at once; `quantisation` is NaN too for kernels
    of one round.
    """

    slots: I64
    occupancy: F64
    offered: F64
    quantisation: F64

    def of(self, rows: I64 | None) -> Residency:
        """The residency of these kernels; None: of all."""
        return (
            self
            if rows is None
            else Residency(
                self.slots[rows], self.occupancy[rows], self.offered[rows], self.quantisation[rows]
            )
        )


def residency(trace: Trace) -> Residency:
    """What each kernel of a trace keeps resident, from its shape and its device."""
    kernels = trace.kernels
    held = np.full(len(kernels), NULL, np.int64)
    occupancy, offered = np.full(len(kernels), np.nan), np.full(len(kernels), np.nan)
    for device in distinct(kernels.device).tolist():
        hardware = accelerator(trace, device)
        if hardware is None or hardware.limits is None or not hardware.compute_units:
            continue
        rows = np.flatnonzero((kernels.device == device) & (kernels.workgroups > 0))
        held[rows] = kernel_slots(kernels.take(rows), hardware)
        rows = rows[held[rows] != NULL]
        per_unit = kernels.workgroups[rows] / hardware.compute_units
        waves = waves_per_workgroup(hardware.limits, threads(kernels)[rows])
        occupancy[rows] = np.minimum(per_unit, held[rows]) * waves / hardware.limits.waves
        offered[rows] = per_unit / held[rows]
    quantisation = np.where(
        offered > 1, offered / np.ceil(np.where(offered > 1, offered, 1.0)), np.nan
    )
    return Residency(held, occupancy, offered, quantisation)


def kernel_slots(kernels: Kernels, device: Accelerator) -> I64:
    """Workgroups per compute unit of each kernel; each distinct shape is worked out once. NULL
    where not known.
    """
    if device.limits is None or not len(kernels):
        return np.full(len(kernels), NULL, np.int64)
    lds = np.where(
        kernels.lds_bytes == NULL,
        NULL,
        kernels.lds_bytes + np.maximum(kernels.lds_dynamic_bytes, 0),
    )
    columns = (threads(kernels), kernels.vgpr, kernels.accum_vgpr, kernels.sgpr, lds)
    first, place = first_rows(pack(columns))
    shapes = Shapes(*(np.asarray(column[first], np.int64) for column in columns))
    return slots(device.limits, shapes)[place]


def threads(kernels: Kernels) -> I64:
    """Work-items of a workgroup; NULL where not recorded."""
    sizes = [
        column.astype(np.int64)
        for column in (kernels.workgroup_size_x, kernels.workgroup_size_y, kernels.workgroup_size_z)
    ]
    known = (sizes[0] != NULL) & (sizes[1] != NULL) & (sizes[2] != NULL)
    return np.where(known, sizes[0] * sizes[1] * sizes[2], NULL)


@dataclass(frozen=True)
class Occupancy:
    """Occupancy of one device over windows: all times in ns.

    `resident_ns` is the integral of occupancy over `known_ns`, the time in which a kernel with
    known registers ran; `blind_ns` the time in which one without them ran. `full_ns`: no slot was
    free. `rounds_ns` is the summed time of kernels of more than one round, `useful_ns` the same
    times their quantisation.
    """

    window_ns: int
    known_ns: int
    resident_ns: float
    full_ns: int
    blind_ns: int
    rounds_ns: int
    useful_ns: float
    known_kernel_ns: int
    kernel_ns: int

    @property
    def coverage(self) -> float:
        """Share of kernel time whose registers and LDS are known."""
        return self.known_kernel_ns / self.kernel_ns if self.kernel_ns else 0.0


def occupancy(trace: Trace, device: int, windows: Intervals, held: Residency) -> Occupancy:
    """The occupancy of a device in a merged set of windows; without coverage where nothing is known
    of its kernels.
    """
    kernels = trace.kernels
    on_device = kernels.device == device
    known, blind = on_device & (held.slots != NULL), on_device & (held.slots == NULL)
    spans = intervals.lasting(kernels.start_ns, kernels.dur_ns)
    inside = intervals.inside_ns(spans, windows)

    def chosen(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Intervals:
        return Intervals(spans.start[rows], spans.end[rows])

    resident = intervals.running(chosen(known), held.occupancy[known])
    offered = intervals.running(chosen(known), held.offered[known])
    # sums of many weights come back to a whole number only within rounding
    full = offered.where(lambda share: share >= 1 - 1e-9)
    rounds = known & np.isfinite(held.quantisation)
    return Occupancy(
        window_ns=windows.total,
        known_ns=intervals.intersect(intervals.merge(chosen(known)), windows).total,
        resident_ns=intervals.integrate(resident, windows, lambda share: np.minimum(share, 1.0)),
        full_ns=intervals.intersect(full, windows).total,
        blind_ns=intervals.intersect(intervals.merge(chosen(blind)), windows).total,
        rounds_ns=int(inside[rounds].sum()),
        useful_ns=float(np.dot(inside[rounds], held.quantisation[rounds])),
        known_kernel_ns=int(inside[known].sum()),
        kernel_ns=int(inside[on_device].sum()),
    )


def add(parts: list[Occupancy]) -> Occupancy:
    """The sum over devices: the window is their number times the window."""
    return Occupancy(
        window_ns=sum(part.window_ns for part in parts),
        known_ns=sum(part.known_ns for part in parts),
        resident_ns=sum(part.resident_ns for part in parts),
        full_ns=sum(part.full_ns for part in parts),
        blind_ns=sum(part.blind_ns for part in parts),
        rounds_ns=sum(part.rounds_ns for part in parts),
        useful_ns=sum(part.useful_ns for part in parts),
        known_kernel_ns=sum(part.known_kernel_ns for part in parts),
        kernel_ns=sum(part.kernel_ns for part in parts),
    )
