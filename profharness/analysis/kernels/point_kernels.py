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
    """The kernels with 1 % of the window's kernel time or more, at most twenty, longest first."""
    kernels, inside = m.trace.kernels, m.kernel_ns
    rows = np.flatnonzero((inside > 0) & ~is_communication(m.trace.strings, kernels))
    if not len(rows):
        return ()
    codes, place = coded(kernels.name[rows])
    total = np.bincount(place, weights=inside[rows])
    calls = np.bincount(place)
    whole = float(total.sum())
    chosen = [
        group
        for group in np.argsort(-total, kind="stable")[:MOST].tolist()
        if total[group] >= NOTABLE * whole
    ]
    return tuple(
        PointKernel(
            name=m.trace.strings[int(codes[group])],
            calls=int(calls[group]),
            total_ns=int(total[group]),
            share=float(total[group] / whole),
            workgroups=_usual(kernels.workgroups[rows[place == group]]),
        )
        for group in chosen
    )


def _usual(workgroups: np.typing.NDArray[np.int64]) -> int | None:
    """The most common number; None where none is recorded."""
    recorded = workgroups[workgroups > 0]
    if not len(recorded):
        return None
    values, counts = np.unique(recorded, return_counts=True)
    return int(values[counts.argmax()])
