"""What torch's allocator held, as samples by device: the instants that `profile_memory` records.

Each states how many bytes the process holds after it. The host's are those that were taken while a
recording was on; a device's are all. Instants of 2021 state no totals and are left out. A device
has the number by which the process sees it. CUDA's records of kernels use the same numbers, those
of ROCm the node's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.places import Origin, Places
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Samples, Strings
from profharness.trace.sample_metrics import TORCH_ALLOCATED, TORCH_RESERVED

_CPU, _CUDA = 0, 1  # c10::DeviceType


@dataclass(frozen=True, eq=False)
class Held:
    """Bytes that were held from each instant on, NULL where it does not say. `device` are codes of
    the file's devices, NULL for the host; `unplaced` instants were left out.
    """

    at: I64
    device: I64
    allocated: I64
    reserved: I64
    unplaced: int

    def samples(self, strings: Strings, places: Places, origin: Origin) -> Samples:
        """Instants of both metrics. The host's memory is not reserved ahead, so it has one."""
        stated = (self.allocated != NULL, (self.reserved != NULL) & (self.device != NULL))
        rows = np.concatenate([np.flatnonzero(said) for said in stated])
        if not len(rows):
            return Samples.empty()
        counts = [int(said.sum()) for said in stated]
        metrics = [strings.code(name) for name in (TORCH_ALLOCATED, TORCH_RESERVED)]
        at = self.at[rows] + origin.base_ns
        return Samples.build(
            at_ns=at,
            until_ns=at,
            device=places.device(self.device[rows]),
            metric=np.repeat(metrics, counts),
            value=np.concatenate((self.allocated[stated[0]], self.reserved[stated[1]])),
            source=0,
        )


def held(rows: KinetoRows, *, is_rocm: bool) -> Held:
    """The instants of one file, whose columns are used up. Devices that ran nothing are added to
    the file's.
    """
    take = rows.memory.take
    at, kind, number = take("at"), take("device_type"), take("device_id")
    device = np.full(len(at), NULL, np.int64)
    elsewhere = kind != _CPU
    placed = ~elsewhere
    of_node = elsewhere & ((kind != _CUDA) | is_rocm)
    for one in np.unique(number[elsewhere & ~of_node]).tolist():
        device[elsewhere & ~of_node & (number == one)] = rows.devices[str(one)]
        placed |= elsewhere & ~of_node
    if of_node.any():
        used = np.unique(np.concatenate([t.peek("device") for t in (rows.kernels, rows.copies)]))
        if len(used) == len(np.unique(number[of_node])) == 1:
            device[of_node] = used[0]
            placed |= of_node
    return Held(
        at=at[placed],
        device=device[placed],
        allocated=take("allocated")[placed],
        reserved=take("reserved")[placed],
        unplaced=int((~placed).sum()),
    )
