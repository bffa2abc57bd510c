"""The kernels that matter in a window: what to compare when a point moves."""

from __future__ import annotations

import numpy as np

from profharness.analysis.measurement import Measurement
from profharness.analysis.records import PointKernel
from profharness.analysis.time.timeline import is_communication
from profharness.trace.columns.keys import coded

NOTABLE = 0.01
MOST = 20


def notable_kernels(m: Measurement) -> tuple[PointKernel, ...]:
    """Those with 1 % of the window's kernel time or more, twenty at most, the longest first."""
    kernels, inside = m.trace.kernels, m.kernel_ns
    rows = np.flatnonzero((inside > 0) & ~is_communication(m.trace.strings, kernels))
    if not len(rows):
        return ()
    codes, place = coded(kernels.name[rows])
    total = np.bincount(place, weights=inside[rows])
    calls = np.bincount(place)
    whole = float(total.sum())
    chosen = [
        one
        for one in np.argsort(-total, kind="stable")[:MOST].tolist()
        if total[one] >= NOTABLE * whole
    ]
    return tuple(
        PointKernel(
            name=m.trace.strings[int(codes[one])],
            calls=int(calls[one]),
            total_ns=int(total[one]),
            share=float(total[one] / whole),
            workgroups=_usual(kernels.workgroups[rows[place == one]]),
        )
        for one in chosen
    )


def _usual(workgroups: np.typing.NDArray[np.int64]) -> int | None:
    """The most common number; None where none is recorded."""
    known = workgroups[workgroups > 0]
    if not len(known):
        return None
    values, counts = np.unique(known, return_counts=True)
    return int(values[counts.argmax()])
