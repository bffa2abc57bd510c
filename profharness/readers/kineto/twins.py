"""Kernels of a Kineto file that are there twice."""

from __future__ import annotations

import numpy as np

from profharness.trace.model import Kernels


def twins(kernels: Kernels) -> int:
    """How many kernels repeat another one in start, device, stream, name, duration and
    correlation.
    """
    order = np.argsort(kernels.start_ns, kind="stable")
    together = np.diff(kernels.start_ns[order]) == 0
    rows = (
        order[np.concatenate((together, [False])) | np.concatenate(([False], together))]
        if len(order)
        else order
    )
    columns = (
        kernels.device,
        kernels.stream,
        kernels.name,
        kernels.dur_ns,
        kernels.correlation,
        kernels.start_ns,
    )
    rows = rows[np.lexsort(tuple(column[rows] for column in columns))]
    same = np.ones(max(len(rows) - 1, 0), np.bool_)
    for column in columns:
        same &= np.diff(column[rows]) == 0
    return int(same.sum())
