"""Records that have no place on the time axis of a file are left out, and counted with the
reason.
"""

from __future__ import annotations

from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Counters, Kernels, Source, Strings, Trace
from profharness.writers.options import LeftOut, WriteOptions
from profharness.writers.selection import select


def test_kernels_of_a_file_without_times_are_left_out_with_their_counters() -> None:
    sources = (
        Source("pmc_perf.csv", "rocprof-compute", ClockDomain.UNKNOWN),
        Source("a.db", "rocpd", ClockDomain.BOOTTIME),
    )
    kernels = Kernels.build(start_ns=[0, 0, 5, 0], dur_ns=[0, 0, 7, 0], name=0, source=[0, 0, 0, 1])
    counters = Counters.build(kernel=[0, 2, 3], name=1, value=[1.0, 2.0, 3.0], source=[0, 0, 1])
    kept, left = select(
        Trace(sources, Strings(("k", "SQ_WAVES")), kernels=kernels, counters=counters),
        WriteOptions(),
    )
    # what a clock stamped as zero stays: it is a time
    assert (kept.kernels.start_ns.tolist(), kept.kernels.source.tolist()) == ([5, 0], [0, 1])
    assert (kept.counters.kernel.tolist(), kept.counters.value.tolist()) == ([0, 1], [2.0, 3.0])
    assert left == (LeftOut("kernels", 2, "no time in their file, neither a start nor a length"),)
    unnamed = Trace(
        sources,
        Strings(("k",)),
        kernels=Kernels.build(start_ns=[0], dur_ns=[0], name=0, source=NULL),
    )
    assert len(select(unnamed, WriteOptions())[0].kernels) == 1
