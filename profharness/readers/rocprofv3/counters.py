"""Counter records to the kernels of the same dispatches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.trace.model import I64


@dataclass(frozen=True, eq=False)
class Joined:
    """`kernel[i]` is the position of counter record i's kernel, counting on behind the traced ones
    for the dispatches at `untraced`: counter records (the first of each dispatch) that no traced
    kernel stands for.
    """

    kernel: I64
    untraced: I64


def join(traced: I64, counted: I64) -> Joined:
    """Kernels of counter records by dispatch number; untraced dispatches in the order of their
    first record.
    """
    used, first, row = np.unique(counted, return_index=True, return_inverse=True)
    order = np.argsort(traced, kind="stable")
    at = np.minimum(np.searchsorted(traced[order], used), max(len(traced) - 1, 0))
    traced_too = traced[order][at] == used if len(traced) else np.zeros(len(used), np.bool_)
    position = np.zeros(len(used), np.int64)
    position[traced_too] = order[at[traced_too]]
    fresh = np.flatnonzero(~traced_too)
    fresh = fresh[np.argsort(first[fresh], kind="stable")]
    position[fresh] = len(traced) + np.arange(len(fresh))
    return Joined(position[row], first[fresh])
