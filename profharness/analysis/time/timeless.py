"""Whether the kernels of a trace lie on a time axis at all: of some tools only their durations, or
only their counters, mean something.

rocprof-compute runs the program once per set of counters and joins the executions: begins and ends
are of one of them, or means over all (`join_prof` of rocprofiler-compute), so that dispatches have
lengths and no places. A counter table without times has neither.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.findings import ways
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import Copies, Kernels, Trace

TIMELINE = "a timeline"
"""How the needs of figures begin that such kernels cannot give."""
_REPLAYED = "rocprof-compute"


def no_timeline(trace: Trace) -> str:
    """Why the kernels lie on no time axis, as what a figure would need; empty where they do, and
    without kernels.
    """
    kernels = trace.kernels
    if not len(kernels):
        return ""
    positions = np.unique(kernels.source)
    if any(
        trace.sources[int(position)].format.startswith(_REPLAYED)
        for position in positions
        if position != NULL
    ):
        return (
            f"{TIMELINE} (rocprof-compute joins executions, or counts in one, which changes its "
            f"times): {ways.GEOMETRY}"
        )
    if not kernels.dur_ns.any():
        return (
            f"{TIMELINE} (no kernel in the file has a length): "
            f"record kernels with their times, as {ways.GEOMETRY} does"
        )
    return ""


def no_places(trace: Trace) -> bool:
    """Whether nothing can be said of unions and spans either: starts stand for no instant of one
    execution.
    """
    if not no_timeline(trace):
        return False
    replayed = any(
        trace.sources[int(position)].format.startswith(_REPLAYED)
        for position in distinct(trace.kernels.source)
        if position != NULL
    )
    # kernels at zero are without a place, unless the clock of the file begins there
    at_zero = not (trace.kernels.start_ns.any() or (trace.copies.start_ns == 0).any())
    return replayed or at_zero or no_times(trace)


def without_times(trace: Trace) -> npt.NDArray[np.bool_] | None:
    """For each kernel whether nobody recorded its times, so that its length is unknown and not 0;
    None where all have them. Readers give such a kernel no start, and the length 0.
    """
    unknown = (trace.kernels.start_ns == NULL) & (trace.kernels.dur_ns == 0)
    return unknown if unknown.any() else None


def placed(table: Kernels | Copies) -> Kernels | Copies:
    """The records that have times; the table itself where all have."""
    lost = table.start_ns == NULL
    return table.take(~lost) if lost.any() else table


def counted_ranges(trace: Trace) -> npt.NDArray[np.bool_] | None:
    """For each kernel whether it is a range of CUPTI's profiler in a Kineto file: counters, and no
    record of a kernel (which has no counters there). None where none is.
    """
    unknown = without_times(trace)
    if unknown is None:
        return None
    of_kineto = [source.format == "kineto" for source in trace.sources]
    ranges: npt.NDArray[np.bool_] = unknown & np.array([*of_kineto, False])[trace.kernels.source]
    counted = np.zeros(len(ranges) + 1, np.bool_)
    counted[trace.counters.kernel] = True
    ranges &= counted[:-1]
    return ranges if ranges.any() else None


def no_times(trace: Trace) -> bool:
    """Whether the trace holds kernels and nobody recorded the times of any."""
    unknown = without_times(trace)
    return unknown is not None and bool(unknown.all())
