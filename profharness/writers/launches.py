"""Which device records each host call launched: the arrows of a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.launches import join
from profharness.trace.model import I64, Trace


@dataclass(frozen=True)
class Launches:
    """Device records by launching call, with kernels numbered from `base` + 1 and copies after
    them.

    `events[offsets[i]:offsets[i + 1]]` are those of row i of the host calls; `linked` says for each
    event number less `base` (from 1) whether some call launched it.
    """

    events: I64
    offsets: I64
    linked: I64
    base: int

    @cached_property
    def counts(self) -> I64:
        """Launched records per host call."""
        return np.diff(self.offsets)


def find_launches(trace: Trace, base: int = 0) -> Launches:
    """The records that each call launched, as `trace.launches` joins them. Numbers up to `base`
    belong to other parts of the file.

    Correlation 0 is no id in CUPTI, roctracer or rocprofiler, so it draws no arrow.
    """
    call = np.concatenate(
        [
            np.where(table.correlation == 0, NULL, join(trace, table).call)
            for table in (trace.kernels, trace.copies)
        ]
    )
    event = np.flatnonzero(call != NULL)
    order = event[np.argsort(call[event], kind="stable")]
    linked = np.zeros(len(call) + 1, np.int64)
    linked[event + 1] = 1
    offsets = np.concatenate(
        ([0], np.cumsum(np.bincount(call[event], minlength=len(trace.api))))
    ).astype(np.int64)
    return Launches(order + base + 1, offsets, linked, base)
