"""What torch's allocator held, as samples by device: the instants that `profile_memory` records.

Each states how many bytes the process holds after it. The host's are those that were taken while a
recording was on; a device's are all. Instants of 2021 state no totals: like those without a device
they are left out and counted. A device has the number by which the process sees it. CUDA's records
of kernels use the same numbers, those of ROCm the node's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.places import Origin, Places
from profharness.trace import nesting
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Allocations, Ops, Samples, Strings
from profharness.trace.sample_metrics import TORCH_ALLOCATED, TORCH_RESERVED

_CPU, _CUDA = 0, 1  # c10::DeviceType


@dataclass(frozen=True, eq=False)
class Held:
    """Bytes that were held from each instant on; `reserved` is NULL where it does not say. `device`
    are codes of the file's devices, NULL for the host. Left out were `unplaced` instants, whose
    device cannot be told, and `unstated` ones, which say no total or no device.
    """

    at: I64
    device: I64
    allocated: I64
    reserved: I64
    pid: I64
    tid: I64
    address: I64
    bytes: I64
    unplaced: int
    unstated: int

    def samples(self, strings: Strings, places: Places, origin: Origin) -> Samples:
        """Instants of both metrics. The host's memory is not reserved ahead, so it has one."""
        if not len(self.at):
            return Samples.empty()
        reserving = np.flatnonzero((self.reserved != NULL) & (self.device != NULL))
        rows = np.concatenate((np.arange(len(self.at)), reserving))
        counts = [len(self.at), len(reserving)]
        metrics = [strings.code(name) for name in (TORCH_ALLOCATED, TORCH_RESERVED)]
        at = self.at[rows] + origin.base_ns
        return Samples.build(
            at_ns=at,
            until_ns=at,
            device=places.device(self.device[rows]),
            metric=np.repeat(metrics, counts),
            value=np.concatenate((self.allocated, self.reserved[reserving])),
            source=0,
        )

    def allocations(
        self, ops: Ops, nested: nesting.Nesting, places: Places, origin: Origin, host: int
    ) -> Allocations:
        """Each allocation and release that states its size, with the innermost operator that was
        open on its thread; `host` is the code of the host's name.
        """
        rows = np.flatnonzero(self.bytes != 0)
        if not len(rows):
            return Allocations.empty()
        at, pid, tid = self.at[rows] + origin.base_ns, self.pid[rows], self.tid[rows]
        thread = nesting.threads(np.concatenate((ops.pid, pid)), np.concatenate((ops.tid, tid)))
        op = nesting.innermost(
            ops.start_ns,
            ops.dur_ns,
            thread[: len(ops)],
            nested,
            (at, thread[len(ops) :]),
            with_end=False,
        )
        return Allocations.build(
            at_ns=at,
            address=self.address[rows],
            bytes=np.abs(self.bytes[rows]),
            is_release=self.bytes[rows] < 0,
            allocated=self.allocated[rows],
            reserved=self.reserved[rows],
            device=places.device(self.device[rows]),
            host=host,
            rank=NULL if origin.rank is None else origin.rank,
            pid=pid,
            tid=tid,
            op=op,
            source=0,
        )


def held(rows: KinetoRows, *, is_rocm: bool) -> Held:
    """The instants of one file, whose columns are used up. Devices that ran nothing are added to
    the file's.
    """
    take = rows.memory.take
    at, kind, number = take("at"), take("device_type"), take("device_id")
    allocated, reserved = take("allocated"), take("reserved")
    whose = {name: take(name) for name in ("pid", "tid", "address", "bytes")}
    device = np.full(len(at), NULL, np.int64)
    has_place = (kind == _CPU) | ((kind != NULL) & (number >= 0))
    stated = has_place & (allocated != NULL)
    elsewhere, placed = stated & (kind != _CPU), stated & (kind == _CPU)
    of_node = elsewhere & ((kind != _CUDA) | is_rocm)
    of_process = elsewhere & ~of_node
    for one in np.unique(number[of_process]).tolist():
        device[of_process & (number == one)] = rows.devices[str(one)]
    placed |= of_process
    if of_node.any():
        used = np.unique(np.concatenate([t.peek("device") for t in (rows.kernels, rows.copies)]))
        if len(used) == len(np.unique(number[of_node])) == 1:
            device[of_node] = used[0]
            placed |= of_node
    return Held(
        at=at[placed],
        device=device[placed],
        allocated=allocated[placed],
        reserved=reserved[placed],
        **{name: column[placed] for name, column in whose.items()},
        unplaced=int((stated & ~placed).sum()),
        unstated=int((~stated).sum()),
    )
