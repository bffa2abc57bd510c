"""Records that have no place on the time axis of a file are left out, and counted with the
reason.
"""

from __future__ import annotations

from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    ClockDomain,
    Copies,
    Counters,
    Kernels,
    Ops,
    Source,
    Strings,
    Trace,
)
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


def test_kernels_and_copies_keep_their_operator_where_an_earlier_one_is_left_out() -> None:
    trace = Trace(
        (Source("a.json", "kineto"),),
        Strings(("first", "second", "third")),
        kernels=Kernels.build(3, start_ns=[5, 6, 7], dur_ns=1, op=[0, 2, NULL], source=0),
        copies=Copies.build(2, start_ns=[8, 9], dur_ns=1, op=[1, 0], source=0),
        ops=Ops.build(3, start_ns=[-50, 1, 2], dur_ns=1, name=[0, 1, 2], source=0),
    )
    kept, left = select(trace, WriteOptions())
    assert kept.strings.decode(kept.ops.name) == ["second", "third"]
    assert kept.kernels.op.tolist() == [NULL, 1, NULL]
    assert kept.copies.op.tolist() == [0, NULL]
    assert [(one.table, one.count) for one in left] == [("ops", 1)]
