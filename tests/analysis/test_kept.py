"""What is worked out once per table: kept as long as it holds, made anew where another table takes
part, never handed out to be changed.
"""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

from profharness.analysis.kernels import patterns
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.timeline import is_communication, timeline
from profharness.trace.columns.table import NULL
from profharness.trace.launches import join, launching_calls
from profharness.trace.model import Copies, Source, Strings, Trace
from tests.analysis.scene import Scene


def scene() -> Trace:
    made = Scene()
    made.kernel(10, 20, name="gemm", by=made.launch(0, 5))
    made.kernel(30, 50, name="ncclDevKernel_Generic", by=made.launch(25, 28))
    made.copy(60, 70)
    return made.build()


def test_what_is_kept_is_the_same_and_cannot_be_written_to():
    trace = scene()
    assert join(trace, trace.kernels) is join(trace, trace.kernels)
    assert timeline(trace, 0) is timeline(trace, 0)
    for found in (
        patterns.matching(trace.strings, trace.api, patterns.LAUNCH),
        is_communication(trace.strings, trace.kernels),
    ):
        assert found.any()
        with pytest.raises(ValueError, match="read-only"):
            found[0] = False
    assert patterns.matching(trace.strings, trace.api, patterns.LAUNCH) is patterns.matching(
        trace.strings, trace.api, patterns.LAUNCH
    )


def test_other_calls_or_sources_are_joined_anew():
    trace = scene()
    assert launching_calls(trace).tolist() == [0, 1]
    swapped = replace(trace, api=trace.api.take([1, 0]))
    assert launching_calls(swapped).tolist() == [1, 0]
    assert launching_calls(trace).tolist() == [0, 1]
    assert launching_calls(replace(trace, api=trace.api.take([0]))).tolist() == [0, NULL]
    assert launching_calls(replace(trace, kernels=trace.kernels.take([1]))).tolist() == [1]
    more = replace(trace, sources=(*trace.sources, Source("other", "kineto")))
    assert join(more, trace.kernels) is not join(trace, trace.kernels)
    elsewhere = replace(
        trace,
        sources=(*trace.sources, Source("other", "kineto")),
        api=trace.api.with_columns(source=len(trace.sources)),
    )
    assert launching_calls(elsewhere).tolist() == [NULL, NULL]


def test_other_copies_are_on_the_timeline_and_other_names_are_judged_anew():
    trace = scene()
    assert timeline(trace, 0).copies.total == 10
    assert timeline(replace(trace, copies=Copies.empty()), 0).copies.total == 0
    assert timeline(trace, 0).copies.total == 10
    renamed = replace(trace, strings=Strings(f"nccl{text}" for text in trace.strings.texts))
    assert is_communication(trace.strings, trace.kernels).tolist() == [False, True]
    assert is_communication(renamed.strings, trace.kernels).all()
    assert patterns.matching(trace.strings, trace.api, patterns.LAUNCH).all()
    assert not patterns.matching(
        Strings(f"x{n}" for n in range(len(trace.strings))), trace.api, patterns.LAUNCH
    ).any()


def test_gaps_of_other_windows_are_found_anew():
    idle = IdleAnalysis(scene())
    whole, part = idle.gaps(0, 0, 100), idle.gaps(0, 12, 40)
    assert (whole.start.tolist(), whole.end.tolist()) == ([0, 20, 50, 70], [10, 30, 60, 100])
    assert (part.start.tolist(), part.end.tolist()) == ([20], [30])
    assert idle.gaps(0, 12, 40) is part
    assert idle.gaps(0, 0, 100).start.tolist() == whole.start.tolist()


def test_a_table_goes_to_other_processes_without_what_is_kept():
    trace = scene()
    join(trace, trace.kernels)
    timeline(trace, 0)
    sent = pickle.loads(pickle.dumps(trace.kernels))
    assert set(vars(sent)) == {one.name for one in fields(sent)} < set(vars(trace.kernels))
    np.testing.assert_array_equal(sent.start_ns, trace.kernels.start_ns)
