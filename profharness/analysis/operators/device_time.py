"""Device time of operators: what their kernels, copies and fills took (docs/metrics.md#hotspots).

A device record belongs to the innermost operator that is open at the start of the call that
launched it; a record that no recorded operator launched belongs to none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.operators.nests import nests
from profharness.analysis.time.timeless import no_times
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Copies, Kernels, Trace


@dataclass(frozen=True, eq=False)
class DeviceTime:
    """Per row of `Trace.ops`, in ns: `own_ns` of the records that belong to it, `inclusive_ns` with
    those of the operators nested in it (a sum, not a union). `outside_ns` is the time of records
    that belong to no operator.
    """

    own_ns: I64
    inclusive_ns: I64
    outside_ns: int


def is_timed(trace: Trace) -> bool:
    """Whether the trace holds a device record with a time."""
    return len(trace.copies) > 0 or (len(trace.kernels) > 0 and not no_times(trace))


def device_time(trace: Trace) -> DeviceTime | None:
    """The device time of every operator; None where the trace holds no device record with a
    time.
    """
    if not is_timed(trace):
        return None
    own = np.zeros(len(trace.ops), np.int64)
    outside = 0
    for records in (trace.kernels, trace.copies):
        held = records.op != NULL
        lengths = lasting(records)
        np.add.at(own, records.op[held], lengths[held])
        outside += int(lengths[~held].sum())
    return DeviceTime(own, nests(trace.ops).with_inner(own), outside)


def lasting(records: Kernels | Copies) -> I64:
    """Durations in ns; 0 where nobody recorded one."""
    return np.maximum(records.dur_ns, 0)
