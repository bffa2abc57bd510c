"""Short kernels in the order in which they ran on their streams, as one row of codes.

A kernel is short if it takes less than 10 µs, or less than the idle time before it on its stream.
Idle time of a millisecond or more is no launch gap: it ends a run of short kernels, as a longer
kernel and the end of the stream do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Kernels

Mask = npt.NDArray[np.bool_]

SHORT_NS = 10_000
PAUSE_NS = 1_000_000


@dataclass(frozen=True, eq=False)
class ShortRow:
    """Short kernels of all streams, one run behind the other with a code of its own between them.

    `kernel` is the row of each in the table of kernels, NULL for what stands between runs, `codes`
    the name's code (below 0 between runs, each once), `gap_ns` the idle time before each inside of
    its run. `before_ns` is that before all short kernels, those that begin a run counted too as far
    as it is a launch gap.
    """

    kernel: I64
    codes: I64
    gap_ns: I64
    before_ns: int


def short_row(kernels: Kernels, left_out: Mask) -> ShortRow:
    """The short kernels of a table, without those that are `left_out` (they end runs too)."""
    where = pack([kernels.source, kernels.device, kernels.stream])
    order = np.lexsort((kernels.start_ns, where))
    start, dur, stream = kernels.start_ns[order], kernels.dur_ns[order], where[order]
    first = np.concatenate(([True], np.diff(stream) != 0))[: len(order)]
    until = np.concatenate(([0], (start + dur)[:-1]))[: len(order)]
    gap = np.where(first, 0, np.maximum(start - until, 0))
    gap = np.where(gap < PAUSE_NS, gap, 0)
    paused = first | (start - until >= PAUSE_NS)
    short = ((dur < SHORT_NS) | (dur < gap)) & (kernels.start_ns[order] != NULL) & ~left_out[order]
    follows = np.concatenate(([False], short[:-1]))[: len(order)] & ~paused
    at = np.flatnonzero(short)
    begins = ~follows[at]
    place = np.arange(len(at)) + np.cumsum(begins)
    total = len(at) + int(begins.sum())
    kernel, codes = np.full(total, NULL, np.int64), -1 - np.arange(total)
    gaps = np.zeros(total, np.int64)
    kernel[place] = order[at]
    codes[place] = kernels.name[order[at]]
    gaps[place] = np.where(begins, 0, gap[at])
    return ShortRow(kernel, codes, gaps, int(gap[at].sum()))
