"""Device records and the host calls that launched them (docs/metrics.md#linked), as the figures
need them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL
from profharness.trace.launches import Correlated, join
from profharness.trace.model import Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Links:
    """`api[i]` is the row of the call that launched record `i`, NULL where the file holds none.

    `has_calls[i]` says whether the record's source holds any host call at all, `in_graph[i]`
    whether the call launches a graph.
    """

    api: I64
    has_calls: Mask
    in_graph: Mask

    @property
    def linked(self) -> Mask:
        """Per record, whether its launching call is in the trace."""
        linked: Mask = self.api != NULL
        return linked


def link_kernels(trace: Trace) -> Links:
    """The launching call of each kernel."""
    return link(trace, trace.kernels)


def link_copies(trace: Trace) -> Links:
    """The launching call of each copy."""
    return link(trace, trace.copies)


def link(trace: Trace, records: Correlated) -> Links:
    """The launching call of each record, as `trace.launches` joins them."""
    launches = join(trace, records)
    return Links(launches.call, launches.has_calls, launches.in_graph)
